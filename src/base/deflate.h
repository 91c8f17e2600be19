#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

enum class Packing { kDeflate, kGzip };  // RFC 1951 without a header, RFC 1952

// The shortest form that zlib finds with its usual effort, as Packing::kDeflate.
std::string Deflate(std::string_view text);
// nullopt: damaged, cut off, with something behind it, or a text longer than `limit`.
std::optional<std::string> Inflate(std::string_view packed, Packing packing, std::size_t limit);

}  // namespace reprise
