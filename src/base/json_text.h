#pragma once

#include <string>
#include <string_view>

// JSON as it is written.
namespace reprise {

// JSON text without much white space between its tokens: what is more than a line end and an indent becomes one space,
// so that nothing is pushed out of sight. All else stays as it is, numbers too. REQUIRES: `json` is JSON.
std::string WithoutGaps(std::string_view json);
// Whether a number in it has more digits than readers keep who read numbers as IEEE doubles. REQUIRES: `json` is JSON.
bool HasLongNumber(std::string_view json);

}  // namespace reprise
