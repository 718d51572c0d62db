# The modules by which ranks reach other machines: one for each ABI of MPI whose header is found. They are linked to no
# MPI; the library loads the one that fits the MPI of the process.
set(TRANSHIP_MPI_OPENMPI_INCLUDE "" CACHE PATH "The folder of Open MPI's mpi.h; empty: where Debian has it")
set(TRANSHIP_MPI_MPICH_INCLUDE "" CACHE PATH "The folder of MPICH's mpi.h; empty: where Debian has it")
set(TRANSHIP_MPI_ABI_INCLUDE "" CACHE PATH "The folder of mpi_abi.h, the header of the MPI standard's ABI; empty: none, as Debian has it nowhere")
set(tranship_mpi_folder ${CMAKE_INSTALL_LIBDIR}/tranship)
target_compile_definitions(tranship PRIVATE TRANSHIP_MPI_MODULE_FOLDER="${CMAKE_INSTALL_FULL_LIBDIR}/tranship"
  TRANSHIP_LIBRARY_ARCHITECTURE="${CMAKE_LIBRARY_ARCHITECTURE}")
set(tranship_mpi_modules)

function(tranship_mpi_module name abi folder) # FOLDERS TO LOOK IN
  if(NOT folder)
    find_path(TRANSHIP_FOUND_${name} mpi.h PATHS ${ARGN} NO_DEFAULT_PATH)
    mark_as_advanced(TRANSHIP_FOUND_${name})
    set(folder ${TRANSHIP_FOUND_${name}})
  endif()
  if(NOT folder)
    message(STATUS "Ranks do not meet by ${abi}: its mpi.h is not there")
    return()
  endif()
  add_library(tranship_mpi_${name} MODULE ${PROJECT_SOURCE_DIR}/src/tranship/fabric/mpi/module/mpi_module.cpp)
  set_target_properties(tranship_mpi_${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tranship)
  target_include_directories(tranship_mpi_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(tranship_mpi_${name} SYSTEM PRIVATE ${folder})
  target_compile_definitions(tranship_mpi_${name} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_compile_options(tranship_mpi_${name} PRIVATE ${tranship_warnings})
  # Nothing else in it calls a library.
  target_link_options(tranship_mpi_${name} PRIVATE LINKER:--as-needed)
  install(TARGETS tranship_mpi_${name} LIBRARY DESTINATION ${tranship_mpi_folder})
  set(tranship_mpi_modules ${tranship_mpi_modules} tranship_mpi_${name} PARENT_SCOPE)
endfunction()

tranship_mpi_module(openmpi "Open MPI" "${TRANSHIP_MPI_OPENMPI_INCLUDE}"
  /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include)
tranship_mpi_module(mpich "MPICH" "${TRANSHIP_MPI_MPICH_INCLUDE}"
  /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/mpich/include)
if(TRANSHIP_MPI_ABI_INCLUDE)
  if(NOT EXISTS ${TRANSHIP_MPI_ABI_INCLUDE}/mpi_abi.h)
    message(FATAL_ERROR "TRANSHIP_MPI_ABI_INCLUDE is ${TRANSHIP_MPI_ABI_INCLUDE}, where no mpi_abi.h is")
  endif()
  tranship_mpi_module(abi "the MPI standard" "${TRANSHIP_MPI_ABI_INCLUDE}")
  # An mpi.h that has an ABI of its own, too, then declares that of the standard.
  target_compile_definitions(tranship_mpi_abi PRIVATE MPI_ABI)
endif()
