#include "tools/shell/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/path.h"
#include "base/system.h"
#include "process/listeners.h"
#include "tools/files/run_by_others.h"
#include "tools/own_program.h"
#include "tools/shell/command_runner.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

// The numbers are the same on all architectures; older headers lack the names.
constexpr int kQuotactlFd = 443, kFchmodat2 = 452;

// Calls that no command in the sandbox needs.
constexpr auto kForbidden = std::to_array<int>(
    {SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl),
     // namespaces and mounts
     SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(setns), SCMP_SYS(unshare),
     SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount),
     SCMP_SYS(fspick), SCMP_SYS(mount_setattr), SCMP_SYS(open_by_handle_at),
     // the kernel's internals
     SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load),
     SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(syslog), SCMP_SYS(acct),
     SCMP_SYS(quotactl), kQuotactlFd, SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(reboot), SCMP_SYS(vhangup),
     SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime),
     SCMP_SYS(adjtimex)});

// Programs fall back to other calls if these are missing. A filter cannot see the flags of clone3 and the mode of
// openat2, which lie in memory, nor the calls made through io_uring.
constexpr auto kMissing = std::to_array<int>({SCMP_SYS(clone3), SCMP_SYS(openat2), SCMP_SYS(io_uring_setup),
                                              SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register)});

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, Release>;

bool Deny(const Filter& filter, int error, int call, std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int added = ::seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(error)), call,
                                             static_cast<unsigned>(conditions.size()), conditions.begin());
  return added == 0 || added == -EDOM;  // EDOM: this architecture lacks the call
}

scmp_arg_cmp Bits(unsigned argument, std::uint64_t bits) { return {argument, SCMP_CMP_MASKED_EQ, bits, bits}; }

bool DenySetIdBits(const Filter& filter) {
  bool ok = true;
  for (const std::uint64_t bit : {S_ISUID, S_ISGID}) {
    ok = ok && Deny(filter, EPERM, SCMP_SYS(chmod), {Bits(1, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(fchmod), {Bits(1, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(fchmodat), {Bits(2, bit)}) && Deny(filter, EPERM, kFchmodat2, {Bits(2, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(creat), {Bits(1, bit)}) && Deny(filter, EPERM, SCMP_SYS(mknod), {Bits(1, bit)}) &&
         Deny(filter, EPERM, SCMP_SYS(mknodat), {Bits(2, bit)});
    // The mode counts only when a file is created; otherwise it may be anything.
    for (const std::uint64_t makes : {O_CREAT, O_TMPFILE & ~O_DIRECTORY}) {
      ok = ok && Deny(filter, EPERM, SCMP_SYS(open), {Bits(1, makes), Bits(2, bit)}) &&
           Deny(filter, EPERM, SCMP_SYS(openat), {Bits(2, makes), Bits(3, bit)});
    }
  }
  return ok;
}

// Denies all families but Unix, IP and netlink, because commands need no others, and their kernel code is less tested.
bool DenyOtherSockets(const Filter& filter) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;  // the kernel ignores the other bits
  if (!Deny(filter, EAFNOSUPPORT, SCMP_SYS(socket), {{0, SCMP_CMP_GT, AF_NETLINK, 0}})) return false;
  if (!Deny(filter, EAFNOSUPPORT, SCMP_SYS(socketpair), {{0, SCMP_CMP_GT, AF_UNIX, 0}})) return false;
  for (std::uint64_t family = AF_UNIX + 1; family < AF_NETLINK; ++family) {
    if (family == AF_INET || family == AF_INET6) continue;
    if (!Deny(filter, EAFNOSUPPORT, SCMP_SYS(socket), {{0, SCMP_CMP_MASKED_EQ, kLow, family}})) return false;
  }
  return true;
}

bool DenyTyping(const Filter& filter) {
  constexpr std::uint64_t kTiocLinux = 0x541C, kLow = 0xFFFFFFFF;
  for (const std::uint64_t request : {std::uint64_t{TIOCSTI}, kTiocLinux}) {
    if (!Deny(filter, EPERM, SCMP_SYS(ioctl), {{1, SCMP_CMP_MASKED_EQ, kLow, request}})) return false;
  }
  return true;
}

std::string Exported(const Filter& filter) {
  const UniqueFd file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file || ::seccomp_export_bpf(filter.get(), file.get()) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
  std::string program;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    program.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return program;
}

}  // namespace

int StartProgram() {
  static const UniqueFd program = [] {
    const std::string path = FindOwnProgram("reprise-start");
    return UniqueFd(path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }();
  return program.get();
}

std::string SyscallFilter() {
  const Filter filter(::seccomp_init(SCMP_ACT_ALLOW));
  if (!filter) return {};
  // Calls of another architecture (32 bits) fail with ENOSYS.
  bool ok = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) == 0;
  for (const int call : kForbidden) ok = ok && Deny(filter, EPERM, call);
  for (const int call : kMissing) ok = ok && Deny(filter, ENOSYS, call);
  ok = ok && Deny(filter, EPERM, SCMP_SYS(clone), {Bits(0, CLONE_NEWUSER)});
  ok = ok && DenyOtherSockets(filter) && DenySetIdBits(filter) && DenyTyping(filter);
  return ok ? Exported(filter) : std::string();
}

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kPrograms = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};
constexpr const char* kStat = "/usr/bin/stat";
// What reprise-start does (process/start), where it is not installed. The limit is -p in dash, and -u in other shells.
constexpr const char* kStart = R"sh(if [ "$0" ] && [ "$(/usr/bin/stat -c %d:%i .)" != "$0" ]; then
echo 'the workspace was replaced while the command was being started' >&2; exit 126; fi
if [ "$1" -gt 0 ]; then ulimit -p "$1" 2>/dev/null || ulimit -u "$1" || exit 126; fi
shift; exec "$@")sh";
constexpr std::uint64_t kMegabyte = 1024 * 1024;
constexpr std::chrono::seconds kMaxTrial{10};
constexpr std::chrono::seconds kLookAgain{10};  // for an incomplete sandbox

// The places of programs, libraries and their configuration.
constexpr std::array<const char*, 9> kSystem = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                                "/lib64", "/libx32", "/etc",  "/opt"};
// Folders in memory, in addition to home.
constexpr std::array<const char*, 4> kScratch = {"/tmp", "/var/tmp", "/run", "/dev/shm"};

struct Mount {
  enum class Kind { kReadOnly, kWritable, kMemory, kLink, kDevices, kProcesses };
  Kind kind;
  std::string source;  // of the first two kinds, or the link's target
};
// By path, so that nested mounts come after their parent.
using Mounts = std::map<fs::path, Mount>;

std::optional<fs::path> RealPath(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;  // as most paths to hide, which one call tells instead of five
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
    // Also mount it at the given path, unless another mount is there.
    if (named != *real && !mounts.contains(named)) mounts[named] = {Mount::Kind::kLink, real->string()};
  }
}

