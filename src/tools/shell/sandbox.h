#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "process/supervised_process.h"
#include "reprise/resource_limits.h"
#include "tools/files/run_by_others.h"
#include "tools/tool_options.h"

namespace reprise {

// A seccomp(2) program, in bubblewrap's form, that denies system calls to sandboxed commands: calls that reach beyond
// the sandbox's namespaces (kernel keyrings, new namespaces and mounts, BPF, performance counters, sockets of families
// other than Unix, IP and netlink), that type into a terminal, or that make a file set-user-ID or set-group-ID. They
// fail as not permitted, or as missing if programs have a fallback. ptrace(2) is allowed, because the sandbox holds no
// foreign processes. Empty if there is no filter for this machine.
std::string SyscallFilter();

// A descriptor of reprise-start (process/start), the first program in a sandbox, open as long as this program runs; -1
// if it is not installed.
int StartProgram();

// The files and folders below `folder` that commands in a sandbox could read although not every user may: keys,
// password hashes (mostly if the server is root).
std::vector<std::string> ClosedIn(const std::string& folder);

// What a command in a sandbox gets beside its files.
struct SandboxGifts {
  std::string git_configuration = {};  // the user's file of git's settings there; empty: none
  // The Unix socket over which it opens these ports (process/listeners.h); -1: it opens none.
  int listeners_socket = -1;
  std::vector<std::uint16_t> ports = {};
  int ways_in_socket = -1;  // likewise the one for ways in; -1: it sends none
  int program = -1;         // a descriptor of this program, which does this
  // "DEVICE:INODE" of the workspace; the command does not run in another folder that takes its place. Empty: not
  // checked.
  std::string workspace_id = {};
  // Sandbox::Look's, of just now; null: Confined looks itself.
  const FoundRunByOthers* found = nullptr;
};

// Confines commands with bubblewrap. They see only the system read-only (/usr and its like, /opt, and the parts of /etc
// that every user may read) and the libraries that came with this program, the workspace writable at its own path, the
// configured paths, and fresh /tmp, home, /run, /proc and /dev in memory. They have no network, no other processes, no
// new privileges and a filter of system calls (SyscallFilter). Hidden paths within visible ones, if they exist when a
// command starts, can be neither read, changed, moved nor replaced, not even through a directory above them in the
// workspace. (Files can only be copied, not renamed, into and out of such a directory.) Files that the user's own tools
// run by themselves (tools/files/run_by_others.h) are read-only likewise. Missing paths cannot be hidden; see Look.
// Visible sockets can be connected to. Thread-safe.
class Sandbox {
 public:
  struct Options {
    SandboxUse use = SandboxUse::kWhenAvailable;
    std::string workspace;                         // canonical; empty: no workspace, nothing can be written
    std::string home = {};                         // $HOME; empty if unset
    std::vector<std::string> hidden_paths = {};    // these need not exist
    std::vector<std::string> readable_paths = {};  // absolute; likewise
    std::vector<std::string> writable_paths = {};
    ResourceLimits limits = {};
    int start_program = StartProgram();  // -1: a shell does its part, which takes 2 ms more
  };
  explicit Sandbox(Options options);

  // What works of the sandbox. The first call checks it (some 20 ms). While it is incomplete, later calls check again,
  // at most every few seconds.
  struct State {
    bool available = false;  // commands can run in it
    bool filtered = false;   // with the filter of system calls
    // Briefly, why it is not available, or the part that the system denies. Empty if it is complete.
    std::string missing{};
    bool switched_off = false;  // by the configuration
    // Without a complete sandbox a person must agree to each call, unless the configuration switched it off.
    bool must_ask() const { return !missing.empty() && !switched_off; }
  };
  State state() const;
  bool available() const { return state().available; }

  // Wraps the command to run in the sandbox. The caller sets HOME; see home(). The descriptors must stay open until it
  // has started. REQUIRES: available().
  Command Confined(Command command, const SandboxGifts& gifts = {}) const;

  // The home folder in the sandbox: $HOME, empty except for configured paths, or /tmp if the workspace holds $HOME.
  const std::string& home() const { return home_; }
  // Whether a path is visible in the sandbox.
  bool Shows(std::string_view path) const;

  // Looks for what other programs would run, in the workspace and other writable places. `missing` also has the paths
  // that would be hidden there. Goes through thousands of entries, so once for each command.
  FoundRunByOthers Look() const;

 private:
  State Check() const REQUIRES(mutex_);
  // Empty if it works, else the reason.
  std::string Try(bool filtered) const;
  Command Confined(Command command, bool filtered, const SandboxGifts& gifts) const;

  const Options options_;
  const std::string home_;
  mutable std::once_flag prepared_;              // the next two are constant afterwards
  mutable std::string filter_;                   // of system calls; empty if there is none for this machine
  mutable std::vector<std::string> closed_etc_;  // files in /etc that not every user may read
  mutable Mutex mutex_;
  mutable std::optional<State> state_ GUARDED_BY(mutex_);
  mutable std::chrono::steady_clock::time_point looked_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
