# How .cu files become objects. nvcc is called directly, so that what ptxas says about registers and
# spills is kept in a file beside the object: tests read it.

set(RING_CUDA_ARCHITECTURES "80;86;90;90a" CACHE STRING "Compute capabilities to build for")

# Compiles the sources for all architectures and appends the objects to `out`. PTX of the first
# architecture is kept too: newer GPUs compile it when they load it. Sources named hopper_* use
# instructions of sm_90a and are compiled for it alone; without it in the list they are empty.
function(ring_cuda_objects out)
  set(flags -std=c++20 -O3 --Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror
      -Xcompiler -Wno-unused-parameter -Xptxas -v -I "${PROJECT_SOURCE_DIR}")
  list(GET RING_CUDA_ARCHITECTURES 0 first)
  set(hopper_flags ${flags})
  list(APPEND flags -gencode "arch=compute_${first},code=compute_${first}")
  foreach(architecture IN LISTS RING_CUDA_ARCHITECTURES)
    list(APPEND flags -gencode "arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  if("90a" IN_LIST RING_CUDA_ARCHITECTURES)
    list(APPEND hopper_flags -DRING_SM90A -gencode arch=compute_90a,code=sm_90a)
  else()
    set(hopper_flags ${flags})
  endif()
  set(objects "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o")
    set(report "${CMAKE_CURRENT_BINARY_DIR}/${name}.ptxas")
    set(own_flags ${flags})
    if(name MATCHES "^hopper_")
      set(own_flags ${hopper_flags})
    endif()
    string(JOIN " " command ${RING_CCACHE} "\"${CUDAToolkit_NVCC_EXECUTABLE}\"" ${own_flags} -MD -MF
           "\"${object}.d\"" -c "\"${source}\"" -o "\"${object}\"")
    add_custom_command(OUTPUT "${object}" BYPRODUCTS "${report}"
      COMMAND sh -c "${command} 2>\"${report}\" || { cat \"${report}\" >&2; false; }"
      DEPENDS "${source}"
      DEPFILE "${object}.d"
      COMMENT "Building CUDA object ${name}.cu.o"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(${out} "${objects}" PARENT_SCOPE)
endfunction()
