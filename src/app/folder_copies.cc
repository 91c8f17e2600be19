#include "app/folder_copies.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "reprise/blob_store.h"
#include "rewind/tracked_history.h"
#include "rewind/workspace_files.h"
#include "rewind/workspace_tracker.h"
#include "tools/files/ignore_rules.h"
#include "tools/files/workspace_walk.h"
#include "tools/tool_catalog.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "reprise-copy.";
// A folder that is not locked yet may be this young.
constexpr std::chrono::seconds kYoungest{10};

// Those of kWorkspaceTools that work on files alone, and commands, which the sandbox confines.
constexpr std::array<std::string_view, 10> kInCopy{"list_files", "read_file", "find_files",  "search_files",
                                                   "write_file", "edit_file", "apply_patch", "delete_file",
                                                   "run_shell",  "run_code"};
constexpr std::array<std::string_view, 7> kAnywhereTools{
    "echo", "calculator", "current_time", "manage_tasks", "update_plan", "list_chat_files", "read_chat_file"};

// Contents that a run's recorder keeps.
class HeldBlobs final : public BlobStore {
 public:
  Result<void> Put(const ChatId&, const std::vector<Blob>& blobs) override {
    const MutexLock lock(mutex_);
    for (const Blob& blob : blobs) contents_.emplace(blob.digest, blob.content);
    return {};
  }
  Result<std::string> Get(const ChatId&, std::string_view digest) override {
    const MutexLock lock(mutex_);
    const auto found = contents_.find(digest);
    if (found == contents_.end()) return Fail(ErrorCode::kNotFound, "the content is not kept");
    return found->second;
  }
  Result<std::vector<std::string>> List(const ChatId&) override { return std::vector<std::string>(); }
  Result<void> Delete(const ChatId&, std::string_view) override { return {}; }
  Result<std::optional<std::string>> ReadPosition(const ChatId&) override { return std::nullopt; }
  Result<void> WritePosition(const ChatId&, std::string_view) override { return {}; }
  Result<void> WriteIntent(const ChatId&, std::string_view) override { return {}; }
  Result<std::vector<Intent>> ReadIntents() override { return std::vector<Intent>(); }
  void ForgetChat(const ChatId&) override {}

 private:
  Mutex mutex_;
  std::map<std::string, std::string, std::less<>> contents_ GUARDED_BY(mutex_);
};

fs::path TemporaryFolder() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && IsDirectory(named) ? Resolved(named) : fs::path("/tmp");
}

// Also what a call has made read-only.
void RemoveTree(const fs::path& path) {
  std::error_code ignored;
  const auto open_up = [&](const fs::path& folder) {
    fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add | fs::perm_options::nofollow, ignored);
  };
  open_up(path);
  for (auto at = fs::recursive_directory_iterator(path, ignored); at != fs::recursive_directory_iterator();) {
    if (at->symlink_status(ignored).type() == fs::file_type::directory) open_up(at->path());
    at.increment(ignored);
    if (ignored) break;
  }
  fs::remove_all(path, ignored);
  if (IsThere(path)) LogWarning("a copy of a workspace cannot be removed", {{"folder", path.string()}});
}

