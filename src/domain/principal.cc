#include "reprise/principal.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace reprise {

bool IsPrincipalName(std::string_view name) {
  constexpr std::size_t kMostBytes = 255;
  constexpr char kDelete = 0x7f;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == kDelete; };
  return !name.empty() && name.size() <= kMostBytes && IsUtf8(name) &&
         std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace reprise