// The innermost mount that contains the path; null if there is none.
const Mounts::value_type* Above(const Mounts& mounts, const fs::path& path) {
  const Mounts::value_type* above = nullptr;
  for (const auto& mount : mounts) {
    if (LiesBeneath(path, mount.first)) above = &mount;
  }
  return above;
}

bool IsBind(const Mount& mount) { return mount.kind == Mount::Kind::kReadOnly || mount.kind == Mount::Kind::kWritable; }

// This program and the libraries that came with it, because it runs in there too (process/listeners.h), and looks for
// them from where it lies. Only the archive of scripts/package.d/archive has this folder; nothing otherwise.
std::vector<std::string> OwnFiles() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path libraries = (program.parent_path() / "../lib/reprise").lexically_normal();
  if (error || !fs::is_directory(libraries, error)) return {};
  return {program.string(), libraries.string()};
}

Mounts MountsFor(const Sandbox::Options& options, const std::string& home) {
  Mounts mounts;
  const fs::path workspace = options.workspace;
  for (const char* path : kSystem) {
    std::error_code error;
    if (!workspace.empty() && LiesBeneath(path, workspace)) continue;  // it is writable as the workspace
    if (fs::is_symlink(path, error)) {
      mounts[path] = {Mount::Kind::kLink, fs::read_symlink(path, error).string()};
    } else if (fs::is_directory(path, error)) {
      mounts[path] = {Mount::Kind::kReadOnly, path};
    }
  }
  mounts["/dev"] = {Mount::Kind::kDevices, {}};
  mounts["/proc"] = {Mount::Kind::kProcesses, {}};
  // /run has the sockets of services (docker, D-Bus, key agents).
  for (const char* path : kScratch) mounts[path] = {Mount::Kind::kMemory, {}};
  if (!mounts.contains(home)) mounts[home] = {Mount::Kind::kMemory, {}};
  AddNamed(OwnFiles(), Mount::Kind::kReadOnly, mounts);
  AddNamed(options.readable_paths, Mount::Kind::kReadOnly, mounts);
  AddNamed(options.writable_paths, Mount::Kind::kWritable, mounts);
  if (!workspace.empty()) mounts[workspace] = {Mount::Kind::kWritable, options.workspace};
  // A mount point cannot be made below a link, or in a read-only mount that lacks it.
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

// Where git's settings can be written without touching a file of the user; empty if nowhere.
std::string GitPlace(const Mounts& mounts, const std::string& in_home) {
  for (const std::string& place : {in_home, std::string("/tmp/.gitconfig")}) {
    const Mounts::value_type* above = Above(mounts, place);
    if (above != nullptr && above->second.kind == Mount::Kind::kMemory) return place;
  }
  return {};
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

// Whether the path lies in one of git's own folders, which must not be replaced.
bool IsGits(const fs::path& path) {
  return std::ranges::any_of(path, [](const fs::path& name) { return name == ".git"; });
}

// Hides the existing paths of `hidden_paths` and makes those of `read_only` read-only if they are visible. bubblewrap
// cannot mount over a missing path or into a hidden directory. A mount point can be neither moved nor removed, but a
// directory above it can. So each such directory in a writable mount becomes a mount point too, and a hidden path or a
// folder of git cannot be replaced.
void AppendClosed(const std::vector<std::string>& hidden_paths, const std::vector<std::string>& read_only,
                  const Mounts& mounts, std::vector<std::string>& arguments) {
  std::map<fs::path, bool> present;  // whether it is hidden; sorted, so parents come first
  const auto add = [&](const std::string& path, bool is_hidden) {
    auto real = RealPath(path);
    if (!real) return;
    const Mounts::value_type* above = Above(mounts, *real);
    if (above == nullptr || !IsBind(above->second)) return;
    if (!is_hidden && (above->second.kind == Mount::Kind::kReadOnly || above->first == *real)) return;
    present.try_emplace(*std::move(real), is_hidden);
  };
  for (const std::string& path : hidden_paths) add(path, /*is_hidden=*/true);
  for (const std::string& path : read_only) add(path, /*is_hidden=*/false);
  std::error_code error;
  std::optional<fs::path> covered;
  std::set<fs::path> fixed;
  for (const auto& mount : mounts) fixed.insert(mount.first);
  for (const auto& [path, is_hidden] : present) {
    if (covered && LiesBeneath(path, *covered)) continue;
    const Mounts::value_type& above = *Above(mounts, path);
    if (above.second.kind == Mount::Kind::kWritable && above.first != path && (is_hidden || IsGits(path))) {
      fs::path directory = above.first;
      for (const fs::path& name : path.parent_path().lexically_relative(above.first)) {
        directory /= name;
        if (name == "." || !fixed.insert(directory).second) continue;
        arguments.insert(arguments.end(), {"--bind", directory.string(), directory.string()});
      }
    }
    if (!is_hidden) {
      arguments.insert(arguments.end(), {"--ro-bind", path.string(), path.string()});
    } else if (fs::is_directory(path, error)) {
      // Read-only too, so that writes fail instead of being lost.
      arguments.insert(arguments.end(), {"--tmpfs", path.string(), "--remount-ro", path.string()});
      covered = path;
    } else {
      arguments.insert(arguments.end(), {"--ro-bind", "/dev/null", path.string()});
    }
  }
}

// Takes this thread's capabilities away during its life, where the system lets it.
class WithoutCapabilities {
 public:
  WithoutCapabilities() {
    if (::syscall(SYS_capget, &head_, before_.data()) != 0) return;
    auto none = before_;
    for (__user_cap_data_struct& each : none) each.effective = 0;
    are_taken_ = ::syscall(SYS_capset, &head_, none.data()) == 0;
  }
  ~WithoutCapabilities() {
    if (are_taken_) ::syscall(SYS_capset, &head_, before_.data());
  }
  WithoutCapabilities(const WithoutCapabilities&) = delete;
  WithoutCapabilities& operator=(const WithoutCapabilities&) = delete;

 private:
  __user_cap_header_struct head_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> before_{};
  bool are_taken_ = false;
};

// Whether a command could read the path, or enter it, now or after a change of its mode. It has no capabilities, which
// a server of root has: much in /etc belongs to the users of services, and each mount takes its time.
bool MayOpen(const std::string& path, bool is_folder) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || status.st_uid == ::geteuid()) return true;
  const auto may = [&](int what) { return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0; };
  return may(R_OK) || (is_folder && may(X_OK));
}

}  // namespace

