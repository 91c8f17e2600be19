# Man pages and completions, which the program prints itself, and what `cmake --install` puts where.
include(GNUInstallDirs)

set(DOCS ${PROJECT_BINARY_DIR}/generated)
if(REPRISE_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()  # nobody installs the one, and the other does not run here
endif()

# The folders are made anew: a command that is gone leaves no page.
add_custom_command(
  OUTPUT ${DOCS}/docs.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${DOCS}/man1 ${DOCS}/completions
  COMMAND ${CMAKE_COMMAND} -E make_directory ${DOCS}/man1 ${DOCS}/completions
  COMMAND reprise man --all ${DOCS}/man1
  COMMAND reprise completion bash > ${DOCS}/completions/reprise
  COMMAND reprise completion zsh > ${DOCS}/completions/_reprise
  COMMAND reprise completion fish > ${DOCS}/completions/reprise.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${DOCS}/docs.stamp
  DEPENDS reprise VERBATIM)
add_custom_target(docs ALL DEPENDS ${DOCS}/docs.stamp)

install(TARGETS reprise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS reprise-document RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/reprise)
install(DIRECTORY ${DOCS}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${DOCS}/completions/reprise DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${DOCS}/completions/_reprise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${DOCS}/completions/reprise.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY schemas DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)
install(DIRECTORY schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/reprise FILES_MATCHING PATTERN *.json)

# systemd looks for users' units below share of /usr, of /usr/local and of ~/.local. Which of them it is may be said as
# late as `cmake --install --prefix`.
install(CODE "set(BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  configure_file(\"${CMAKE_CURRENT_LIST_DIR}/reprise.service.in\" \"${DOCS}/reprise.service\" @ONLY)")
install(FILES ${DOCS}/reprise.service ${CMAKE_CURRENT_LIST_DIR}/reprise.socket
  DESTINATION ${CMAKE_INSTALL_DATADIR}/systemd/user)

include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
