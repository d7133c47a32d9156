# `cmake --install` and find_package(attest): the binary, and the libraries and headers that an
# out-of-tree kernel or tool builds against (docs/your_kernel.md).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS attest RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The worker of Python kernels, found from the program beside it.
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/attest_worker.py DESTINATION ${CMAKE_INSTALL_DATADIR}/attest/scripts)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/attest_worker DESTINATION ${CMAKE_INSTALL_DATADIR}/attest/scripts
  FILES_MATCHING PATTERN "*.py")
# The plugin that docs/plugins.md builds.
install(FILES ${PROJECT_SOURCE_DIR}/docs/examples/my_plugin/my_plugin.c
  DESTINATION ${CMAKE_INSTALL_DATADIR}/attest/examples/my_plugin)
get_property(attest_libraries GLOBAL PROPERTY ATTEST_LIBRARIES)
# What `cmake --install` copies, and no test: cmake --build build --target sdk
add_custom_target(sdk DEPENDS attest attest_c ${attest_libraries})
install(TARGETS ${attest_libraries}
  EXPORT attest_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attest)
install(EXPORT attest_targets NAMESPACE attest:: FILE attestTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attest)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/attestConfig.cmake.in
  ${PROJECT_BINARY_DIR}/attestConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attest)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attestConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attestConfig.cmake ${PROJECT_BINARY_DIR}/attestConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attest)
