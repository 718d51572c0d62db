# The VSIPL interface: `vsip.h`, in two libraries of the same calls. tranship::vsip is the fast one; tranship::vsip_checked
# examines every call first. A program links one of them, and includes <vsip.h>. FFTW does the FFTs, and nothing else of
# tranship needs it.
if(NOT TRANSHIP_VSIP OR TRANSHIP_LAYERS)
  return()
endif()
find_path(FFTW_INCLUDE_DIR fftw3.h)
find_library(FFTW_LIBRARY fftw3)
find_library(FFTWF_LIBRARY fftw3f)
mark_as_advanced(FFTW_INCLUDE_DIR FFTW_LIBRARY FFTWF_LIBRARY)
if(NOT FFTW_INCLUDE_DIR OR NOT FFTW_LIBRARY OR NOT FFTWF_LIBRARY)
  message(STATUS "vsip.h is not built: FFTW was not found in both precisions (Debian: libfftw3-dev)")
  return()
endif()

# An installed copy names the libraries and not where they were.
set(FFTW_LINK $<BUILD_INTERFACE:${FFTW_LIBRARY}> $<BUILD_INTERFACE:${FFTWF_LIBRARY}> $<INSTALL_INTERFACE:fftw3>
  $<INSTALL_INTERFACE:fftw3f>)
file(GLOB tranship_vsip_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tranship/face/vsip/*.cpp)
tranship_unite(tranship_vsip_united ${PROJECT_SOURCE_DIR}/src ${tranship_vsip_sources})
foreach(name vsip vsip_checked)
  add_library(tranship_${name} ${tranship_vsip_united})
  add_library(tranship::${name} ALIAS tranship_${name})
  tranship_optimize_as_layer(tranship_${name} face)
  set_target_properties(tranship_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_options(tranship_${name} PRIVATE ${tranship_warnings})
  target_include_directories(tranship_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src/tranship/face/vsip> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tranship/face/vsip>
    PRIVATE ${FFTW_INCLUDE_DIR})
  target_link_libraries(tranship_${name} PUBLIC tranship::tranship PRIVATE ${FFTW_LINK} m)
endforeach()
target_compile_definitions(tranship_vsip_checked PRIVATE TRANSHIP_VSIP_CHECKS)
