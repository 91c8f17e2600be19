# What the model clients link, as REPRISE_MODEL_LIBS; included by src/CMakeLists.txt.
#   libsimdjson-dev  parses the events of every stream, ten times faster than nlohmann/json (0.2 MB of resident memory)
find_package(simdjson REQUIRED)
set(REPRISE_MODEL_LIBS simdjson::simdjson)
