#pragma once

#include <string>
#include <vector>

#include "reprise/options.h"

namespace reprise {

enum class Verdict { kOk, kWarning, kFailure };

struct Finding {
  std::string check;  // "key file"
  Verdict verdict;
  std::string words;  // one sentence; never a secret
};

// One finding per check, in the order a person would mend them. Reads and probes only; nothing is created or changed.
std::vector<Finding> CheckHealth(const Options& options);

}  // namespace reprise
