#pragma once

#include <re2/re2.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"

namespace reprise {

// What the arguments of a call must be, in the form in which they are compared.
struct ValueCheck {
  enum class Kind {
    kValue,     // `value` itself, or a string that `pattern` matches
    kMembers,   // an object with these members, and perhaps more
    kElements,  // an array of just these elements
  };
  Kind kind = Kind::kValue;
  Json value{};                               // as it was written
  std::shared_ptr<const re2::RE2> pattern{};  // may be null
  std::vector<std::string> names{};           // of the members
  std::vector<ValueCheck> parts{};
};

// Whether it is a pattern, its ok() says.
inline std::shared_ptr<const re2::RE2> CompilePattern(const std::string& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return std::make_shared<const re2::RE2>(pattern, options);
}

}  // namespace reprise