std::vector<std::string> ClosedIn(const std::string& folder) {
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
  const WithoutCapabilities as_in_the_sandbox;
  std::erase_if(closed, [](const std::string& path) { return !MayOpen(path, IsDirectory(path)); });
  return closed;
}

namespace {

std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return OneLine(newline == std::string::npos ? text : text.substr(newline + 1));
}

// The cause in bubblewrap's complaint, without the advice: "bwrap: CAUSE, likely because ... See ...".
std::string Cause(const std::string& complaint) {
  constexpr std::string_view kName = "bwrap: ";
  constexpr std::size_t kMaxShown = 120;
  std::string cause = complaint.starts_with(kName) ? complaint.substr(kName.size()) : complaint;
  for (const char* advice : {", likely ", ". "}) cause = cause.substr(0, cause.find(advice));
  return cause.substr(0, kMaxShown);
}

// The full path of bubblewrap, not from PATH; empty if it is not installed.
std::string Program() {
  const auto* const program =
      std::ranges::find_if(kPrograms, [](const char* path) { return ::access(path, X_OK) == 0; });
  return program == kPrograms.end() ? std::string() : *program;
}

// `start`: the descriptor of reprise-start in the sandbox; -1: there is none.
std::vector<std::string> StartBefore(int start, const std::string& workspace_id, std::uint64_t most_processes) {
  rlimit own{};
  // The limit cannot exceed that of this process.
  const rlim_t most = ::getrlimit(RLIMIT_NPROC, &own) == 0 ? own.rlim_max : RLIM_INFINITY;
  const std::string processes = std::to_string(std::min<rlim_t>(most_processes, most));
  if (start < 0) return {"/bin/sh", "-c", kStart, ::access(kStat, X_OK) == 0 ? workspace_id : "", processes};
  const std::string number = std::to_string(start);
  return {"/proc/self/fd/" + number, number, workspace_id, processes};
}

