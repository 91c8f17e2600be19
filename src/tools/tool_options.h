#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/resource_limits.h"
#include "reprise/transport.h"

namespace reprise {

enum class SandboxUse {
  kWhenAvailable,  // and say so in the result if it is not
  kNever,
  kAlways,  // a command does not run without it
};

// The hosts that commands in the sandbox may reach, as HostRules reads them (tools/network/host_rules.h).
struct NetworkRules {
  std::vector<std::string> allow = {};
  std::vector<std::string> unasked = {};  // likewise, also for commands that run unasked in ApprovalMode::kAuto
  std::vector<std::string> deny = {};
  std::vector<std::string> closed = {};  // "HOST:PORT" that no rule opens
  bool ask = false;                      // a person, about hosts that no rule names
  bool is_empty() const { return allow.empty() && unasked.empty() && !ask; }
};

struct ShellOptions {
  std::chrono::seconds default_timeout{60};  // if the call names none
  std::chrono::seconds max_timeout{600};
  // Added to a command's clean environment; the server's own environment is never passed on.
  std::vector<std::pair<std::string, std::string>> extra_environment;
  SandboxUse sandbox = SandboxUse::kWhenAvailable;
  bool allow_unsandboxed = false;  // a person may let a single call run outside the sandbox
  // Absolute paths that commands see besides the system and the workspace; they need not exist.
  std::vector<std::string> readable_paths = {};
  std::vector<std::string> writable_paths = {};
  ResourceLimits limits = {};
  NetworkRules network = {};
  std::string own_host = {};  // where this server listens
};

struct HttpGetOptions {
  std::size_t max_body_bytes = 1024 * 1024;
  std::chrono::milliseconds timeout{20'000};
  int max_redirects = 5;
  bool allow_private_addresses = false;  // reach loopback and private networks too
};

// Whether one of the patterns (fnmatch(3)) is for this tool.
bool MatchesAny(const std::vector<std::string>& patterns, const std::string& name);

struct ToolOptions {
  std::string workspace_directory;  // the limit of file tools and of commands' writes
  Transport& transport;             // must outlive the tools
  // Names of tools, or patterns (fnmatch(3)). A denied tool does not exist.
  std::vector<std::string> allow = {"*"};
  std::vector<std::string> deny = {};
  std::vector<std::string> require_approval = {};  // in addition to those that ask by default
  // Files and directories that no tool may touch: data folder, key file, configuration. They need not exist.
  std::vector<std::string> protected_paths = {};
  // Returns the folders outside the workspace that read_file may read; called each time. They are absolute, and so must
  // be the paths that the model gives. The rules of a workspace hold there: links out of a folder are not followed, and
  // protected paths stay closed, except the folder itself. Null if there are none.
  std::function<std::vector<std::string>()> readable_folders = nullptr;
  ShellOptions shell = {};
  HttpGetOptions http = {};
};

}  // namespace reprise
