#pragma once

#include <optional>
#include <string_view>

namespace reprise {

// The requested reasoning effort. kDefault: the provider's choice.
enum class Effort { kDefault, kNone, kLow, kMedium, kHigh };
constexpr std::string_view ToString(Effort effort) {
  constexpr std::string_view kNames[] = {"default", "none", "low", "medium", "high"};
  return kNames[static_cast<int>(effort)];
}
// nullopt for "default", too: it is not written down.
constexpr std::optional<Effort> ParseEffort(std::string_view name) {
  for (const Effort effort : {Effort::kNone, Effort::kLow, Effort::kMedium, Effort::kHigh}) {
    if (name == ToString(effort)) return effort;
  }
  return std::nullopt;
}

}  // namespace reprise
