#pragma once

#include <span>
#include <string_view>

#include "doors/api/server.h"

namespace reprise {

// Data that the build puts into the binary (embed.cmake).
std::string_view Version();
std::string_view OpenApiDocument();  // schemas/openapi.json

// The page's files, index.html among them, which src/page/bundle.cmake puts into the binary. Empty if there is no page.
std::span<const PageAsset> PageAssets();

}  // namespace reprise