// A private folder, locked while its process lives.
class PrivateFolder {
 public:
  static Result<PrivateFolder> Make() {
    std::string path = (TemporaryFolder() / (std::string(kPrefix) + "XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) return Fail(SystemError(errno, "mkdtemp " + path));
    PrivateFolder folder(std::move(path));
    folder.lock_ = UniqueFd(::open(folder.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.lock_ || ::flock(folder.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      return Fail(SystemError(errno, "flock " + folder.path_));
    }
    return folder;
  }
  PrivateFolder(PrivateFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  ~PrivateFolder() {
    if (!path_.empty()) RemoveTree(path_);
  }
  const std::string& path() const { return path_; }

  // Removes the folders of processes that are gone.
  static void Sweep() {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(TemporaryFolder(), failed)) {
      if (!entry.path().filename().string().starts_with(kPrefix)) continue;
      const UniqueFd folder(::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      struct stat status {};
      if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) continue;
      const auto changed = std::chrono::system_clock::from_time_t(status.st_mtime);
      if (changed > std::chrono::system_clock::now() - kYoungest) continue;
      if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) RemoveTree(entry.path());
    }
  }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  UniqueFd lock_;
};

// Copies the files of a workspace into an empty folder.
class Copying {
 public:
  Copying(const Workspace& from, const std::string& to, const FolderCopies::Limits& limits, std::stop_token stop)
      : from_(from), to_(to), limits_(limits), stop_(std::move(stop)) {}

  Result<void> All() {
    const UniqueFd root(::open(to_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root) return Fail(SystemError(errno, "open " + to_));
    const IgnoreFiles none(from_);
    WorkspaceWalk walk(from_, none, {.most_entries = 4 * limits_.files, .stop = stop_, .with_ignored = true});
    TRY(walk.Through(".", Secrets::kClosed, [&](const std::string& path, int directory, const char* name) {
      if (!failed_) Copy(root.get(), path, directory, name);
    }));
    if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "the run was stopped");
    if (failed_) return Fail(*failed_);
    if (!walk.complete()) return Fail(TooMuch());
    return {};
  }

 private:
  Error TooMuch() const {
    return MakeError(ErrorCode::kTooLarge,
                     "the workspace " + VisibleLine(from_.directory()) +
                         " is too large to try something in a copy: at "
                         "most " +
                         Counted(limits_.files, "file") + " with " + std::to_string(limits_.bytes >> 20) +
                         " MiB are copied; remove what can be made again, such as a build folder");
  }
  void Copy(int root, const std::string& path, int directory, const char* name) {
    struct stat status {};
    if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;  // it has just gone
    if (++files_ > limits_.files) return Fails(TooMuch());
    const auto parent = Parent(root, path);
    if (!parent) return Fails(SystemError(errno, "make folders for " + path));
    const std::string base = path.substr(path.rfind('/') + 1);
    if (S_ISLNK(status.st_mode)) {
      const ReadVersion link = ReadEntry(directory, name, status, 0);
      if (::symlinkat(link.content.c_str(), parent->get(), base.c_str()) != 0)
        Fails(SystemError(errno, "link " + path));
      return;
    }
    const auto from = from_.OpenEntry(directory, name);  // not what is closed to tools
    if (!from || ::fstat(from->get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const UniqueFd to(
        ::openat(parent->get(), base.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!to) return Fails(SystemError(errno, "create " + path));
    CopyContent(from->get(), to.get(), path);
    const std::array<timespec, 2> times{status.st_atim, status.st_mtim};
    if (::fchmod(to.get(), status.st_mode & 0777) != 0 || ::futimens(to.get(), times.data()) != 0) {
      Fails(SystemError(errno, "set the times of " + path));
    }
  }
  void CopyContent(int from, int to, const std::string& path) {
    std::array<char, 64 * 1024> bytes{};
    while (!stop_.stop_requested()) {
      const ssize_t size = ::read(from, bytes.data(), bytes.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Fails(SystemError(errno, "read " + path));
      if (size == 0) return;
      bytes_ += static_cast<std::uint64_t>(size);
      if (bytes_ > limits_.bytes) return Fails(TooMuch());
      for (ssize_t done = 0; done < size;) {
        const ssize_t written = ::write(to, bytes.data() + done, static_cast<std::size_t>(size - done));
        if (written < 0 && errno != EINTR) return Fails(SystemError(errno, "write " + path));
        if (written > 0) done += written;
      }
    }
  }
  // The folder of the path in the copy, which nobody else can reach yet.
  static std::optional<UniqueFd> Parent(int root, const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return UniqueFd(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::string folder = path.substr(0, slash);
    for (std::size_t at = folder.find('/');; at = folder.find('/', at + 1)) {
      const bool is_last = at == std::string::npos;
      if (::mkdirat(root, folder.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST) return std::nullopt;
      if (is_last) break;
    }
    UniqueFd opened = OpenBeneath(root, folder, O_PATH | O_DIRECTORY, Symlinks::kRefuse);
    if (!opened) return std::nullopt;
    return opened;
  }
  void Fails(Error error) { failed_ = std::move(error); }

  const Workspace& from_;
  const std::string& to_;
  const FolderCopies::Limits& limits_;
  const std::stop_token stop_;
  std::uint64_t bytes_ = 0;
  std::size_t files_ = 0;
  std::optional<Error> failed_{};
};

// Replaces the path `from` by `to` where it stands as a whole or before a slash.
std::string WithPath(const std::string& text, const std::string& from, const std::string& to) {
  const auto goes_on = [](char c) { return IsNameCharacter(c) || c == '-' || c == '.'; };
  std::string changed;
  std::size_t at = 0;
  for (std::size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
    const std::size_t end = found + from.size();
    const bool is_whole = (end == text.size() || !goes_on(text[end])) && (found == 0 || !goes_on(text[found - 1]));
    changed.append(text, at, found - at).append(is_whole ? to : from);
    at = end;
  }
  return changed.append(text, at);
}

class FolderCopy final : public WorkspaceCopy {
 public:
  FolderCopy(PrivateFolder folder, std::string original, ToolOptions options)
      : folder_(std::move(folder)), original_(std::move(original)), tools_(std::move(options)) {}

  Tool* Find(std::string_view name) override {
    if (std::ranges::find(kInCopy, name) == kInCopy.end()) return nullptr;
    return tools_.Current()->Find(name);  // of a set that lives as long as the catalog, because no server changes it
  }
  RunRecorder& recorder() override { return *recorder_; }
  void Apply(const std::vector<WorkspaceChange>& changes, const PastFiles& then) override {
    for (const WorkspaceChange& each : changes) Set(each.path, each.after, then);
  }
  std::optional<std::string> ContentOf(const FileVersion& version) override {
    auto content = history_.ContentOf(chat_, version);
    return content ? std::optional(*std::move(content)) : std::nullopt;
  }
  std::string DiffOf(const WorkspaceChange& change) override { return history_.DiffOf(chat_, change).value_or(""); }
  std::string ForCopy(std::string text) const override { return WithPath(text, original_, path()); }
  std::string FromCopy(std::string text) const override { return WithPath(text, path(), original_); }

  void GoBack(const PastFiles& then) {
    const std::int64_t moment =
        std::chrono::duration_cast<std::chrono::nanoseconds>(then.at.time_since_epoch()).count();
    std::vector<const PastFiles::File*> others;
    for (const PastFiles::File& each : then.files) {
      if (each.is_certain || !IsAsOld(each.path, moment)) others.push_back(&each);
    }
    // What was not there goes first, and folders after what lies in them.
    for (auto each = others.rbegin(); each != others.rend(); ++each) {
      if (!(*each)->version) Set((*each)->path, std::nullopt, then);
    }
    for (const PastFiles::File* const each : others) {
      if (each->version) Set(each->path, each->version, then);
    }
  }

 private:
  const std::string& path() const { return tools_.workspace().directory(); }
  bool IsAsOld(const std::string& path, std::int64_t moment) const {
    struct stat status {};
    const auto root = tools_.workspace().OpenRoot();
    if (!root || CheckWorkspacePath(path).has_value() == false) return true;
    const UniqueFd there = OpenBeneath(root->get(), path, O_PATH | O_NOFOLLOW, Symlinks::kRefuse);
    return there && ::fstat(there.get(), &status) == 0 && Nanoseconds(status.st_mtim) <= moment;
  }
  // A path that cannot be set, such as one of git's own, stays as it is.
  void Set(const std::string& path, const std::optional<FileVersion>& version, const PastFiles& then) {
    const WorkspaceFiles& files = tracker_.files();
    const auto done = [&]() -> Result<void> {
      const auto now = TRY(files.Read(path));
      const bool is_directory = now && now->version.kind == FileVersion::Kind::kDirectory;
      if (version && version->kind == FileVersion::Kind::kDirectory) return files.MakeDirectory(path, version->mode);
      if (!version) return files.Remove(path, is_directory);
      const auto content = then.content ? then.content(*version) : std::nullopt;
      if (!content) return {};
      if (is_directory) TRY(files.Remove(path, /*directory=*/true));
      const std::string staging = WorkspaceFiles::NewStaging();
      const auto placed = files.Stage(staging, path, *version, *content, /*sync=*/false).and_then([&] {
        return files.Place(staging, path);
      });
      files.RemoveStaging(staging);
      return placed;
    }();
    if (!done) LogInfo("a file of the copy stays as it is", {{"path", path}, {"why", done.error().message}});
  }

  const PrivateFolder folder_;  // first: it is removed last
  const std::string original_;
  ToolCatalog tools_;
  HeldBlobs blobs_;
  WorkspaceTracker tracker_{tools_.workspace(), folder_.path(), RewindLimits{}};
  TrackedHistory history_{tracker_, blobs_, /*shared=*/false};
  const ChatId chat_ = *ChatId::Parse("copy");
  const std::unique_ptr<RunRecorder> recorder_ = history_.Record(chat_, /*hooks_change=*/false);
};

// Nothing but the copy can be written or reached.
ToolOptions Confined(ToolOptions options) {
  options.shell.sandbox = SandboxUse::kAlways;
  options.shell.allow_unsandboxed = false;
  options.shell.writable_paths.clear();
  options.shell.network = {};
  return options;
}

}  // namespace

FolderCopies::FolderCopies(const Workspace& workspace, ToolOptions options, Limits limits)
    : workspace_(workspace), options_(Confined(std::move(options))), limits_(limits) {}

WorkspaceCopies::Place FolderCopies::PlaceOf(std::string_view tool) const {
  if (std::ranges::find(kInCopy, tool) != kInCopy.end()) return Place::kCopy;
  return std::ranges::find(kAnywhereTools, tool) != kAnywhereTools.end() ? Place::kAnywhere : Place::kNowhere;
}

Result<std::unique_ptr<WorkspaceCopy>> FolderCopies::Make(const PastFiles& then, const std::stop_token& stop) {
  if (LiesBeneath(TemporaryFolder(), workspace_.directory())) {
    return Fail(ErrorCode::kInvalidArgument,
                "a copy of the workspace would lie in it, because the folder for temporary "
                "files, " +
                    VisibleLine(TemporaryFolder().string()) + ", does; set TMPDIR to another folder");
  }
  if (const MutexLock lock(mutex_); !std::exchange(has_swept_, true)) PrivateFolder::Sweep();
  PrivateFolder folder = TRY(PrivateFolder::Make());
  ToolOptions options = options_;
  options.workspace_directory = folder.path() + "/workspace";
  if (::mkdir(options.workspace_directory.c_str(), 0700) != 0) {
    return Fail(SystemError(errno, "mkdir " + options.workspace_directory));
  }
  TRY(Copying(workspace_, options.workspace_directory, limits_, stop).All());
  auto copy = std::make_unique<FolderCopy>(std::move(folder), workspace_.directory(), std::move(options));
  copy->GoBack(then);
  return copy;
}

}  // namespace reprise
