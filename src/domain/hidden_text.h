#pragma once

#include <string>
#include <string_view>

namespace reprise {

// Strict JSON text with every character that cannot be seen, or that turns the reading direction, as its \uXXXX escape,
// and without gaps between its tokens (WithoutGaps): still the same JSON value. Other line ends and tabs stay.
// REQUIRES: `json` is UTF-8.
std::string EscapeHidden(std::string_view json);

}  // namespace reprise
