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

// A match in an interaction.
struct TextMatch {
  std::string_view where;  // "user", "answer", "tool_call" or "tool_result"
  std::string snippet;     // the match with some text around it
};

// Searches interactions for a text or a regular expression (RE2). Thread-safe.
class TextSearch {
 public:
  struct How {
    bool regex = false;
    bool case_sensitive = false;
  };
  TextSearch(std::string_view text, How how);
  ~TextSearch();

  // The error in the regular expression, if any.
  std::optional<std::string> problem() const;
  std::vector<TextMatch> In(const Interaction& interaction) const;

 private:
  const std::unique_ptr<const re2::RE2> pattern_;
};

}  // namespace reprise
