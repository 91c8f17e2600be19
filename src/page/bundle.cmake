# Makes the page: bundles TypeScript with esbuild, names each file by its digest, packs it, and writes the C++ that holds
# the bytes. The same sources and packages give the same bytes.
#   cmake -D ESBUILD=... -D SOURCE=src/page -D OUT=... -P bundle.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${OUT}/bundle ${OUT}/packed)
file(MAKE_DIRECTORY ${OUT}/bundle ${OUT}/packed)

# Debian's packages of JavaScript libraries.
set(ENV{NODE_PATH} "/usr/share/nodejs:/usr/lib/nodejs:/usr/share/javascript")
set(HOW --bundle --minify --target=es2021 --main-fields=module,main --charset=utf8 --legal-comments=none --log-level=warning)
# The highlighter runs in a worker, so it is a file of its own, whose name the page has to know.
execute_process(
  COMMAND ${ESBUILD} ${SOURCE}/markdown/highlighter.ts ${HOW} --format=iife --entry-names=[hash] --metafile=${OUT}/meta_highlighter.json --outdir=${OUT}/bundle
  WORKING_DIRECTORY ${SOURCE}/../..
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB HIGHLIGHTER RELATIVE ${OUT}/bundle ${OUT}/bundle/*.js)
# A part that is loaded later never comes without main.tsx. To say so (by --inject) puts all that main.tsx loads into one
# file; otherwise there would be twenty, one for each set of parts that shares something, and 5 % more bytes.
execute_process(
  COMMAND ${ESBUILD} ${SOURCE}/main.tsx ${SOURCE}/style.css ${HOW} --splitting --format=esm --jsx=automatic
          --inject:${SOURCE}/markdown/dompurify_shim.js --inject:${SOURCE}/main.tsx --define:process.env.NODE_ENV="production" --define:HIGHLIGHTER="/assets/${HIGHLIGHTER}"
          --entry-names=[hash] --chunk-names=[hash] --metafile=${OUT}/meta.json --outdir=${OUT}/bundle
  WORKING_DIRECTORY ${SOURCE}/../..
  RESULT_VARIABLE FAILED)
if(FAILED)
  message(FATAL_ERROR "esbuild could not make the page")
endif()

file(READ ${OUT}/meta.json META)
file(READ ${SOURCE}/index.html INDEX)

# Packs one file and adds a line to the table.
function(add_asset path file type)
  execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${OUT}/packed/${path}.gz COMMAND_ERROR_IS_FATAL ANY)
  file(SIZE ${OUT}/packed/${path}.gz SIZE)
  file(SHA256 ${file} DIGEST)
  string(SUBSTRING ${DIGEST} 0 16 DIGEST)
  list(LENGTH NAMES NUMBER)
  set(NAMES ${NAMES} ${path} PARENT_SCOPE)
  set(SIZE ${SIZE} PARENT_SCOPE)
  string(APPEND ASM "asset_${NUMBER}: .incbin \"${OUT}/packed/${path}.gz\"\nasset_${NUMBER}_end:\n")
  set(ASM "${ASM}" PARENT_SCOPE)
  string(APPEND TABLE "    {\"${path}\", \"${type}\", \"${DIGEST}\", Bytes(asset_${NUMBER}, asset_${NUMBER}_end)},\n")
  set(TABLE "${TABLE}" PARENT_SCOPE)
  string(APPEND LABELS "extern \"C\" const char asset_${NUMBER}[], asset_${NUMBER}_end[];\n")
  set(LABELS "${LABELS}" PARENT_SCOPE)
  string(APPEND GLOBALS ".global asset_${NUMBER}, asset_${NUMBER}_end\n")
  set(GLOBALS "${GLOBALS}" PARENT_SCOPE)
endfunction()

set(NAMES "")
set(FIRST 0)
set(LAZY 0)
file(GLOB FILES RELATIVE ${OUT}/bundle ${OUT}/bundle/*.js ${OUT}/bundle/*.css)
list(SORT FILES)
# The files that the entry loads at once, by static imports.
set(AT_ONCE "")
string(JSON COUNT LENGTH "${META}" outputs)
math(EXPR LAST "${COUNT} - 1")
foreach(I RANGE ${LAST})
  string(JSON KEY MEMBER "${META}" outputs ${I})
  string(JSON ENTRY ERROR_VARIABLE NONE GET "${META}" outputs ${KEY} entryPoint)
  if(ENTRY MATCHES "main\\.tsx$|style\\.css$")
    get_filename_component(NAME ${KEY} NAME)
    get_filename_component(KIND ${ENTRY} NAME_WE)
    get_filename_component(EXTENSION ${ENTRY} LAST_EXT)
    if(EXTENSION STREQUAL ".css")
      string(REPLACE "/assets/main.css" "/assets/${NAME}" INDEX "${INDEX}")
    else()
      string(REPLACE "/assets/main.js" "/assets/${NAME}" INDEX "${INDEX}")
    endif()
    list(APPEND AT_ONCE ${NAME})
    string(JSON IMPORTS LENGTH "${META}" outputs ${KEY} imports)
    if(IMPORTS GREATER 0)
      math(EXPR LAST_IMPORT "${IMPORTS} - 1")
      foreach(J RANGE ${LAST_IMPORT})
        string(JSON HOW GET "${META}" outputs ${KEY} imports ${J} kind)
        string(JSON WHAT GET "${META}" outputs ${KEY} imports ${J} path)
        get_filename_component(WHAT ${WHAT} NAME)
        if(HOW STREQUAL "import-statement")
          list(APPEND AT_ONCE ${WHAT})
          # Fetched together with the entry, not after it.
          string(REPLACE "</head>" "<link rel=\"modulepreload\" href=\"/assets/${WHAT}\">\n</head>" INDEX "${INDEX}")
        endif()
      endforeach()
    endif()
  endif()
endforeach()
foreach(NAME ${FILES})
  if(NAME MATCHES "\\.css$")
    set(TYPE "text/css; charset=utf-8")
  else()
    set(TYPE "text/javascript; charset=utf-8")
  endif()
  add_asset(${NAME} ${OUT}/bundle/${NAME} ${TYPE})
  if(NAME IN_LIST AT_ONCE)
    math(EXPR FIRST "${FIRST} + ${SIZE}")
  else()
    math(EXPR LAZY "${LAZY} + ${SIZE}")
  endif()
endforeach()
# What a browser needs to install the page keeps its name.
add_asset(worker.js ${SOURCE}/install/worker.js "text/javascript; charset=utf-8")
math(EXPR LAZY "${LAZY} + ${SIZE}")
add_asset(page.webmanifest ${SOURCE}/install/page.webmanifest "application/manifest+json")
add_asset(icon.svg ${SOURCE}/install/icon.svg "image/svg+xml")
file(WRITE ${OUT}/index.html "${INDEX}")
add_asset(index.html ${OUT}/index.html "text/html; charset=utf-8")
message("the page: ${FIRST} bytes packed (${LAZY} more when they are needed)")
if(FIRST GREATER 153600)
  message(FATAL_ERROR "the page is larger than 150 KB, packed and without what is loaded later")
endif()

file(WRITE ${OUT}/page_assets.S ".section .rodata\n${GLOBALS}${ASM}.section .note.GNU-stack,\"\",%progbits\n")
file(WRITE ${OUT}/page_assets.cc "#include \"app/embedded.h\"

#include <array>

${LABELS}
namespace reprise {
namespace {

std::string_view Bytes(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::span<const PageAsset> PageAssets() {
  static const std::array kAssets = std::to_array<PageAsset>({
${TABLE}  });
  return kAssets;
}

}  // namespace reprise
")
