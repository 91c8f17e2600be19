# Puts the version and schemas/openapi.json into the binary, so that it serves its description from wherever it runs.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/schemas/openapi.json)
file(READ ${PROJECT_SOURCE_DIR}/schemas/openapi.json REPRISE_OPENAPI)
configure_file(${CMAKE_CURRENT_LIST_DIR}/embedded.cc.in ${PROJECT_BINARY_DIR}/generated/embedded.cc @ONLY)
list(APPEND APP_SOURCES ${PROJECT_BINARY_DIR}/generated/embedded.cc)
