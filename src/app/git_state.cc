#include "app/git_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/private_file.h"
#include "base/system.h"
#include "base/text.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostParents = 32;
constexpr std::size_t kMaxSmall = 4096;
constexpr std::size_t kMaxPackedRefs = 1 << 20;
constexpr std::size_t kMaxIndex = 16 << 20;
constexpr std::size_t kMaxBranch = 100;
constexpr std::size_t kMaxSnapshots = 256;
constexpr std::size_t kShownId = 12;

std::string Read(const fs::path& file, std::size_t max_bytes = kMaxSmall) {
  return std::string(Trimmed(ReadSmallFile(file.string(), max_bytes).value_or("")));
}

struct Repository {
  fs::path top;     // of the work tree
  fs::path git;     // its own files: HEAD, index
  fs::path common;  // those that it shares with other work trees: references
};

// A work tree's .git may be a file that names the place of its own files: believed only if that place knows the work
// tree, or belongs to a repository around it.
std::optional<fs::path> Elsewhere(const fs::path& top) {
  constexpr std::string_view kHead = "gitdir: ", kModules = "/.git/modules/";
  const std::string line = Read(top / ".git");
  if (!line.starts_with(kHead)) return std::nullopt;
  const fs::path git = (top / line.substr(kHead.size())).lexically_normal();
  if (Read(git / "gitdir") == (top / ".git").string()) return git;
  const std::size_t modules = git.string().find(kModules);
  if (modules == std::string::npos || !LiesBeneath(top, git.string().substr(0, modules))) return std::nullopt;
  return git;
}

std::optional<Repository> RepositoryOf(const std::string& folder) {
  std::error_code failed;
  fs::path top = folder;
  for (std::size_t i = 0; i < kMostParents && !fs::exists(top / ".git", failed); ++i) {
    if (!top.has_relative_path()) return std::nullopt;
    top = top.parent_path();
  }
  Repository found{.top = top, .git = top / ".git", .common = {}};
  if (!fs::is_directory(found.git, failed)) {
    auto elsewhere = Elsewhere(top);
    if (!elsewhere) return std::nullopt;
    found.git = *std::move(elsewhere);
  }
  const std::string common = Read(found.git / "commondir");
  found.common = common.empty() ? found.git : (found.git / common).lexically_normal();
  return found;
}

bool IsId(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && std::ranges::all_of(text, [](char c) { return HexDigit(c) >= 0; });
}

