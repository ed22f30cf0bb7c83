# SPDX-License-Identifier: Apache-2.0
#
# bin/knut, include/knut/*.h, lib/libduckdb.so, lib/pkgconfig/knut.pc and lib/libknut.a: the layers up
# to "lib" as one archive, so that a user links one file and sees only the public headers.

include(GNUInstallDirs)

set(objects "")
foreach(layer IN LISTS KN_LAYERS)
  get_target_property(type kn_${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" AND NOT layer STREQUAL "cli")
    list(APPEND objects $<TARGET_OBJECTS:kn_${layer}>)
  endif()
endforeach()
if(objects)
  add_library(knut_archive STATIC ${objects})
  set_target_properties(knut_archive PROPERTIES OUTPUT_NAME knut LINKER_LANGUAGE C)
  install(TARGETS knut_archive ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET knut)
  install(TARGETS knut RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/knut DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES ${KN_DEPS}/lib/libduckdb.so DESTINATION lib)
# What reads object stores, where the library looks for it (src/engine/remote.c).
install(FILES ${KN_DEPS}/ext/httpfs.duckdb_extension DESTINATION lib/knut)

# The prefix is where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH KN_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/knut.pc.in ${PROJECT_BINARY_DIR}/knut.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/knut.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
