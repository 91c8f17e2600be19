#pragma once

#include <string_view>

namespace reprise {

// A file of the page. The bytes live as long as the program.
struct PageAsset {
  std::string_view name;    // "5NXPGIBI.js"; "index.html" is what GET / shows
  std::string_view type;    // its Content-Type
  std::string_view digest;  // of its content, for the ETag
  std::string_view gzip;    // its content (RFC 1952)
};

}  // namespace reprise
