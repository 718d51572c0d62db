# Configures the tree as on a machine without nvcc, and builds nothing: there is no tranship::cuda, and a line says why.
file(REMOVE_RECURSE ${work})
file(WRITE ${work}/look.cmake [[
function(look)
  if(TARGET tranship::cuda)
    message(FATAL_ERROR "tranship::cuda is a target")
  endif()
  if(NOT TARGET tranship::tranship)
    message(FATAL_ERROR "tranship::tranship is no target")
  endif()
  message(STATUS "looked at the targets")
endfunction()
cmake_language(DEFER CALL look)
]])
# A name that is known to be empty is not looked for.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
    -D TRANSHIP_NVCC= -D CMAKE_PROJECT_tranship_INCLUDE=${work}/look.cmake -D TRANSHIP_TESTS=OFF
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "exit status ${status}:\n${output}")
endif()
foreach(line "Cards are left out: there is no nvcc" "looked at the targets")
  if(NOT output MATCHES "${line}")
    message(FATAL_ERROR "no line says '${line}':\n${output}")
  endif()
endforeach()
