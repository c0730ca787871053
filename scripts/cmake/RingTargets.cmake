# How a room becomes a target.

# Sets `out` to the .cpp files at and below the current folder. A subfolder with a CMakeLists.txt of
# its own is left out and listed in `out`_FOLDERS instead: its builder decides what becomes of it.
function(ring_room_sources out)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB_RECURSE lists CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt")
  list(REMOVE_ITEM lists "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt")
  list(SORT lists)
  set(folders "")
  foreach(list IN LISTS lists)
    cmake_path(GET list PARENT_PATH folder)
    set(nested FALSE)
    foreach(outer IN LISTS folders)
      cmake_path(IS_PREFIX outer "${folder}" inside)
      if(inside)
        set(nested TRUE)
      endif()
    endforeach()
    if(NOT nested)
      list(APPEND folders "${folder}")
      list(FILTER sources EXCLUDE REGEX "^${folder}/")
    endif()
  endforeach()
  set(${out} "${sources}" PARENT_SCOPE)
  set(${out}_FOLDERS "${folders}" PARENT_SCOPE)
endfunction()

# Adds the subfolders found by ring_room_sources.
macro(ring_add_folders)
  foreach(ring_folder IN ITEMS ${ARGN})
    add_subdirectory("${ring_folder}")
  endforeach()
endmacro()

# Settings of RingScope's own code: includes from the repository root, warnings, sanitizers.
function(ring_target name)
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated")
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${RING_WERROR}>>:-Werror>
    # GCC 12 sees overlapping copies inside std::string and overflows in fmt 9's format strings
    # (fill_t::operator=) that cannot happen.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-stringop-overflow>)
  if(RING_SANITIZE)
    # Instrumented code makes GCC 12 see uses of uninitialised values that are not there.
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${RING_SANITIZE};-fno-sanitize-recover=all>
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${name} PUBLIC -fsanitize=${RING_SANITIZE})
  endif()
  if(RING_COVERAGE)
    target_compile_options(${name} PRIVATE --coverage)
    target_link_options(${name} PUBLIC --coverage)
  endif()
endfunction()

# For code whose time to compile counts more than its speed: a quarter less of it in release builds.
function(ring_compile_quickly name)
  target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endfunction()

# With RING_UNITY, compiles the files of a library in batches: headers are read once a batch, which
# saves two fifths of a first build. Each of the files named after the library stays alone.
function(ring_compile_in_batches name)
  if(RING_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# The static library of a room, from the .cpp files listed after its name.
function(ring_library name)
  set(sources ${ARGN})
  if(NOT sources)
    set(placeholder "${PROJECT_BINARY_DIR}/generated/${name}_placeholder.cpp")
    file(CONFIGURE OUTPUT "${placeholder}" CONTENT "")
    set(sources "${placeholder}")
  endif()
  add_library(${name} STATIC ${sources})
  ring_target(${name})
endfunction()

# The benchmark binary ring_bench_NAME of the current folder, run by `scripts/bench NAME`.
#   ring_bench(NAME LIBRARY...)
function(ring_bench name)
  if(NOT RING_HAVE_BENCHMARK)
    add_custom_target(ring_bench_${name}
      COMMAND "${CMAKE_COMMAND}" -E echo
              "ring_bench_${name} needs Google Benchmark and RING_BENCH=ON (Debian 12: libbenchmark-dev)"
      COMMAND "${CMAKE_COMMAND}" -E false VERBATIM)
    return()
  endif()
  ring_room_sources(sources)
  add_executable(ring_bench_${name} ${sources})
  ring_target(ring_bench_${name})
  target_link_libraries(ring_bench_${name} PRIVATE ${ARGN} benchmark::benchmark)
endfunction()
