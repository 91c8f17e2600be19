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

// One finding per check, in the order in which a person would fix them. Only reads and probes.
std::vector<Finding> CheckHealth(const Options& options);

}  // namespace reprise
