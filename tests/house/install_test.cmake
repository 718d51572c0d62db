# Installs the build into a fresh prefix, moves the prefix (an installed copy may be relocated), then configures, builds
# and runs the outside project against it, with every installed header included once. What is installed must be what the
# public headers need.
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "exit status ${status} from: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/prefix)

foreach(page man1/tranship.1 man3/dri.h.3)
  file(GLOB manual ${work}/prefix/share/man/${page})
  if(NOT manual)
    message(FATAL_ERROR "no manual ${work}/prefix/share/man/${page}")
  endif()
endforeach()

run(${python} -B ${source}/tests/house/check_public.py ${source} ${work}/prefix/include)
file(GLOB_RECURSE headers RELATIVE ${work}/prefix/include ${work}/prefix/include/tranship/*.hpp)
if(NOT headers)
  message(FATAL_ERROR "no headers below ${work}/prefix/include/tranship")
endif()
# Those that are compiled with a program's own mpi.h are included where there is one (outside/mpi.cpp).
list(REMOVE_ITEM headers tranship/mpi.hpp tranship/fabric/mpi/mpi_calls.hpp)
foreach(header ${headers})
  string(APPEND all "#include <${header}>\n")
endforeach()
file(WRITE ${work}/all_headers.hpp "${all}")

run(${CMAKE_COMMAND} -S ${project} -B ${work}/build -G ${generator}
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
  -D CMAKE_PREFIX_PATH=${work}/prefix -D expected_version=${version} -D headers=${work} "-Dmpi_include=${mpi_include}"
  -D joining_program=${source}/tests/cli/joins_by_itself.cpp)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${CMAKE_COMMAND} -S ${project}/in_c -B ${work}/build_c -G ${generator}
  -D CMAKE_BUILD_TYPE=${config} "-DCMAKE_C_FLAGS=${flags}" -D CMAKE_PREFIX_PATH=${work}/prefix
  -D expected_version=${version} -D vsip_program=${source}/tests/face/vsip/program.c)
run(${CMAKE_COMMAND} --build ${work}/build_c)
run(${work}/build_c/outside_c)
if(NOT output MATCHES "6 elements")
  message(FATAL_ERROR "the outside program in C printed '${output}' instead of '6 elements'")
endif()
file(GLOB vsip_programs ${work}/build_c/outside_vsip ${work}/build_c/outside_vsip_checked)
foreach(program ${vsip_programs})
  run(${program})
endforeach()
# The same by pkg-config, without CMake.
find_program(pkg_config pkg-config)
find_program(c_compiler NAMES gcc cc)
file(GLOB_RECURSE package ${work}/prefix/*/tranship.pc)
if(NOT package)
  message(FATAL_ERROR "no tranship.pc below ${work}/prefix")
endif()
if(pkg_config AND c_compiler AND NOT flags)
  get_filename_component(folder ${package} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  foreach(static "" --static)
    execute_process(COMMAND ${pkg_config} --cflags --libs ${static} tranship OUTPUT_VARIABLE options
      COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(options UNIX_COMMAND "${options}")
    run(${c_compiler} -std=c11 -o ${work}/by_pkg_config${static} ${project}/in_c/outside.c ${options})
    run(${work}/by_pkg_config${static})
  endforeach()
  if(EXISTS ${folder}/tranship-cuda.pc)
    foreach(static "" --static)
      execute_process(COMMAND ${pkg_config} --cflags --libs ${static} tranship-cuda OUTPUT_VARIABLE options
        COMMAND_ERROR_IS_FATAL ANY)
      separate_arguments(options UNIX_COMMAND "${options}")
      run(${compiler} -std=c++20 -o ${work}/cards${static} ${project}/cards.cpp ${options})
      run(${CMAKE_COMMAND} -E env TRANSHIP_CUDA=software:3 ${work}/cards${static})
      if(NOT output MATCHES "3 cards")
        message(FATAL_ERROR "a program linked by tranship-cuda.pc printed '${output}' instead of '3 cards'")
      endif()
    endforeach()
  endif()
  file(GLOB packages ${folder}/tranship-vsip*.pc)
  foreach(package ${packages})
    get_filename_component(name ${package} NAME_WE)
    execute_process(COMMAND ${pkg_config} --cflags --libs ${name} OUTPUT_VARIABLE options
      COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(options UNIX_COMMAND "${options}")
    run(${c_compiler} -std=c11 -o ${work}/${name} ${source}/tests/face/vsip/program.c ${options})
    run(${work}/${name})
  endforeach()
endif()
run(${work}/build/outside_hooked)
if(NOT output MATCHES "stores by rank 1")
  message(FATAL_ERROR "the outside program with hooks printed '${output}', which names no stores")
endif()
# A project whose targets are all sanitized is told that it cannot have them.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${project} -B ${work}/build_sanitized -G ${generator}
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags} -fsanitize=address"
  -D CMAKE_PREFIX_PATH=${work}/prefix -D expected_version=${version} -D headers=${work}
  -D joining_program=${source}/tests/cli/joins_by_itself.cpp
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "race_hooks_cannot_be_combined_with_fsanitize_address")
  message(FATAL_ERROR "hooks beside the address sanitizer: exit status ${status} from CMake, which said: ${output}")
endif()
# Modules of MPI are found beside the installed library: by a program that has the library in itself, and by the command,
# also where its name alone was typed.
file(GLOB_RECURSE modules ${work}/prefix/*/tranship_mpi_openmpi.so)
find_program(mpirun NAMES mpirun.openmpi)
if(modules AND mpirun)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
  execute_process(COMMAND ${mpirun} -n 1 true RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    run(${mpirun} --oversubscribe -n 2 ${work}/build/outside_joins)
  endif()
  set(ENV{PATH} "${work}/prefix/bin:$ENV{PATH}")
  run(sh -c "cd / && tranship info --json")
  if(NOT output MATCHES "${modules}")
    message(FATAL_ERROR "the command does not find ${modules}: ${output}")
  endif()
endif()
run(${work}/build/outside)
message(STATUS "outside project: ${output}")
if(NOT output MATCHES "6 cells")
  message(FATAL_ERROR "the outside project printed '${output}' instead of '6 cells'")
endif()