std::string HomeFor(const Sandbox::Options& options) {
  fs::path home = fs::path(options.home).lexically_normal();
  if (!home.has_filename()) home = home.parent_path();
  std::error_code error;
  const bool usable = home.is_absolute() && home != home.root_path() && !LiesBeneath(home, options.workspace) &&
                      !LiesBeneath(fs::weakly_canonical(home, error), options.workspace);
  // Not the workspace, where programs would read tokens and leave files.
  return usable ? home.string() : "/tmp";
}

}  // namespace

Sandbox::Sandbox(Options options) : options_(std::move(options)), home_(HomeFor(options_)) {}

Sandbox::State Sandbox::state() const {
  const MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (state_ && (!state_->must_ask() || now < looked_at_ + kLookAgain)) return *state_;
  State found = Check();
  if (found.must_ask() && !options_.workspace.empty() && !IsDirectory(options_.workspace)) {
    // The folder is what is missing, not the sandbox. Each call says so, and runs nothing.
    Options elsewhere = options_;
    elsewhere.workspace.clear();
    found = Sandbox(std::move(elsewhere)).state();
  }
  if (found.must_ask() && (!state_ || state_->missing != found.missing)) {
    LogWarning("the sandbox for commands is not whole: each command is asked about",
               {{"missing", found.missing}, {"available", found.available}});
  } else if (state_ && !found.must_ask()) {
    LogInfo("the sandbox for commands is whole", {});
  }
  state_ = std::move(found);
  looked_at_ = std::chrono::steady_clock::now();
  return *state_;
}

Sandbox::State Sandbox::Check() const {
  if (options_.use == SandboxUse::kNever) return {.missing = "switched off by the configuration", .switched_off = true};
  if (Program().empty()) return {.missing = "bubblewrap is not installed"};
  std::call_once(prepared_, [this] {
    closed_etc_ = ClosedIn("/etc");
    filter_ = SyscallFilter();
  });
  const std::string why = filter_.empty() ? "there is none for this machine" : Try(/*filtered=*/true);
  if (why.empty()) return {.available = true, .filtered = true};
  if (const std::string bare = Try(/*filtered=*/false); !bare.empty()) return {.missing = bare};
  return {.available = true, .missing = "the filter of system calls (" + why + ")"};
}

std::string Sandbox::Try(bool filtered) const {
  const Command trial =
      Confined({.argv = {"/bin/sh", "-c", "exit 0"}, .environment = {}, .directory = "/"}, filtered, {});
  const auto result = RunCommand(trial, {.timeout = kMaxTrial}, std::stop_token());
  if (!result) return "bubblewrap cannot be started";
  if (result->end == CommandResult::End::kTimedOut) return "bubblewrap takes too long to start";
  if (result->end == CommandResult::End::kExited && result->status == 0) return {};
  const std::string complaint = LastLine(result->output);
  Log(LogLevel::kDebug, "bubblewrap does not work", {{"output", complaint}});
  return "bubblewrap does not work here: " + Cause(complaint);
}

