# Which headers are public: all of them but those of the command line and those whose first lines say "// Private:"
# or "Private:" (base/fail.hpp, which drags fmt along). Sets `tranship_headers` (all that compile alone) and
# `tranship_public_headers` (what is installed; .def tables belong to the headers that include them).
file(GLOB_RECURSE tranship_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/*.hpp)
file(GLOB_RECURSE tranship_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/*.def)
foreach(header ${tranship_headers})
  if(header MATCHES "/src/tranship/cli/")
    continue()
  endif()
  file(READ ${header} head LIMIT 600)
  if(NOT head MATCHES "^//[^#]*Private:")
    list(APPEND tranship_public_headers ${header})
  endif()
endforeach()
