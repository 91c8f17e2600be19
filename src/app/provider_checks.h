#pragma once

#include <thread>
#include <vector>

#include "app/health_checks.h"
#include "base/system.h"
#include "reprise/options.h"

namespace reprise {

// Asks all configured providers for their models at once, and waits three seconds at most: one finding for each, named
// after it. An unreachable provider or a refused key is a failure; so is a missing key of the default model's provider.
// Skips well-known providers without any configuration.
std::vector<Finding> CheckProviders(const Options& options);

// The same at the start of a server, which logs a warning for each bad finding. In a process of its own, because
// libcurl and the thirty libraries that it loads would stay in the memory of an idle server.
class ProviderCheck {
 public:
  // Forks, so call it before the first thread starts. Sends nothing yet.
  explicit ProviderCheck(const Options& options);
  ~ProviderCheck();  // ends the process
  ProviderCheck(const ProviderCheck&) = delete;
  ProviderCheck& operator=(const ProviderCheck&) = delete;

  void Begin();

 private:
  void Reap() const;

  UniqueFd process_;  // empty if there is nothing to ask
  UniqueFd go_;
  std::jthread reaper_;
};

}  // namespace reprise
