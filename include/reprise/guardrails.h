#pragma once

#include <string>
#include <vector>

namespace reprise {

// Regular expressions for input and output (RE2 syntax; '.' does not match a line feed, except with (?s)).
struct GuardrailOptions {
  std::vector<std::string> input{};   // a user's message is refused if one matches it or an attached file
  std::vector<std::string> output{};  // matches are removed from tool output
};

}  // namespace reprise
