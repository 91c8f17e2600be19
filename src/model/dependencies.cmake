# What the model clients link, as REPRISE_MODEL_LIBS; included by src/CMakeLists.txt.
#   libsimdjson-dev  parses the events of every stream, ten times faster than nlohmann/json (0.2 MB of resident memory)
find_package(simdjson REQUIRED)
set(REPRISE_MODEL_LIBS simdjson::simdjson)
# The offline model's texts and scenes are data.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/offline/data.json)
file(READ ${CMAKE_CURRENT_LIST_DIR}/offline/data.json REPRISE_OFFLINE_DATA)
configure_file(${CMAKE_CURRENT_LIST_DIR}/offline/data.cc.in ${PROJECT_BINARY_DIR}/generated/offline_data.cc @ONLY)
list(APPEND MODEL_SOURCES ${PROJECT_BINARY_DIR}/generated/offline_data.cc)
