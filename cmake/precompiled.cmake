# Sanitized builds precompile the standard headers that nearly all sources include: that is a fifth to a third of their time.
# The release has no precompiled headers, so a source that lacks an include does not pass.
set(tranship_precompiled_headers <algorithm> <array> <cstddef> <cstdint> <cstring> <functional> <map> <memory> <mutex> <numeric>
  <optional> <set> <span> <string> <string_view> <utility> <vector>)

# tranship_precompile(TARGET [HEADER...]): with these headers besides.
function(tranship_precompile target)
  if(TRANSHIP_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE ${tranship_precompiled_headers} ${ARGN})
    tranship_use_precompiled(${target})
  endif()
endfunction()

# So that a compiler cache sees that precompiled headers are used.
function(tranship_use_precompiled target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()
