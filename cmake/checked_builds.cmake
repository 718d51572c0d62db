# How builds that check are made fast. They precompile the standard headers that nearly all sources include: that is a fifth to
# a third of their time. The release has no precompiled headers, so a source that lacks an include does not pass.
set(tranship_precompiled_headers <algorithm> <array> <atomic> <charconv> <complex> <cstddef> <cstdint> <cstring> <deque>
  <filesystem> <functional> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <utility> <variant>
  <vector>)

# As GCC is told: Clang finds what is precompiled beside the header by itself. CMake's own way hides the header's absolute path
# from compiler caches, which then take each clone's sources for others.
set(tranship_precompiled_suffix gch)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
  set(tranship_precompiled_suffix pch)
endif()

# tranship_precompile(TARGET [HEADER...]): with these headers besides.
function(tranship_precompile target)
  if(NOT TRANSHIP_PRECOMPILED)
    return()
  endif()
  set(headers ${tranship_precompiled_headers} ${ARGN})
  target_precompile_headers(${target} PRIVATE ${headers})
  tranship_use_precompiled(${target})
  # What is precompiled names the folder that it lies in. A compiler cache takes the sum beside it instead (./do says so),
  # which is of what the headers say, and the same in all builds and clones; options it has seen by itself.
  list(TRANSFORM headers PREPEND "#include ")
  list(JOIN headers "\n" source)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir)
  file(WRITE ${folder}/precompiled.cpp "${source}\n")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -E -dD -P ${folder}/precompiled.cpp
    OUTPUT_VARIABLE text RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    string(SHA256 sum "${text}")
    file(CONFIGURE OUTPUT ${folder}/cmake_pch.hxx.${tranship_precompiled_suffix}.sum CONTENT "${sum}\n")
  endif()
endfunction()

# So that a compiler cache sees that precompiled headers are used. GCC takes what it has precompiled for the user's own and
# warns of it: the release, where nothing is precompiled, keeps these warnings.
function(tranship_use_precompiled target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>"
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# For a target that is all of one layer, or part of one.
function(tranship_optimize_as_layer target layer)
  if(layer IN_LIST TRANSHIP_UNOPTIMIZED_LAYERS)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# tranship_do_not_optimize(TARGET SOURCE...): some of the sources of a target that is optimized. What its headers are
# precompiled to is for what is optimized alike, so that these have their own.
function(tranship_do_not_optimize target)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -O0)
  if(NOT TRANSHIP_PRECOMPILED)
    return()
  endif()
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp CONTENT "")
  add_library(${target}_unoptimized OBJECT ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp)
  target_compile_options(${target}_unoptimized PRIVATE -O0)
  target_link_libraries(${target}_unoptimized PRIVATE fmt::fmt)
  set_target_properties(${target}_unoptimized PROPERTIES POSITION_INDEPENDENT_CODE ${TRANSHIP_PYTHON})
  tranship_precompile(${target}_unoptimized <fmt/core.h>)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}_unoptimized.dir/cmake_pch.hxx)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -include ${header})
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    OBJECT_DEPENDS ${header}.${tranship_precompiled_suffix})
endfunction()
