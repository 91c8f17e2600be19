# The files that `cmake --install` installs.
include(GNUInstallDirs)

if(REPRISE_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()  # the first is not for use, and the second does not run here
endif()

install(TARGETS reprise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS reprise-document reprise-start RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/reprise)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})  # man pages and completions
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY schemas DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)
install(DIRECTORY schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise FILES_MATCHING PATTERN *.json)

# systemd looks for users' units below share of /usr, /usr/local and ~/.local. The prefix may be set as late as by
# `cmake --install --prefix`, by several at a time, so the unit is written in its place.
install(FILES ${CMAKE_CURRENT_LIST_DIR}/reprise.socket DESTINATION ${CMAKE_INSTALL_DATADIR}/systemd/user)
install(CODE "set(BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(UNIT \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/systemd/user/reprise.service\")
  configure_file(\"${CMAKE_CURRENT_LIST_DIR}/reprise.service.in\" \"\$ENV{DESTDIR}\${UNIT}\" @ONLY)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${UNIT}\")")

include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
