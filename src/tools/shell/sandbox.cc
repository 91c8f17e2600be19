#include "tools/shell/sandbox.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/path.h"
#include "process/supervisor.h"
#include "tools/shell/subprocess.h"
#include "tools/shell/syscall_filter.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kPrograms = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};
constexpr const char* kPrlimit = "/usr/bin/prlimit";
constexpr std::uint64_t kMegabyte = 1024 * 1024;

// Where programs, libraries and what they are set up with are.
constexpr std::array<const char*, 9> kSystem = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                                "/lib64", "/libx32", "/etc",  "/opt"};
// Folders in memory, besides home.
constexpr std::array<const char*, 4> kScratch = {"/tmp", "/var/tmp", "/run", "/dev/shm"};

struct Mount {
  enum class Kind { kReadOnly, kWritable, kMemory, kLink, kDevices, kProcesses };
  Kind kind;
  std::string source;  // of the first two; what the link says
};
// By place: what lies in another comes after it.
using Mounts = std::map<fs::path, Mount>;

std::optional<fs::path> RealPath(const std::string& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  return error ? std::nullopt : std::optional(std::move(real));
}

void AddNamed(const std::vector<std::string>& paths, Mount::Kind kind, Mounts& mounts) {
  for (const std::string& path : paths) {
    const auto real = RealPath(path);
    if (!real) continue;
    mounts[*real] = {kind, real->string()};
    fs::path named = fs::path(path).lexically_normal();
    if (!named.has_filename()) named = named.parent_path();
    // Also where it is said to be, unless that is within something else.
    if (named != *real && !mounts.contains(named)) mounts[named] = {Mount::Kind::kLink, real->string()};
  }
}

// What shows the path: the last one above it. Null: nothing does.
const Mounts::value_type* Above(const Mounts& mounts, const fs::path& path) {
  const Mounts::value_type* above = nullptr;
  for (const auto& mount : mounts) {
    if (LiesBeneath(path, mount.first)) above = &mount;
  }
  return above;
}

bool IsBind(const Mount& mount) { return mount.kind == Mount::Kind::kReadOnly || mount.kind == Mount::Kind::kWritable; }

Mounts MountsFor(const Sandbox::Options& options, const std::string& home) {
  Mounts mounts;
  const fs::path workspace = options.workspace;
  for (const char* path : kSystem) {
    std::error_code error;
    if (!workspace.empty() && LiesBeneath(path, workspace)) continue;  // as the workspace it can be written
    if (fs::is_symlink(path, error)) {
      mounts[path] = {Mount::Kind::kLink, fs::read_symlink(path, error).string()};
    } else if (fs::is_directory(path, error)) {
      mounts[path] = {Mount::Kind::kReadOnly, path};
    }
  }
  mounts["/dev"] = {Mount::Kind::kDevices, {}};
  mounts["/proc"] = {Mount::Kind::kProcesses, {}};
  // Sockets of services (docker, D-Bus, agents with keys) are in /run.
  for (const char* path : kScratch) mounts[path] = {Mount::Kind::kMemory, {}};
  if (!mounts.contains(home)) mounts[home] = {Mount::Kind::kMemory, {}};
  AddNamed(options.readable_paths, Mount::Kind::kReadOnly, mounts);
  AddNamed(options.writable_paths, Mount::Kind::kWritable, mounts);
  if (!workspace.empty()) mounts[workspace] = {Mount::Kind::kWritable, options.workspace};
  // Nothing can be mounted where a link or something read-only that lacks it is.
  std::erase_if(mounts, [&](const auto& mount) {
    if (IsBind(mount.second) || mount.first == "/dev/shm") return false;
    const Mounts::value_type* above = nullptr;
    for (const auto& other : mounts) {
      if (other.first != mount.first && LiesBeneath(mount.first, other.first)) above = &other;
    }
    std::error_code error;
    if (above == nullptr || above->second.kind == Mount::Kind::kMemory) return false;
    return mount.second.kind == Mount::Kind::kLink || !fs::is_directory(fs::symlink_status(mount.first, error));
  });
  return mounts;
}

