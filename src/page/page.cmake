# The page in the binary, bundled again when one of its sources changes. With REPRISE_PAGE=OFF the server has no page;
# otherwise esbuild must be installed.
option(REPRISE_PAGE "Build the page that the server shows to a browser" ON)
set(PAGE_OUT ${PROJECT_BINARY_DIR}/page)
if(REPRISE_PAGE)
  find_program(ESBUILD esbuild)
  if(NOT ESBUILD)
    message(FATAL_ERROR "esbuild is missing: scripts/deps run installs it (or build without the page: -DREPRISE_PAGE=OFF)")
  endif()
  enable_language(ASM)
  file(GLOB_RECURSE PAGE_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.ts ${CMAKE_CURRENT_LIST_DIR}/*.tsx
       ${CMAKE_CURRENT_LIST_DIR}/*.js ${CMAKE_CURRENT_LIST_DIR}/*.css ${CMAKE_CURRENT_LIST_DIR}/*.html
       ${CMAKE_CURRENT_LIST_DIR}/install/* ${CMAKE_CURRENT_LIST_DIR}/bundle.cmake)
  list(REMOVE_ITEM PAGE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/wire.d.ts)  # types alone, made by scripts/page-types
  add_custom_command(
    OUTPUT ${PAGE_OUT}/page_assets.cc ${PAGE_OUT}/page_assets.S
    COMMAND ${CMAKE_COMMAND} -D ESBUILD=${ESBUILD} -D SOURCE=${CMAKE_CURRENT_LIST_DIR} -D OUT=${PAGE_OUT}
            -P ${CMAKE_CURRENT_LIST_DIR}/bundle.cmake
    DEPENDS ${PAGE_SOURCES}
    COMMENT "Bundling the page"
    VERBATIM)
  list(APPEND APP_SOURCES ${PAGE_OUT}/page_assets.cc ${PAGE_OUT}/page_assets.S)
else()
  file(WRITE ${PAGE_OUT}/no_page.cc "#include \"app/embedded.h\"\n
std::span<const reprise::PageAsset> reprise::PageAssets() { return {}; }\n")
  list(APPEND APP_SOURCES ${PAGE_OUT}/no_page.cc)
endif()
