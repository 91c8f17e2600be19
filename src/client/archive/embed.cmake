# Puts share.html, the page of `reprise export --format html`, into the binary.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/share.html)
file(READ ${CMAKE_CURRENT_LIST_DIR}/share.html REPRISE_SHARE_PAGE)
configure_file(${CMAKE_CURRENT_LIST_DIR}/share_html.cc.in ${PROJECT_BINARY_DIR}/generated/share_html.cc @ONLY)
list(APPEND ARCHIVE_SOURCES ${PROJECT_BINARY_DIR}/generated/share_html.cc)
