#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "process/supervised_process.h"
#include "reprise/resource_limits.h"
#include "tools/tool_options.h"

namespace reprise {

// How commands are kept from what is not theirs: bubblewrap with the system (/usr and its like, /etc as far as every
// user may read it, /opt) read-only, the workspace writable at its own place, what the configuration names, fresh /tmp,
// home, /run, /proc and /dev in memory, and nothing else; no network, no other processes, no new privileges, and
// without system calls that reach beyond (tools/shell/syscall_filter.h). What is hidden is so also where something
// visible holds it: what of it is there when a command starts can be neither read, changed, moved nor replaced, not by
// way of a directory above it in the workspace either. (Files cannot be renamed, only copied, into and out of such a
// directory.) What is not there yet cannot be hidden: see MissingHidden. Sockets that lie in what is visible can be
// connected to. Thread-safe.
class Sandbox {
 public:
  struct Options {
    SandboxUse use = SandboxUse::kWhenAvailable;
    std::string workspace;                         // canonical; empty: there is none, and nothing can be written
    std::string home = {};                         // $HOME; empty: there is none
    std::vector<std::string> hidden_paths = {};    // these need not exist
    std::vector<std::string> readable_paths = {};  // absolute; likewise
    std::vector<std::string> writable_paths = {};
    ResourceLimits limits = {};
  };
  explicit Sandbox(Options options);

  // Whether commands can be run in it here; looked for at the first call (some 20 ms).
  bool available() const;
  // Why not, in a few words; empty if available.
  const std::string& unavailable_reason() const;

  // The command line that runs `argv` in the sandbox. REQUIRES: available().
  std::vector<std::string> Wrap(const std::vector<std::string>& argv) const;
  // The same with all that is not in the command line. The environment's HOME is for the caller: see home().
  Command Confined(Command command) const;

  // The home folder of what runs in it: $HOME, empty but for what is named, or /tmp where the workspace holds it.
  const std::string& home() const { return home_; }
  // Whether a path is to be seen in there.
  bool Shows(std::string_view path) const;

  // Hidden paths in the workspace, or in what else commands may write, at which there is nothing now.
  std::vector<std::string> MissingHidden() const;

 private:
  void LookOnce() const;
  bool Try(std::string& reason) const;

  const Options options_;
  const std::string home_;
  mutable std::once_flag looked_;
  mutable std::string program_;
  mutable std::string filter_;                   // of system calls; empty: none
  mutable std::vector<std::string> closed_etc_;  // what is in /etc but not for everybody
  mutable std::string unavailable_reason_;
};

}  // namespace reprise
