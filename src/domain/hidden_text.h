#pragma once

#include <string>
#include <string_view>

namespace reprise {

// Strict JSON text with every character that cannot be seen, or that turns the reading direction, as its \uXXXX escape:
// still the same JSON value. Line ends and tabs stay. REQUIRES: `json` is UTF-8.
std::string EscapeHidden(std::string_view json);

}  // namespace reprise
