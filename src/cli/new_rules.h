#pragma once

#include <string>

#include "app/options.h"
#include "base/system.h"
#include "reprise/result.h"

namespace reprise {

// New rules for tool calls, or a whole configuration.
struct NewRules {
  Options options;  // with the file's settings alone
  bool is_configuration = false;
};

// Reads a file of at most 1 MiB, JSON with comments: an array of rules, {"rules": [...]}, or a configuration.
// kNotFound; kInvalidArgument, with a message that names the file.
Result<NewRules> ReadNewRules(const std::string& path, const Environment& environment);

}  // namespace reprise
