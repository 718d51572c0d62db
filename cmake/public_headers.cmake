# Which headers are installed: those that public_headers.txt lists, and those whose first line says "// Detail:", which the
# listed ones include. tests/house/check_public.py checks that these are all, and no more than, what the listed ones need.
# Sets `tranship_headers` (all that compile alone) and `tranship_installed_headers`.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/public_headers.txt tranship_installed_headers REGEX "^tranship/")
list(TRANSFORM tranship_installed_headers REPLACE ":.*" "")
list(TRANSFORM tranship_installed_headers PREPEND ${PROJECT_SOURCE_DIR}/src/)

file(GLOB_RECURSE tranship_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/*.hpp)
file(GLOB_RECURSE tranship_tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/*.def)
foreach(header ${tranship_headers} ${tranship_tables})
  file(READ ${header} head LIMIT 20)
  if(head MATCHES "^// Detail: ")
    list(APPEND tranship_installed_headers ${header})
  endif()
endforeach()