// Whether it can stand in a sentence of ours and in a path.
bool IsPlainBranch(std::string_view name) {
  const auto is_plain = [](char c) {
    return IsNameCharacter(c) || std::string_view("-./+#@=").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kMaxBranch && name.front() != '/' &&
         name.find("..") == std::string_view::npos && std::ranges::all_of(name, is_plain);
}

// The commit of a reference, abbreviated; empty if it has none yet.
std::string CommitOf(const Repository& repository, const std::string& reference) {
  std::string id = Read(repository.common / reference);
  if (!IsId(id)) {
    const std::string packed =
        "\n" + ReadSmallFile((repository.common / "packed-refs").string(), kMaxPackedRefs).value_or("");
    const std::size_t at = packed.find(" " + reference + "\n");
    const std::size_t line = at == std::string::npos ? at : packed.rfind('\n', at);
    id = line == std::string::npos ? "" : packed.substr(line + 1, at - line - 1);
  }
  return IsId(id) ? id.substr(0, kShownId) : "";
}

std::string Head(const Repository& repository) {
  constexpr std::string_view kBranch = "ref: refs/heads/";
  const std::string head = Read(repository.git / "HEAD");
  if (IsId(head)) return "no branch, at commit " + head.substr(0, kShownId);
  if (!head.starts_with(kBranch)) return {};
  const std::string branch = head.substr(kBranch.size());
  if (!IsPlainBranch(branch)) return "a branch";
  const std::string commit = CommitOf(repository, "refs/heads/" + branch);
  return "branch " + branch + (commit.empty() ? ", without a commit yet" : " at commit " + commit);
}

std::string InProgress(const Repository& repository) {
  static constexpr std::pair<const char*, const char*> kSigns[] = {
      {"MERGE_HEAD", "merge"},    {"rebase-merge", "rebase"},
      {"rebase-apply", "rebase"}, {"CHERRY_PICK_HEAD", "cherry-pick"},
      {"REVERT_HEAD", "revert"},  {"BISECT_LOG", "bisection"}};
  for (const auto& [file, name] : kSigns) {
    if (IsThere(repository.git / file)) return std::string("a ") + name + " is in progress";
  }
  return {};
}

// git's index (https://git-scm.com/docs/index-format), read up to what is not understood.
class Index {
 public:
  struct Entry {
    std::uint32_t seconds = 0, nanoseconds = 0, mode = 0, size = 0;
    bool is_conflict = false, is_skipped = false;
    std::string path;
  };

  explicit Index(std::string_view bytes) : bytes_(bytes) {
    if (bytes_.substr(0, 4) != "DIRC") return;
    at_ = 4;
    version_ = Number();
    left_ = version_ >= 2 && version_ <= 4 ? Number() : 0;
  }
  std::optional<Entry> Next() {
    constexpr std::size_t kFixed = 62;  // of an entry with a SHA-1
    if (left_ == 0 || bytes_.size() - at_ < kFixed + 2) return std::nullopt;
    --left_;
    const std::size_t begin = at_;
    Entry entry;
    at_ += 8;
    entry.seconds = Number();
    entry.nanoseconds = Number();
    at_ += 8;
    entry.mode = Number();
    at_ += 8;
    entry.size = Number();
    at_ += 20;
    const std::uint32_t flags = Short();
    constexpr std::uint32_t kAssumeValid = 0x8000, kExtended = 0x4000, kStage = 0x3000, kSkipWorktree = 0x4000;
    const std::uint32_t more = version_ >= 3 && (flags & kExtended) != 0 ? Short() : 0;
    entry.is_conflict = (flags & kStage) != 0;
    entry.is_skipped = (flags & kAssumeValid) != 0 || (more & kSkipWorktree) != 0;
    if (version_ == 4) {
      const std::size_t stripped = Offset();
      if (stripped > path_.size()) return Stop();
      path_.resize(path_.size() - stripped);
    } else {
      path_.clear();
    }
    const std::size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) return Stop();
    path_ += bytes_.substr(at_, end - at_);
    at_ = version_ == 4 ? end + 1 : begin + ((end - begin) / 8 + 1) * 8;
    if (at_ > bytes_.size() || path_.empty()) return Stop();
    entry.path = path_;
    return entry;
  }
  // Whether all entries were read, and they are all there are.
  bool is_whole() const { return left_ == 0 && version_ != 0 && bytes_.substr(at_, 4) != "link"; }

 private:
  std::nullopt_t Stop() {
    left_ = 1;
    at_ = bytes_.size();
    return std::nullopt;
  }
  std::uint32_t Short() { return Byte() << 8 | Byte(); }
  std::uint32_t Number() {
    const std::uint32_t high = Short();
    return high << 16 | Short();
  }
  std::uint32_t Byte() { return at_ < bytes_.size() ? static_cast<unsigned char>(bytes_[at_++]) : 0; }
  std::size_t Offset() {
    std::uint32_t byte = Byte();
    std::size_t value = byte & 127;
    while ((byte & 128) != 0 && value < kMaxIndex) {
      byte = Byte();
      value = ((value + 1) << 7) | (byte & 127);
    }
    return value;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint32_t version_ = 0, left_ = 0;
  std::string path_;
};

bool IsChanged(int top, const Index::Entry& entry) {
  struct stat status {};
  if (::fstatat(top, entry.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return true;
  if (static_cast<std::uint32_t>(status.st_size) != entry.size) return true;
  if (static_cast<std::uint32_t>(status.st_mtim.tv_sec) != entry.seconds) return true;
  return entry.nanoseconds != 0 && static_cast<std::uint32_t>(status.st_mtim.tv_nsec) != entry.nanoseconds;
}

// "3 tracked files changed and not staged"; empty if it cannot be told.
std::string Changes(const Repository& repository, Clock::time_point until) {
  constexpr std::uint32_t kKind = 0170000, kSubmodule = 0160000;
  const auto bytes = ReadSmallFile((repository.git / "index").string(), kMaxIndex);
  const UniqueFd top(::open(repository.top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!bytes || !top) return {};
  Index index(*bytes);
  std::size_t seen = 0, changed = 0, conflicts = 0;
  bool in_time = true;
  while (const auto entry = index.Next()) {
    if (++seen % 64 == 0 && Clock::now() > until) {
      in_time = false;
      break;
    }
    if (entry->is_conflict) {
      ++conflicts;
    } else if (!entry->is_skipped && (entry->mode & kKind) != kSubmodule && IsChanged(top.get(), *entry)) {
      ++changed;
    }
  }
  if (in_time && !index.is_whole()) return {};
  if (!in_time && changed + conflicts == 0) return {};
  std::string text = in_time ? "" : "at least ";
  text += (changed == 0 ? "no" : std::to_string(changed)) + " tracked file" + (changed == 1 ? "" : "s") +
          " changed and not staged";
  if (conflicts > 0) text += ", merge conflicts";
  return text;
}

}  // namespace

std::string DescribeGit(const std::string& folder, std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  const auto repository = folder.empty() ? std::nullopt : RepositoryOf(folder);
  if (!repository) return {};
  std::string text = Head(*repository);
  if (text.empty()) return {};
  for (const std::string& more : {InProgress(*repository), Changes(*repository, until)}) {
    if (!more.empty()) text += "; " + more;
  }
  return text + ".";
}

std::string GitSnapshots::Of(std::string_view chat) {
  {
    const MutexLock lock(mutex_);
    const auto known = of_.find(chat);
    if (known != of_.end() && Clock::now() - known->second.used_at < kept_) {
      known->second.used_at = Clock::now();
      return known->second.text;
    }
  }
  std::string text = DescribeGit(folder_);
  const MutexLock lock(mutex_);
  if (of_.size() >= kMaxSnapshots && !of_.contains(chat)) {
    // Half of them at once, so that a new chat seldom looks through all.
    std::vector<Clock::time_point> times;
    for (const auto& [other, snapshot] : of_) times.push_back(snapshot.used_at);
    const auto middle = times.begin() + kMaxSnapshots / 2;
    std::ranges::nth_element(times, middle);
    std::erase_if(of_, [&](const auto& each) { return each.second.used_at <= *middle; });
  }
  of_.insert_or_assign(std::string(chat), Snapshot{text, Clock::now()});
  return text;
}

}  // namespace reprise
