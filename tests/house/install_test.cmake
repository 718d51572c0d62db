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
foreach(header ${headers})
  string(APPEND all "#include <${header}>\n")
endforeach()
file(WRITE ${work}/all_headers.hpp "${all}")

run(${CMAKE_COMMAND} -S ${project} -B ${work}/build -G ${generator}
  -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
  -D CMAKE_PREFIX_PATH=${work}/prefix -D expected_version=${version} -D headers=${work})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/outside_c)
if(NOT output MATCHES "6 elements")
  message(FATAL_ERROR "the outside program in C printed '${output}' instead of '6 elements'")
endif()
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
  execute_process(COMMAND ${pkg_config} --cflags --libs --static tranship OUTPUT_VARIABLE options
    COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(options UNIX_COMMAND "${options}")
  run(${c_compiler} -std=c11 -o ${work}/by_pkg_config ${project}/outside.c ${options})
  run(${work}/by_pkg_config)
endif()
run(${work}/build/outside)
message(STATUS "outside project: ${output}")
if(NOT output MATCHES "6 cells")
  message(FATAL_ERROR "the outside project printed '${output}' instead of '6 cells'")
endif()