void Append(const fs::path& place, const Mount& mount, const ResourceLimits& limits, std::vector<std::string>& words) {
  switch (mount.kind) {
    case Mount::Kind::kReadOnly:
      words.insert(words.end(), {"--ro-bind", mount.source, place.string()});
      return;
    case Mount::Kind::kWritable:
      words.insert(words.end(), {"--bind", mount.source, place.string()});
      return;
    case Mount::Kind::kMemory:
      if (limits.tmp_mb > 0) words.insert(words.end(), {"--size", std::to_string(limits.tmp_mb * kMegabyte)});
      words.insert(words.end(), {"--tmpfs", place.string()});
      return;
    case Mount::Kind::kLink:
      words.insert(words.end(), {"--symlink", mount.source, place.string()});
      return;
    case Mount::Kind::kDevices:
      words.insert(words.end(), {"--dev", place.string()});
      return;
    case Mount::Kind::kProcesses:
      words.insert(words.end(), {"--proc", place.string()});
      return;
  }
}

// Hides what is there of `paths` where it would be seen: bubblewrap cannot put something over nothing, nor into a
// directory that is hidden already. A mount point can be neither moved nor removed, a directory above one can: so each
// of those that lie in the workspace becomes one too, and nothing else can be put where a hidden path is.
void AppendHidden(const std::vector<std::string>& paths, const Mounts& mounts, const fs::path& workspace,
                  std::vector<std::string>& arguments) {
  std::set<fs::path> present;  // sorted: a directory comes before what lies in it
  for (const std::string& path : paths) {
    auto real = RealPath(path);
    if (!real) continue;
    const Mounts::value_type* above = Above(mounts, *real);
    if (above != nullptr && IsBind(above->second)) present.insert(*std::move(real));
  }
  std::error_code error;
  std::optional<fs::path> hidden;
  std::set<fs::path> fixed = {workspace};
  for (const auto& mount : mounts) fixed.insert(mount.first);
  for (const fs::path& path : present) {
    if (hidden && LiesBeneath(path, *hidden)) continue;
    if (!workspace.empty() && path != workspace && LiesBeneath(path, workspace)) {
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

// What is in /etc that this user may read and others may not: keys, password hashes (mostly of a server that is root).
std::vector<std::string> ClosedIn(const fs::path& folder) {
  std::vector<std::string> closed;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code failed;
    const fs::file_status status = at->symlink_status(failed);
    if (failed || fs::is_symlink(status)) continue;
    if ((status.permissions() & fs::perms::others_read) != fs::perms::none) continue;
    if (::access(at->path().c_str(), R_OK) == 0) closed.push_back(at->path().string());
    if (fs::is_directory(status)) at.disable_recursion_pending();
  }
  return closed;
}

std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return OneLine(newline == std::string::npos ? text : text.substr(newline + 1));
}

// What bubblewrap complains of, without the advice that may follow: "bwrap: CAUSE, likely because ... See ...".
std::string Cause(const std::string& complaint) {
  constexpr std::string_view kName = "bwrap: ";
  constexpr std::size_t kMaxShown = 120;
  std::string cause = complaint.starts_with(kName) ? complaint.substr(kName.size()) : complaint;
  for (const char* advice : {", likely ", ". "}) cause = cause.substr(0, cause.find(advice));
  return cause.substr(0, kMaxShown);
}

std::string HomeFor(const Sandbox::Options& options) {
  fs::path home = fs::path(options.home).lexically_normal();
  if (!home.has_filename()) home = home.parent_path();
  std::error_code error;
  const bool usable = home.is_absolute() && home != home.root_path() && !LiesBeneath(home, options.workspace) &&
                      !LiesBeneath(fs::weakly_canonical(home, error), options.workspace);
  // Not the workspace: programs would read tokens from there and leave files.
  return usable ? home.string() : "/tmp";
}

}  // namespace

