# Programs that are compiled with tranship::race_hooks, by g++ and by clang, with and without optimization.
set(hooks ${CMAKE_CURRENT_SOURCE_DIR}/fabric/sim/hooks)
set(hooks_header ${PROJECT_SOURCE_DIR}/src/tranship/fabric/sim/hooks/race_hooks.h)
function(tranship_hooks_test name)
  add_test(NAME race_hooks.${name} COMMAND ${ARGN} COMMAND_EXPAND_LISTS)
  set_tests_properties(race_hooks.${name} PROPERTIES LABELS fabric)
endfunction()

if(tranship_hooks_are_usable)
  add_executable(race_hooks_cases ${hooks}/cases.cpp)
  target_compile_options(race_hooks_cases PRIVATE ${TRANSHIP_TEST_OPTIONS})
  target_compile_definitions(race_hooks_cases PRIVATE $<$<BOOL:${LIBDW_INCLUDE_DIR}>:HAS_LINES>)
  target_link_libraries(race_hooks_cases PRIVATE tranship::race_hooks)
  add_dependencies(test_fabric race_hooks_cases)
  tranship_hooks_test(cases race_hooks_cases)

  # The other compiler. It is no part of this build, so it is called by name.
  find_program(TRANSHIP_CLANGXX clang++)
  mark_as_advanced(TRANSHIP_CLANGXX)
  if(TRANSHIP_CLANGXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(program ${CMAKE_CURRENT_BINARY_DIR}/race_hooks_cases_clang)
    add_custom_command(OUTPUT ${program}.o
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${TRANSHIP_CLANGXX} -std=c++20 -O2 -Wall -Wextra -Werror -fsanitize=thread -g -gdwarf-aranges
        -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -fno-builtin-memcmp
        -include ${hooks_header} -DTRANSHIP_RACE_HOOKS
        $<$<BOOL:${LIBDW_INCLUDE_DIR}>:-DHAS_LINES> -I${PROJECT_SOURCE_DIR}/src -MD -MF ${program}.d -o ${program}.o -c ${hooks}/cases.cpp
      DEPENDS ${hooks}/cases.cpp ${hooks_header} DEPFILE ${program}.d
      COMMENT "Compiling the cases of the race hooks with clang++" COMMAND_EXPAND_LISTS VERBATIM)
    add_executable(race_hooks_cases_clang ${program}.o)
    set_target_properties(race_hooks_cases_clang PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(race_hooks_cases_clang PRIVATE tranship::race_hooks)
    add_dependencies(test_fabric race_hooks_cases_clang)
    tranship_hooks_test(cases_clang race_hooks_cases_clang)
  endif()

  # The run-time library of the sanitizer, by an option of the linker.
  add_executable(race_hooks_beside_runtime ${PROJECT_SOURCE_DIR}/tests/house/outside/hooked.cpp)
  target_link_options(race_hooks_beside_runtime PRIVATE -fsanitize=thread)
  target_link_libraries(race_hooks_beside_runtime PRIVATE tranship::race_hooks)
  add_dependencies(test_fabric race_hooks_beside_runtime)
  tranship_hooks_test(beside_runtime race_hooks_beside_runtime)
  set_tests_properties(race_hooks.beside_runtime PROPERTIES PASS_REGULAR_EXPRESSION
    "compiled with tranship::race_hooks and linked with the run-time library of the thread sanitizer")
endif()

# One of the two compilers, and with the options of the target, refuses the address sanitizer.
foreach(options "-fsanitize=address" "-fsanitize=address -fsanitize=thread")
  separate_arguments(words UNIX_COMMAND "${options}")
  list(LENGTH words count)
  tranship_hooks_test(refused.${count} ${CMAKE_CXX_COMPILER} ${words} -include ${hooks_header} -fsyntax-only -x c++ /dev/null)
  set_tests_properties(race_hooks.refused.${count} PROPERTIES PASS_REGULAR_EXPRESSION
    "race_hooks cannot be combined with -fsanitize=address|incompatible with|not allowed with")
endforeach()
