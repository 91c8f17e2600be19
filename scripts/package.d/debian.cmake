# The Debian package. scripts/package makes it and adds what is known only after the build.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Reprise developers <developers@reprise.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "local LLM agent server whose every turn is a file you own")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Reprise runs an LLM agent on your own machine, for you alone: in a terminal
and over HTTP. Each message, with everything that the agent does about it, is
streamed, waits for your approval where it should, and becomes one encrypted
JSON file. An earlier message can be changed: the agent goes back to the state
before it, and nothing is lost.

It works without a network too. This package brings a systemd user service.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# For the sandbox of commands, certificates of model providers, PDF files and time zones.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "bubblewrap, ca-certificates, poppler-utils, tzdata")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, libpq5")
include(CPack)
