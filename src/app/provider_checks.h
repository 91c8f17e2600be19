#pragma once

#include <thread>
#include <vector>

#include "app/health_checks.h"
#include "base/system.h"
#include "reprise/options.h"

namespace reprise {

// Asks each configured provider which models it has, all at once, and waits for three seconds at most: one finding for
// each, named after it. A provider that cannot be reached, or does not take the key, is a failure; so
// is the default model's without a key that it needs. Well-known ones that nothing is configured for are passed over.
std::vector<Finding> CheckProviders(const Options& options);

// The same at the start of a server, with a warning in the log for each finding that is not good. In a process of its
// own: libcurl and the thirty libraries that it loads would stay in the memory of a server that nobody has asked
// anything yet.
class ProviderCheck {
 public:
  // Forks, so it comes before the first thread. Nothing is asked yet.
  explicit ProviderCheck(const Options& options);
  ~ProviderCheck();  // ends it
  ProviderCheck(const ProviderCheck&) = delete;
  ProviderCheck& operator=(const ProviderCheck&) = delete;

  void Begin();

 private:
  void Reap() const;

  UniqueFd process_;  // none: there is nothing to ask
  UniqueFd go_;
  std::jthread reaper_;
};

}  // namespace reprise
