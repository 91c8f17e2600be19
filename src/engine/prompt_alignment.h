#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Which paragraphs of a recorded system prompt belong to which module of today.
namespace reprise {

inline constexpr std::string_view kAnyValue = "\x01";  // in a pattern, in place of a placeholder's value

// A module of today: its text, and the same with any values.
struct PresentModule {
  std::string name, text, pattern;
  bool may_be_empty() const { return pattern.find(kAnyValue) != pattern.npos; }
};

// A gap between two modules that are as they were.
struct PromptGap {
  std::string text{};                           // of the record, that no module explains
  std::vector<const PresentModule*> modules{};  // of today, that are not in the record
};

// The gaps of the best alignment, which has the fewest paragraphs and modules left over: one before the first module
// that is as it was, and one behind each. Takes time with the product of both sides.
std::vector<PromptGap> AlignPrompt(std::string_view recorded, const std::vector<PresentModule>& modules);

}  // namespace reprise