Sandbox::Sandbox(Options options) : options_(std::move(options)), home_(HomeFor(options_)) {}

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
    closed_etc_ = ClosedIn("/etc");
    filter_ = SyscallFilter();
    if (Try(unavailable_reason_)) return;
    filter_.clear();
    std::string reason;
    if (!Try(reason)) return;
    unavailable_reason_.clear();
    LogWarning("commands run in a sandbox without a filter of system calls, as the system takes none");
  });
}

bool Sandbox::Try(std::string& reason) const {
  const Command trial = Confined({.argv = {"/bin/sh", "-c", "exit 0"}, .environment = {}, .directory = "/"});
  const CommandLimits limits{.timeout = std::chrono::seconds(5)};
  const auto result = RunCommand(trial, limits, std::stop_token());
  if (!result) {
    reason = "bubblewrap cannot be started";
  } else if (result->end != CommandResult::End::kExited || result->status != 0) {
    const std::string complaint = LastLine(result->output);
    reason = "bubblewrap does not work here: " + Cause(complaint);
    Log(LogLevel::kDebug, "bubblewrap does not work", {{"output", complaint}});
  } else {
    return true;
  }
  return false;
}

std::vector<std::string> Sandbox::Wrap(const std::vector<std::string>& argv) const {
  const Mounts mounts = MountsFor(options_, home_);
  std::vector<std::string> wrapped = {program_, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"};
  for (const auto& [place, mount] : mounts) Append(place, mount, options_.limits, wrapped);
  std::vector<std::string> hidden = options_.hidden_paths;
  hidden.insert(hidden.end(), closed_etc_.begin(), closed_etc_.end());
  AppendHidden(hidden, mounts, options_.workspace, wrapped);
  // What is made for mount points lies in memory, without a limit to its size.
  wrapped.insert(wrapped.end(), {"--remount-ro", "/dev"});
  if (!mounts.contains("/")) wrapped.insert(wrapped.end(), {"--remount-ro", "/"});
  if (!filter_.empty()) wrapped.insert(wrapped.end(), {"--seccomp", std::to_string(kExtraDescriptor)});
  wrapped.insert(wrapped.end(), {"--chdir", options_.workspace.empty() ? "/" : options_.workspace, "--"});
  // In there, where the kernel counts the processes of this sandbox alone, and not all of the user.
  if (options_.limits.processes > 0 && ::access(kPrlimit, X_OK) == 0) {
    const std::string most = std::to_string(options_.limits.processes);
    wrapped.insert(wrapped.end(), {kPrlimit, "--nproc=" + most + ":" + most, "--"});
  }
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  return wrapped;
}

Command Sandbox::Confined(Command command) const {
  command.argv = Wrap(command.argv);
  command.extra_input = filter_;
  return command;
}

bool Sandbox::Shows(std::string_view path) const {
  const fs::path normal = fs::path(path).lexically_normal();
  const Mounts mounts = MountsFor(options_, home_);
  const Mounts::value_type* above = Above(mounts, normal);
  return above != nullptr && (IsBind(above->second) || above->second.kind == Mount::Kind::kLink);
}

std::vector<std::string> Sandbox::MissingHidden() const {
  std::vector<std::string> writable = options_.writable_paths;
  writable.push_back(options_.workspace);
  std::vector<std::string> missing;
  for (const std::string& path : options_.hidden_paths) {
    struct stat status {};
    const bool within = std::any_of(writable.begin(), writable.end(),
                                    [&](const std::string& folder) { return LiesBeneath(path, folder); });
    if (within && ::lstat(path.c_str(), &status) != 0 && errno != EACCES) missing.push_back(path);
  }
  return missing;
}

}  // namespace reprise
