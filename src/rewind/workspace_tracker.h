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
#include "reprise/result.h"
#include "reprise/workspace_change.h"
#include "rewind/content_cache.h"
#include "rewind/ignore_rules.h"
#include "rewind/workspace_files.h"
#include "tools/files/workspace.h"

namespace reprise {

struct RewindLimits {
  std::uint64_t file_bytes = 10ull << 20;   // of one file whose content is kept
  std::uint64_t cache_bytes = 2ull << 30;   // of all contents that are held for what comes
  std::uint64_t kept_bytes = 256ull << 20;  // of what one call changes
  std::size_t changes = 20'000;             // that one run may have recorded
  std::size_t entries = 1'000'000;          // of the workspace
};

// Knows what is in the workspace: the manifest (every file, link and directory as it was seen last) and what the files
// held. It is made once, by reading everything; from then on the kernel says which directories have changed (inotify).
// Where that cannot be (too few watches, a file system of another machine) every entry is looked at each time.
// Thread-safe; calls wait for each other.
class WorkspaceTracker {
 public:
  // Contents are held in a file without a name in `cache_folder`. `workspace` must outlive it.
  WorkspaceTracker(const Workspace& workspace, std::string cache_folder, RewindLimits limits);

  // Takes what is there now for what was there before. False: the workspace cannot be known (it is too large, or `stop`
  // was requested).
  bool Refresh(const std::stop_token& stop);
  // What has changed since the last Refresh or Collect: at most so many, and beyond them only some of what others run
  // (WhoRuns); the rest is counted. `keep` is given each content that the recorded changes speak of.
  using Keep = std::function<void(const std::string& digest, std::string content)>;
  WorkspaceChanges Collect(const Keep& keep, std::size_t most);
  // Takes these paths as they are now for what was there before: somebody tells of them otherwise.
  void Settle(const std::vector<std::string>& paths);

  // Whether nobody is to know of this path.
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
    std::optional<ContentCache::Place> content{};  // of a file or a link
  };
  struct Directory {
    std::map<std::string, Entry> entries;
    int watch = -1;
    std::shared_ptr<const IgnoreRules> rules;  // null: nothing is ignored
    bool ignored = false;                      // it is known for what others run in it alone
  };
  using Rules = IgnoreFiles::Rules;
  // What one look has found; null where it is not told.
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
  // What the kernel has told: names by their directory, and directories that were removed. There may be others in their
  // place, with the same inode numbers even.
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
  // A directory, with all that is in it. False: it was stopped, or there is too much.
  bool AddDirectory(const std::string& path, Findings* findings, const std::stop_token& stop) REQUIRES(mutex_);
  void AddEntry(int fd, const std::string& directory, const std::string& name, const struct stat& status,
                Findings* findings) REQUIRES(mutex_);
  void RemoveEntry(const std::string& directory, const std::string& name, Findings* findings) REQUIRES(mutex_);
  void NewRules(const std::string& directory) REQUIRES(mutex_);
  void ApplyNewRules(const std::string& directory) REQUIRES(mutex_);
  // Whether a change of this path is told, and recorded; one that only is counted is so here.
  bool Records(Findings* findings, const std::string& path) const REQUIRES(mutex_);
  void Note(Findings* findings, const std::string& path, std::optional<FileVersion> before,
            std::optional<FileVersion> after) REQUIRES(mutex_);
  std::optional<FileVersion> VersionOf(const Entry& entry, Findings* findings) REQUIRES(mutex_);
  FileVersion Kept(ReadVersion read, Findings* findings) REQUIRES(mutex_);
  UniqueFd OpenDirectory(const std::string& path) const;
  void Watch(int fd, const std::string& path, Directory& directory) REQUIRES(mutex_);
  void StopWatching(std::string_view why) REQUIRES(mutex_);
  Rules RulesOnDisk(const std::string& directory) const;
  // Of an entry, by itself: whatever is ignored besides.
  bool IsLeftOut(const std::string& name, const std::string& path) const;
  bool IsClosed(const std::string& path) const;
  // Whether the rules of the folder that it lies in, or of one above, leave it out. Never what others run.
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
  std::set<std::string> linked_ GUARDED_BY(mutex_);          // files with more names than one: others may lie elsewhere
  std::set<std::uint64_t> newly_linked_ GUARDED_BY(mutex_);  // their inodes, since the last Update
  std::map<std::string, Rules> old_rules_ GUARDED_BY(mutex_);  // within an Update: of directories that have others now
  UniqueFd inotify_ GUARDED_BY(mutex_);                        // empty: nothing is watched
  std::unordered_map<int, std::string> watches_ GUARDED_BY(mutex_);
  bool missed_ GUARDED_BY(mutex_) = false;         // the kernel had no room for what it had to say
  std::int64_t looked_at_ GUARDED_BY(mutex_) = 0;  // nanoseconds of the clock that files are stamped with
};

}  // namespace reprise
