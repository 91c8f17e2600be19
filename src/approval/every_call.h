#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tool.h"

// The one pattern of tools of other programs, of which nobody here knows what arguments do: "*", any call. For the
// members of Tool of the same names.
namespace reprise::every_call {

inline constexpr std::string_view kPattern = "*";

// `meaning`: the sentence that says what it covers.
inline Result<std::string> MeaningOf(std::string_view pattern, std::string meaning) {
  if (pattern != kPattern) return Fail(ErrorCode::kInvalidArgument, "the one pattern of such a tool is *");
  return meaning;
}

inline std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns) {
  const auto found = std::find(patterns.begin(), patterns.end(), kPattern);
  if (found == patterns.end()) return std::nullopt;
  return std::vector{static_cast<std::size_t>(found - patterns.begin())};
}

}  // namespace reprise::every_call
