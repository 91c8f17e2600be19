#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "process/supervised_process.h"
#include "reprise/resource_limits.h"
#include "tools/tool_options.h"

namespace reprise {

// The system calls that commands in the sandbox do not get, as a program for seccomp(2) in the form that bubblewrap
// takes: what reaches beyond the sandbox's namespaces (kernel keyrings, new namespaces and mounts, BPF, performance
// counters, sockets of other families than Unix and IP), what types into a terminal, and what makes a file
// set-user-ID or set-group-ID. Those calls fail as if not permitted, or as if the kernel had none where programs know
// how to do without. ptrace(2) stays: there is nobody else's process in there. Empty if there is none for this machine.
std::string SyscallFilter();

// How commands are kept from what is not theirs: bubblewrap with the system (/usr and its like, /etc as far as every
// user may read it, /opt) read-only, the workspace writable at its own place, what the configuration names, fresh /tmp,
// home, /run, /proc and /dev in memory, and nothing else; no network, no other processes, no new privileges, and
// without system calls that reach beyond (SyscallFilter). What is hidden is so also where something
// visible holds it: what of it is there when a command starts can be neither read, changed, moved nor replaced, not by
// way of a directory above it in the workspace either. (Files cannot be renamed, only copied, into and out of such a
// directory.) What the user's own tools run by themselves (tools/files/known_paths.h) is read-only likewise. What is
// not there yet cannot be hidden: see MissingHidden. Sockets that lie in what is visible can be connected to.
// Thread-safe.
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

  // What is there of it, looked for at the first call (some 20 ms). As long as it is not whole it is looked for again,
  // though not more often than every few seconds.
  struct State {
    bool available = false;  // commands can be run in it
    bool filtered = false;   // with the filter of system calls
    // What it lacks, in a few words: why it is not available, or the part that the system does not let it have. Empty:
    // it is whole.
    std::string missing{};
    bool switched_off = false;  // by whoever runs this program
    // Not less than was promised: a person has to agree each time.
    bool must_ask() const { return !missing.empty() && !switched_off; }
  };
  State state() const;
  bool available() const { return state().available; }

  // The command, run in the sandbox. The environment's HOME is for the caller: see home(). REQUIRES: available().
  Command Confined(Command command) const;

  // The home folder of what runs in it: $HOME, empty but for what is named, or /tmp where the workspace holds it.
  const std::string& home() const { return home_; }
  // Whether a path is to be seen in there.
  bool Shows(std::string_view path) const;

  // Hidden paths, and such as others run, in the workspace or in what else commands may write, at which there is
  // nothing now.
  std::vector<std::string> MissingHidden() const;

 private:
  State Look() const REQUIRES(mutex_);
  // Empty: it works. Otherwise why it does not.
  std::string Try(bool filtered) const;
  std::vector<std::string> Wrap(const std::vector<std::string>& argv, bool filtered) const;
  Command Confined(Command command, bool filtered) const;
  std::vector<std::string> RunByOthersThere(std::vector<std::string>* missing) const;

  const Options options_;
  const std::string home_;
  mutable std::once_flag prepared_;              // after which these two are constant
  mutable std::string filter_;                   // of system calls; empty: there is none for this machine
  mutable std::vector<std::string> closed_etc_;  // what is in /etc but not for everybody
  mutable Mutex mutex_;
  mutable std::optional<State> state_ GUARDED_BY(mutex_);
  mutable std::chrono::steady_clock::time_point looked_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
