#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.h"
#include "reprise/result.h"

namespace reprise {

inline constexpr std::size_t kMaxFrontMatter = 16 * 1024;

// What stands in front of a Markdown file's text: YAML between two lines "---".
struct FrontMatter {
  using Members = std::map<std::string, std::vector<std::string>, std::less<>>;
  bool is_there = false;
  Members members{};                  // the wanted ones: a text, or the texts of a list; not empty
  std::vector<std::string> others{};  // the names of the other ones
  std::string_view body{};            // the text behind it

  // The member's (first) text; empty if it is missing.
  std::string Text(std::string_view name) const;
};

// Reads the `wanted` members, which are texts, and `list`, a text or a list of them; of the others, only the names.
// libyaml, which is loaded when it is first needed, reads the YAML, with limits on size and nesting. kInvalidArgument
// tells the author the fault; kUnavailable if the library is missing. The result refers to `text`. REQUIRES: `text` is
// valid UTF-8.
Result<FrontMatter> ReadFrontMatter(std::string_view text, const std::vector<std::string_view>& wanted,
                                    std::string_view list = {});
// The same for a member that does not fit: "what stands in front of its text " + `message`.
Error WrongFrontMatter(const std::string& message);

}  // namespace reprise
