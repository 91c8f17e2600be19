#pragma once

#include <span>

#include "api/server.h"

namespace reprise {

// The page's files, index.html among them, which src/page/bundle.cmake puts into the binary. Empty if there is no page.
std::span<const PageAsset> PageAssets();

}  // namespace reprise
