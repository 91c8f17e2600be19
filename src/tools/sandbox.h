#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tools/tool_options.h"

namespace reprise {

// How commands are kept from what is not theirs: bubblewrap with the whole file system read-only, the workspace
// writable at its own place, fresh /tmp, /run, /proc and /dev, no network, no other processes, and the server's own
// files and the user's keys hidden: what of them is there when a command starts can be neither read, changed, moved nor
// replaced, not by way of a directory above it in the workspace either. (Files cannot be renamed, only copied, into and
// out of such a directory.) Thread-safe.
class Sandbox {
 public:
  struct Options {
    SandboxUse use = SandboxUse::kWhenAvailable;
    std::string workspace;                  // canonical
    std::vector<std::string> hidden_paths;  // need not exist
  };
  explicit Sandbox(Options options);

  // Whether commands can be run in it here; looked for at the first call (some 20 ms).
  bool available() const;
  // Why not, in a few words; empty if available.
  const std::string& unavailable_reason() const;

  // The command line that runs `argv` in the sandbox. REQUIRES: available().
  std::vector<std::string> Wrap(const std::vector<std::string>& argv) const;

 private:
  void LookOnce() const;

  const Options options_;
  mutable std::once_flag looked_;
  mutable std::string program_;
  mutable std::string unavailable_reason_;
};

// Where the user keeps keys and passwords, beneath `home` and `config_home` ($XDG_CONFIG_HOME).
std::vector<std::string> SecretPaths(const std::string& home, const std::string& config_home);

}  // namespace reprise