Command Sandbox::Confined(Command command, const SandboxGifts& gifts) const {
  return Confined(std::move(command), state().filtered, gifts);
}

Command Sandbox::Confined(Command command, bool filtered, const SandboxGifts& gifts) const {
  const Mounts mounts = MountsFor(options_, home_);
  std::vector<std::string> wrapped = {Program(), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"};
  for (const auto& [place, mount] : mounts) Append(place, mount, options_.limits, wrapped);
  std::vector<std::string> hidden = options_.hidden_paths;
  hidden.insert(hidden.end(), closed_etc_.begin(), closed_etc_.end());
  AppendClosed(hidden, gifts.found != nullptr ? gifts.found->there : Look().there, mounts, wrapped);
  // bubblewrap's directories for mount points lie in memory without a size limit.
  wrapped.insert(wrapped.end(), {"--remount-ro", "/dev"});
  if (!mounts.contains("/")) wrapped.insert(wrapped.end(), {"--remount-ro", "/"});
  const auto next_descriptor = [&command] {
    return kExtraDescriptor + static_cast<int>(command.extra_inputs.size() + command.extra_descriptors.size());
  };
  if (filtered) {
    wrapped.insert(wrapped.end(), {"--seccomp", std::to_string(next_descriptor())});
    command.extra_inputs.push_back(filter_);
  }
  const std::string in_home = home_ + "/.gitconfig";
  if (const std::string place = gifts.git_configuration.empty() ? "" : GitPlace(mounts, in_home); !place.empty()) {
    wrapped.insert(wrapped.end(), {"--file", std::to_string(next_descriptor()), place});
    command.extra_inputs.push_back(gifts.git_configuration);
    if (place != in_home) command.environment.push_back("GIT_CONFIG_GLOBAL=" + place);
  }
  wrapped.insert(wrapped.end(), {"--chdir", options_.workspace.empty() ? "/" : options_.workspace, "--"});
  const auto number_of = [&](int descriptor) {
    if (descriptor < 0) return -1;
    const int number = next_descriptor();
    command.extra_descriptors.push_back(descriptor);
    return number;
  };
  if (!gifts.workspace_id.empty() || options_.limits.processes > 0) {
    const auto before = StartBefore(number_of(options_.start_program), gifts.workspace_id, options_.limits.processes);
    wrapped.insert(wrapped.end(), before.begin(), before.end());
  }
  if (gifts.listeners_socket >= 0 || gifts.ways_in_socket >= 0) {
    const InnerDescriptors inner{.program = number_of(gifts.program),
                                 .listeners = number_of(gifts.listeners_socket),
                                 .ways_in = number_of(gifts.ways_in_socket)};
    const auto before = ListenersBefore(inner, gifts.ports);
    wrapped.insert(wrapped.end(), before.begin(), before.end());
  }
  wrapped.insert(wrapped.end(), command.argv.begin(), command.argv.end());
  command.argv = std::move(wrapped);
  return command;
}

FoundRunByOthers Sandbox::Look() const {
  FoundRunByOthers all;
  std::vector<std::string> folders = options_.writable_paths;
  if (!options_.workspace.empty()) folders.push_back(options_.workspace);
  for (const std::string& path : options_.hidden_paths) {
    struct stat status {};
    const bool within =
        std::ranges::any_of(folders, [&](const std::string& folder) { return LiesBeneath(path, folder); });
    if (within && ::lstat(path.c_str(), &status) != 0 && errno != EACCES) all.missing.push_back(path);
  }
  const std::string home = options_.home.empty() ? "" : Resolved(options_.home).string();
  for (const std::string& folder : folders) {
    const auto real = RealPath(folder);
    if (!real || !fs::is_directory(*real)) continue;
    const FoundRunByOthers found = FindRunByOthers(real->string(), home, options_.hidden_paths);
    all.there.insert(all.there.end(), found.there.begin(), found.there.end());
    all.missing.insert(all.missing.end(), found.missing.begin(), found.missing.end());
  }
  return all;
}

bool Sandbox::Shows(std::string_view path) const {
  const fs::path normal = fs::path(path).lexically_normal();
  const Mounts mounts = MountsFor(options_, home_);
  const Mounts::value_type* above = Above(mounts, normal);
  return above != nullptr && (IsBind(above->second) || above->second.kind == Mount::Kind::kLink);
}

}  // namespace reprise
