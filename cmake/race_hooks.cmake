# tranship::race_hooks: a program that links it is compiled with the instrumentation of the thread sanitizer, and the
# simulator sees its own loads and stores (docs/one-sided.md). The sanitizer's run-time library is not linked: the calls of
# the instrumentation are answered by the library of this target, which is an archive of its own.
if(TRANSHIP_LAYERS AND NOT TRANSHIP_LAYERS MATCHES "fabric")
  return()
endif()
set(tranship_hooks_folder ${PROJECT_SOURCE_DIR}/src/tranship/fabric/sim/hooks)
add_library(tranship_race_hooks STATIC ${tranship_hooks_folder}/race_hooks.cpp)
add_library(tranship::race_hooks ALIAS tranship_race_hooks)
set_target_properties(tranship_race_hooks PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME race_hooks)
# The hooks themselves: one name for many functions, and the instruction for 16 bytes.
target_compile_options(tranship_race_hooks PRIVATE ${tranship_warnings} $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-attributes>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(tranship_race_hooks PRIVATE -mcx16)
endif()
target_link_libraries(tranship_race_hooks PUBLIC tranship::tranship)
# Copies are calls that can be hooked, and errors name lines.
set(tranship_hooks_header $<BUILD_INTERFACE:${tranship_hooks_folder}/race_hooks.h>)
string(APPEND tranship_hooks_header $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/cmake/tranship/race_hooks.h>)
target_compile_options(tranship_race_hooks INTERFACE
  -fsanitize=thread -g -U_FORTIFY_SOURCE -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -fno-builtin-memcmp
  "SHELL:-include ${tranship_hooks_header}"
  # No warning about fences, which the sanitizer does not model; and the tables by which libdw finds lines.
  $<$<OR:$<COMPILE_LANG_AND_ID:C,GNU>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-tsan>
  $<$<OR:$<COMPILE_LANG_AND_ID:C,Clang>,$<COMPILE_LANG_AND_ID:CXX,Clang>>:-gdwarf-aranges>)
target_compile_definitions(tranship_race_hooks INTERFACE TRANSHIP_RACE_HOOKS)
target_link_options(tranship_race_hooks INTERFACE LINKER:-u,tranship_race_hooks)
# Where all of a build is sanitized, the name of this target says why it cannot be linked.
include(${CMAKE_CURRENT_LIST_DIR}/refuse_sanitizers.cmake)
tranship_refuse_sanitizers(tranship_race_hooks)
