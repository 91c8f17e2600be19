# The libraries and headers that other programs build with (docs/embedding.md): cmake --install BUILD --component
# development. An ordinary installation lacks them.
if(REPRISE_SANITIZE)
  return()
endif()
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/reprise)
set(DEVELOPMENT COMPONENT development EXCLUDE_FROM_ALL)
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${DEVELOPMENT})
install(TARGETS reprise_lib reprise_flags reprise_app reprise_api reprise_doors reprise_wire reprise_people reprise_transcript reprise_moves reprise_engine reprise_blame reprise_agent reprise_approval reprise_s3 reprise_postgres reprise_redis
  reprise_store reprise_model reprise_tools reprise_rewind reprise_mcp reprise_net reprise_telemetry reprise_process reprise_terminal reprise_crypto reprise_domain reprise_base
  EXPORT reprise ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/reprise ${DEVELOPMENT}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT reprise NAMESPACE reprise:: FILE repriseTargets.cmake DESTINATION ${PACKAGE_DIR} ${DEVELOPMENT})

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/repriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/repriseConfig.cmake ${PROJECT_BINARY_DIR}/generated/repriseConfigVersion.cmake
  DESTINATION ${PACKAGE_DIR} ${DEVELOPMENT})
