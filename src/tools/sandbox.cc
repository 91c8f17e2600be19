#include "tools/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/path.h"
#include "tools/subprocess.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kPrograms = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};

// Hides what is there of `paths`: bubblewrap cannot put something over nothing, nor into a directory that is hidden
// already. A mount point can be neither moved nor removed, a directory above one can: so each of those that lie in the
// workspace becomes one too, and nothing else can be put where a hidden path is.
void AppendHidden(const std::vector<std::string>& paths, const fs::path& workspace,
                  std::vector<std::string>& arguments) {
  std::set<fs::path> present;  // sorted: a directory comes before what lies in it
  std::error_code error;
  for (const std::string& path : paths) {
    if (fs::path real = fs::canonical(path, error); !error) present.insert(std::move(real));
  }
  std::optional<fs::path> hidden;
  std::set<fs::path> fixed = {workspace};
  for (const fs::path& path : present) {
    if (hidden && LiesBeneath(path, *hidden)) continue;
    if (path != workspace && LiesBeneath(path, workspace)) {
      fs::path directory = workspace;
      for (const fs::path& name : path.parent_path().lexically_relative(workspace)) {
        directory /= name;
        if (name == "." || !fixed.insert(directory).second) continue;
        arguments.insert(arguments.end(), {"--bind", directory.string(), directory.string()});
      }
    }
    if (fs::is_directory(path, error)) {
      // Read-only too, so that nobody believes to have written something there.
      arguments.insert(arguments.end(), {"--tmpfs", path.string(), "--remount-ro", path.string()});
      hidden = path;
    } else {
      arguments.insert(arguments.end(), {"--ro-bind", "/dev/null", path.string()});
    }
  }
}

std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return OneLine(newline == std::string::npos ? text : text.substr(newline + 1));
}

}  // namespace

Sandbox::Sandbox(Options options) : options_(std::move(options)) {}

bool Sandbox::available() const {
  LookOnce();
  return unavailable_reason_.empty();
}

const std::string& Sandbox::unavailable_reason() const {
  LookOnce();
  return unavailable_reason_;
}

void Sandbox::LookOnce() const {
  std::call_once(looked_, [this] {
    if (options_.use == SandboxUse::kNever) {
      unavailable_reason_ = "switched off by the configuration";
      return;
    }
    const auto* const program =
        std::find_if(kPrograms.begin(), kPrograms.end(), [](const char* path) { return ::access(path, X_OK) == 0; });
    if (program == kPrograms.end()) {
      unavailable_reason_ = "bubblewrap is not installed";
      return;
    }
    program_ = *program;
    const Command trial{.argv = Wrap({"/bin/sh", "-c", "exit 0"}), .environment = {}, .directory = "/"};
    const CommandLimits limits{.timeout = std::chrono::seconds(5)};
    const auto result = RunCommand(trial, limits, std::stop_token());
    if (!result) {
      unavailable_reason_ = "bubblewrap cannot be started";
    } else if (result->end != CommandResult::End::kExited || result->status != 0) {
      unavailable_reason_ = "bubblewrap does not work here: " + LastLine(result->output);
    }
  });
}

std::vector<std::string> Sandbox::Wrap(const std::vector<std::string>& argv) const {
  const std::string& workspace = options_.workspace;
  std::vector<std::string> wrapped = {
      program_, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
      "--proc", "/proc",         "--tmpfs",           "/tmp"};
  // Sockets of services (docker, D-Bus, agents with keys) are in /run.
  for (const char* scratch : {"/run", "/var/tmp"}) {
    std::error_code error;
    if (fs::is_directory(scratch, error)) wrapped.insert(wrapped.end(), {"--tmpfs", scratch});
  }
  wrapped.insert(wrapped.end(), {"--bind", workspace, workspace});
  AppendHidden(options_.hidden_paths, workspace, wrapped);
  wrapped.insert(wrapped.end(), {"--chdir", workspace, "--"});
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  return wrapped;
}

std::vector<std::string> SecretPaths(const std::string& home, const std::string& config_home) {
  std::vector<std::string> paths;
  if (!home.empty()) {
    for (const char* name : {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh",
                             ".config/reprise", ".local/share/keyrings", ".password-store", ".netrc",
                             ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".vault-token"}) {
      paths.push_back(home + "/" + name);
    }
  }
  if (!config_home.empty()) paths.push_back(config_home + "/reprise");
  return paths;
}

}  // namespace reprise
