#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/workspace_change.h"
#include "rewind/content_cache.h"
#include "rewind/workspace_files.h"
#include "tools/files/ignore_rules.h"
#include "tools/files/workspace.h"

namespace reprise {

struct RewindLimits {
  std::uint64_t file_bytes = 10ull << 20;   // of a file whose content is kept
  std::uint64_t cache_bytes = 2ull << 30;   // of all contents held as future "before" versions
  std::uint64_t kept_bytes = 256ull << 20;  // of the contents that one call changes
  std::size_t changes = 20'000;             // recorded for one run
  std::size_t entries = 1'000'000;          // in the workspace
};

// Knows the content of the workspace: the manifest (every file, link and directory as last seen) and the files'
// contents. It reads everything once; then the kernel reports the directories that change (inotify). If that is
// impossible (too few watches, a file system of another machine), every call looks at every entry. Thread-safe; calls
// wait for each other.
class WorkspaceTracker {
 public:
  // Keeps contents in a nameless file in `cache_folder`. `workspace` must outlive it.
  WorkspaceTracker(const Workspace& workspace, std::string cache_folder, RewindLimits limits);

  // Makes the current state the "before". False if the workspace is too large or `stop` was requested.
  bool Refresh(const std::stop_token& stop);
  // Whether Refresh can do so. Leaves the "before" as it is.
  bool IsKnown(const std::stop_token& stop);
  // The changes since the last Refresh or Collect: at most `most`, then only some files that other programs run
  // (WhoRuns); the rest is counted. `keep` receives each content of the recorded changes.
  using Keep = std::function<void(const std::string& digest, std::string content)>;
  WorkspaceChanges Collect(const Keep& keep, std::size_t most);
  // Makes the current state of these paths the "before", because their changes are reported in another way.
  void Settle(const std::vector<std::string>& paths);

  // Whether this path must not be reported.
  bool IsIgnored(const std::string& path) const;
  const WorkspaceFiles& files() const { return files_; }
  const Workspace& workspace() const { return workspace_; }
  const RewindLimits& limits() const { return limits_; }

 private:
  struct Signature {
    std::uint64_t inode = 0, size = 0, links = 0;
    std::int64_t modified = 0, changed = 0;
    std::uint32_t mode = 0;
    bool operator==(const Signature&) const = default;
  };
  struct Entry {
    FileVersion::Kind kind = FileVersion::Kind::kFile;
    Signature signature;
    std::optional<ContentCache::Place> content{};  // for a file or a link
    FileExtras extras{};
  };
  struct Directory {
    std::map<std::string, Entry> entries;
    int watch = -1;
    std::shared_ptr<const IgnoreRules> rules;  // null: nothing is ignored
    bool ignored = false;                      // tracked only for files in it that others run
  };
  using Rules = IgnoreFiles::Rules;
  // The changes that one look found; a null pointer means not to report them.
  struct Findings {
    const Keep& keep;
    const std::size_t most;
    std::map<std::string, WorkspaceChange> changes{};
    std::uint64_t omitted = 0;
    std::uint64_t kept_bytes = 0;
    bool full = false;
  };

  bool Build(const std::stop_token& stop) REQUIRES(mutex_);
  void Drop() REQUIRES(mutex_);
  void Update(Findings* findings) REQUIRES(mutex_);
  // The kernel's events: names by their directory, and removed directories. Others may have taken their place, even
  // with the same inode numbers.
  struct Told {
    std::map<std::string, std::set<std::string>> dirty;
    std::set<std::string> removed;
  };
  Told ReadEvents() REQUIRES(mutex_);
  void LookAtAll(Findings* findings) REQUIRES(mutex_);
  void AddLinked(const std::string& path, std::uint64_t inode) REQUIRES(mutex_);
  void LookForOtherNames(Findings* findings) REQUIRES(mutex_);
  void LookAt(const std::string& directory, const std::set<std::string>& names, bool sure, Findings* findings)
      REQUIRES(mutex_);
  void LookAtName(int fd, const std::string& directory, const std::string& name, bool sure, Findings* findings)
      REQUIRES(mutex_);
  // Adds a directory with its content. False if stopped, or if there are too many entries.
  bool AddDirectory(const std::string& path, Findings* findings, const std::stop_token& stop) REQUIRES(mutex_);
  void AddEntry(int fd, const std::string& directory, const std::string& name, const struct stat& status,
                Findings* findings) REQUIRES(mutex_);
  void RemoveEntry(const std::string& directory, const std::string& name, Findings* findings) REQUIRES(mutex_);
  void NewRules(const std::string& directory) REQUIRES(mutex_);
  void ApplyNewRules(const std::string& directory) REQUIRES(mutex_);
  // Whether to record a change of this path. Counts the changes over the limit.
  bool Records(Findings* findings, const std::string& path) const REQUIRES(mutex_);
  void Note(Findings* findings, const std::string& path, std::optional<FileVersion> before,
            std::optional<FileVersion> after) REQUIRES(mutex_);
  std::optional<FileVersion> VersionOf(const Entry& entry, Findings* findings) REQUIRES(mutex_);
  FileVersion Kept(ReadVersion read, Findings* findings) REQUIRES(mutex_);
  UniqueFd OpenDirectory(const std::string& path) const;
  void Watch(int fd, const std::string& path, Directory& directory) REQUIRES(mutex_);
  void StopWatching(std::string_view why) REQUIRES(mutex_);
  Rules RulesOnDisk(const std::string& directory) const;
  // Whether an entry is left out regardless of ignore rules.
  bool IsLeftOut(const std::string& name, const std::string& path) const;
  bool IsClosed(const std::string& path) const;
  // Whether ignore rules of its folder or of one above leave it out. Never true for files that others run.
  bool IsPassedOver(const Rules& rules, bool folder_is_ignored, const std::string& path, bool is_directory) const;
  static Signature SignatureOf(const struct stat& status);

  const Workspace& workspace_;
  const RewindLimits limits_;
  const WorkspaceFiles files_;
  const IgnoreFiles ignored_;
  std::set<std::string> closed_;  // protected paths in the workspace, relative
  mutable Mutex mutex_;
  ContentCache cache_ GUARDED_BY(mutex_);
  bool built_ GUARDED_BY(mutex_) = false;
  bool too_large_ GUARDED_BY(mutex_) = false;
  bool told_full_ GUARDED_BY(mutex_) = false;
  std::uint64_t root_inode_ GUARDED_BY(mutex_) = 0, root_device_ GUARDED_BY(mutex_) = 0;
  std::size_t count_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Directory> directories_ GUARDED_BY(mutex_);  // by path; "" is the workspace
  std::set<std::string> linked_ GUARDED_BY(mutex_);                  // files with several names, perhaps elsewhere
  std::set<std::uint64_t> newly_linked_ GUARDED_BY(mutex_);          // their inodes, since the last Update
  std::map<std::string, Rules> old_rules_ GUARDED_BY(mutex_);        // within an Update: previous rules of directories
  UniqueFd inotify_ GUARDED_BY(mutex_);                              // empty if nothing is watched
  std::unordered_map<int, std::string> watches_ GUARDED_BY(mutex_);
  bool missed_ GUARDED_BY(mutex_) = false;         // the kernel's event queue overflowed
  std::int64_t looked_at_ GUARDED_BY(mutex_) = 0;  // nanoseconds of the file system's clock
};

}  // namespace reprise
