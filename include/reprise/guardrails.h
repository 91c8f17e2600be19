#pragma once

#include <string>
#include <vector>

namespace reprise {

// What may not go in and out, as regular expressions (RE2 syntax; '.' does not match a line feed, but for (?s)).
struct GuardrailOptions {
  std::vector<std::string> input{};   // a user's message with one of these, in itself or an attached file, is refused
  std::vector<std::string> output{};  // what tools say loses what these match
};

}  // namespace reprise
