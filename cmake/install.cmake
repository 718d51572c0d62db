# `find_package(tranship)` for an installed copy: headers, the library with its exported target, the version, the command.
include(CMakePackageConfigHelpers)

set(tranship_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tranship)
get_target_property(tranship_header_sets tranship INTERFACE_HEADER_SETS)
set(tranship_dri_headers)
if("dri" IN_LIST tranship_header_sets)
  set(tranship_dri_headers FILE_SET dri)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/dri.h.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
endif()
install(TARGETS tranship EXPORT tranship_targets FILE_SET HEADERS ${tranship_dri_headers})
if(TARGET tranship_vsip)
  install(TARGETS tranship_vsip tranship_vsip_checked EXPORT tranship_targets)
endif()
install(EXPORT tranship_targets NAMESPACE tranship:: FILE tranship-targets.cmake DESTINATION ${tranship_cmake_folder})

get_target_property(tranship_library_type tranship TYPE)
configure_package_config_file(cmake/tranship-config.cmake.in ${PROJECT_BINARY_DIR}/tranship-config.cmake
  INSTALL_DESTINATION ${tranship_cmake_folder} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tranship-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tranship-config.cmake ${PROJECT_BINARY_DIR}/tranship-config-version.cmake
  DESTINATION ${tranship_cmake_folder})

# For programs in C and for builds without CMake: `pkg-config --libs tranship`. An installed copy may be moved. An archive
# names nothing itself, so that what it needs is linked without `--static`, too.
set(tranship_pc_needs " -lfmt -lhwloc -lboost_context -lz -ldeflate -lstdc++ -lm -pthread")
set(tranship_vsip_pc_needs " -lfftw3f -lfftw3 -lstdc++ -lm")
foreach(tranship_pc tranship_pc tranship_vsip_pc)
  if(tranship_library_type STREQUAL "STATIC_LIBRARY")
    set(${tranship_pc}_libs "${${tranship_pc}_needs}")
    set(${tranship_pc}_private_libs "")
  else()
    set(${tranship_pc}_libs "")
    set(${tranship_pc}_private_libs "${${tranship_pc}_needs}")
  endif()
endforeach()
file(RELATIVE_PATH tranship_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tranship.pc.in ${PROJECT_BINARY_DIR}/tranship.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tranship.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET tranship_vsip)
  foreach(tranship_vsip_library vsip vsip_checked)
    string(REPLACE "_" "-" tranship_vsip_package tranship-${tranship_vsip_library})
    configure_file(cmake/tranship-vsip.pc.in ${PROJECT_BINARY_DIR}/${tranship_vsip_package}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${tranship_vsip_package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/vsip.h.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
endif()

if(TARGET tranship_cli AND SKBUILD)
  # Beside the interpreter, where pip puts commands.
  install(TARGETS tranship_cli RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
elseif(TARGET tranship_cli)
  install(TARGETS tranship_cli)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/tranship)
  install(FILES ${PROJECT_BINARY_DIR}/tranship.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
