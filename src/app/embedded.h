#pragma once

#include <string_view>

namespace reprise {

// Data that the build puts into the binary (embed.cmake).
std::string_view Version();
std::string_view OpenApiDocument();  // schemas/openapi.json

}  // namespace reprise
