# CPack runs this between installing into its staging folder and packing that. It changes what `cmake --install` does
# differently from Debian's rules.
set(ROOT ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(DOC ${ROOT}/share/doc/reprise)
set(VERSION ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

file(REMOVE ${DOC}/LICENSE)  # `copyright` names its place on every Debian
configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright ${DOC}/copyright COPYONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/changelog.in ${DOC}/changelog.Debian @ONLY)
# reprise-start needs no library, on purpose (src/process/start).
file(WRITE ${ROOT}/share/lintian/overrides/reprise "reprise: statically-linked-binary *\n")
file(MAKE_DIRECTORY ${ROOT}/share/zsh)
file(RENAME ${ROOT}/share/zsh/site-functions ${ROOT}/share/zsh/vendor-completions)

file(GLOB COMPRESSED ${ROOT}/share/man/man1/*.1 ${DOC}/changelog.Debian)
execute_process(COMMAND gzip -9n ${COMPRESSED} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE FILES ${ROOT}/share/*)
file(CHMOD ${FILES} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
