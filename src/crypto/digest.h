#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace reprise {

// "sha256:" and the hex digest of the parts, one after the other.
std::string Sha256Digest(std::initializer_list<std::string_view> parts);

}  // namespace reprise
