# Language, build type, output folders, compiler cache: what holds for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# No -march=native: one binary serves every x86-64, the kernels dispatch at run time.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
if(RING_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g -fno-omit-frame-pointer")
endif()

find_program(RING_CCACHE ccache)
mark_as_advanced(RING_CCACHE)
foreach(language IN ITEMS CXX CUDA)
  if(RING_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${RING_CCACHE}")
  endif()
endforeach()
