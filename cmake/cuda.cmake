# tranship::cuda: cards as devices of buffers. A program links it beside tranship::tranship, and buffers are on cards then.
# It needs nvcc and <cuda.h> to be built; at run time it loads the driver, and does without where there is none.
if(NOT TRANSHIP_CUDA OR TRANSHIP_LAYERS)
  return()
endif()
find_program(TRANSHIP_NVCC nvcc HINTS ${CMAKE_CUDA_COMPILER} PATHS /usr/local/cuda/bin)
if(CMAKE_CUDA_COMPILER AND NOT TRANSHIP_NVCC)
  set(TRANSHIP_NVCC ${CMAKE_CUDA_COMPILER})
endif()
if(NOT TRANSHIP_NVCC)
  message(STATUS "Cards are left out: there is no nvcc (CUDA 13)")
  return()
endif()
file(REAL_PATH ${TRANSHIP_NVCC} nvcc)
cmake_path(GET nvcc PARENT_PATH cuda)
cmake_path(GET cuda PARENT_PATH cuda)
find_path(TRANSHIP_CUDA_INCLUDE_DIR cuda.h HINTS ${cuda}/include ${cuda}/targets/x86_64-linux/include
  ${cuda}/targets/sbsa-linux/include NO_DEFAULT_PATH)
mark_as_advanced(TRANSHIP_NVCC TRANSHIP_CUDA_INCLUDE_DIR)
if(NOT TRANSHIP_CUDA_INCLUDE_DIR)
  message(STATUS "Cards are left out: there is no cuda.h beside ${nvcc}")
  return()
endif()
file(STRINGS ${TRANSHIP_CUDA_INCLUDE_DIR}/cuda.h version REGEX "^#define CUDA_VERSION ")
string(REGEX MATCH "[0-9]+" version "${version}")
if(version LESS 13000)
  message(STATUS "Cards are left out: ${nvcc} is of CUDA ${version}, and tranship needs 13000")
  return()
endif()

# The device code, for each architecture, and for newer ones what the driver compiles when it is loaded.
set(TRANSHIP_CUDA_ARCHITECTURES 90 CACHE STRING "Architectures of cards that tranship::cuda has device code for")
set(codes)
foreach(architecture IN LISTS TRANSHIP_CUDA_ARCHITECTURES)
  list(APPEND codes -gencode arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])
endforeach()
set(fatbin ${PROJECT_BINARY_DIR}/cuda/kernels.fatbin)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
add_custom_command(OUTPUT ${fatbin}
  COMMAND ${TRANSHIP_NVCC} -std=c++20 -Werror all-warnings -Xfatbin -compress-all -I ${PROJECT_SOURCE_DIR}/src -fatbin ${codes}
    -MD -MT ${fatbin} -MF ${fatbin}.d -o ${fatbin} ${PROJECT_SOURCE_DIR}/src/tranship/cuda/kernels.cu
  DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/cuda/kernels.cu DEPFILE ${fatbin}.d
  COMMENT "Compiling the device code for ${TRANSHIP_CUDA_ARCHITECTURES}" VERBATIM)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda/kernels.cpp CONTENT [[// The device code, as it is.
asm(R"(
  .section .rodata
  .global tranship_cuda_kernels
  .balign 64
tranship_cuda_kernels:
  .incbin "@fatbin@"
  .byte 0
  .section .note.GNU-stack, "", @progbits
)");
]] @ONLY)

file(GLOB_RECURSE tranship_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/cuda/*.cpp)
tranship_unite(tranship_cuda_united ${PROJECT_SOURCE_DIR}/src ${tranship_cuda_sources})
add_library(tranship_cuda ${tranship_cuda_united} ${PROJECT_BINARY_DIR}/cuda/kernels.cpp)
add_library(tranship::cuda ALIAS tranship_cuda)
set_source_files_properties(${PROJECT_BINARY_DIR}/cuda/kernels.cpp PROPERTIES OBJECT_DEPENDS ${fatbin}
  SKIP_PRECOMPILE_HEADERS ON)
set_target_properties(tranship_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME cuda)
target_compile_options(tranship_cuda PRIVATE ${tranship_warnings})
target_include_directories(tranship_cuda SYSTEM PRIVATE ${TRANSHIP_CUDA_INCLUDE_DIR})
target_link_libraries(tranship_cuda PUBLIC tranship::tranship PRIVATE fmt::fmt ${CMAKE_DL_LIBS})
# Registrations are objects of an archive that no program names.
target_link_options(tranship_cuda INTERFACE LINKER:-u,tranship_cuda_devices LINKER:-u,tranship_cuda_software)
