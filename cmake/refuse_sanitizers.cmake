# tranship_refuse_sanitizers(TARGET): where the options for all of a project's targets turn a sanitizer of memory or threads
# on, a target that links TARGET is refused when the build is generated: CMake then says that it lacks a target, whose name
# is the reason. Sets `tranship_hooks_are_usable`.
function(tranship_refuse_sanitizers target)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" configuration)
  set(flags "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${configuration}} ${CMAKE_EXE_LINKER_FLAGS}")
  set(tranship_hooks_are_usable ON PARENT_SCOPE)
  if(flags MATCHES "-fsanitize=[a-z,-]*(address|thread|memory)")
    set(reason tranship::race_hooks_cannot_be_combined_with_fsanitize_${CMAKE_MATCH_1})
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_COMPILE_OPTIONS $<BUILD_INTERFACE:$<TARGET_FILE:${reason}>>)
    set(tranship_hooks_are_usable OFF PARENT_SCOPE)
  endif()
endfunction()
