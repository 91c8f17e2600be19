#pragma once

#include <span>

#include "api/server.h"

namespace reprise {

// What src/page/bundle.cmake puts into the binary: the page's files, index.html among them. Empty: there is no page.
std::span<const PageAsset> PageAssets();

}  // namespace reprise
