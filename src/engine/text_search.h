#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/interaction.h"

namespace re2 {
class RE2;
}

namespace reprise {

// Where a text was found in an interaction.
struct TextMatch {
  std::string_view where;  // "user", "answer", "tool_call" or "tool_result"
  std::string snippet;     // what was found, with some text around it
};

// Looks for a text, or a regular expression (RE2), in what was said and done. Thread-safe.
class TextSearch {
 public:
  struct How {
    bool regex = false;
    bool case_sensitive = false;
  };
  TextSearch(std::string_view text, How how);
  ~TextSearch();

  // What is wrong with the regular expression.
  std::optional<std::string> problem() const;
  std::vector<TextMatch> In(const Interaction& interaction) const;

 private:
  const std::unique_ptr<const re2::RE2> pattern_;
};

}  // namespace reprise
