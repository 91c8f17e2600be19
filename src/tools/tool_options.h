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
  kWhenAvailable,  // and say so in the result when it is not
  kNever,
};

struct ShellOptions {
  std::chrono::seconds default_timeout{60};  // when the call names none
  std::chrono::seconds max_timeout{600};
  // Added to the clean environment a command gets; the server's own environment is never passed on.
  std::vector<std::pair<std::string, std::string>> extra_environment;
  SandboxUse sandbox = SandboxUse::kWhenAvailable;
  // What commands see beside the system and the workspace: absolute paths, which need not exist.
  std::vector<std::string> readable_paths = {};
  std::vector<std::string> writable_paths = {};
  ResourceLimits limits = {};
};

struct HttpGetOptions {
  std::size_t max_body_bytes = 1024 * 1024;
  std::chrono::milliseconds timeout{20'000};
  int max_redirects = 5;
  bool allow_private_addresses = false;  // reach loopback and private networks too
};

struct ToolOptions {
  std::string workspace_directory;  // all that file tools reach and all that commands may write
  Transport& transport;             // must outlive the tools
  // Names of tools, or patterns (fnmatch(3)). A denied tool does not exist.
  std::vector<std::string> allow = {"*"};
  std::vector<std::string> deny = {};
  std::vector<std::string> require_approval = {};  // beside those that ask by default
  // Files and directories no tool may touch, wherever they lie: data folder, key file, configuration. They need not
  // exist.
  std::vector<std::string> protected_paths = {};
  // Folders outside of the workspace in which read_file reads, asked for each time: absolute, as a path must begin that
  // is read there. What lies there is read by the rules of a workspace: no link is followed out of it, and what is
  // protected stays closed, but for the folder itself. Null: there are none.
  std::function<std::vector<std::string>()> readable_folders = nullptr;
  ShellOptions shell = {};
  HttpGetOptions http = {};
};

}  // namespace reprise
