#include "rewind/local_workspace_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <re2/re2.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "base/try.h"
#include "rewind/workspace_files.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

enum class EntryKind { kFile, kDirectory, kOther };

// A link is followed when it is opened. Pipes and devices, which may block, are never opened.
EntryKind KindOfEntry(int directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_DIR:
      return EntryKind::kDirectory;
    case DT_REG:
    case DT_LNK:
      return EntryKind::kFile;
    case DT_UNKNOWN:
      break;
    default:
      return EntryKind::kOther;
  }
  struct stat status {};
  if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return EntryKind::kOther;
  if (S_ISDIR(status.st_mode)) return EntryKind::kDirectory;
  return S_ISREG(status.st_mode) || S_ISLNK(status.st_mode) ? EntryKind::kFile : EntryKind::kOther;
}

// Whether "@NAME" or "@"NAME"" in a message can name this path.
bool CanBeTyped(std::string_view name) {
  return name.find('"') == std::string_view::npos && VisibleOnOneLine(name) == name;
}

// A matching path and its rank; the least is the best.
struct Candidate {
  int place = 0;  // place of the match: start of the path, start of the name, in the name, before the name
  std::size_t depth = 0;
  std::string path{};
  bool operator<(const Candidate& other) const {
    return std::tuple(place, depth, path.size(), std::string_view(path)) <
           std::tuple(other.place, other.depth, other.path.size(), std::string_view(other.path));
  }
};

// The best matches, up to a limit.
class Best {
 public:
  Best(std::string_view words, std::size_t most)
      : words_(re2::StringPiece(words.data(), words.size()), Literally()), empty_(words.empty()), most_(most) {}

  void Offer(std::string path) {
    const auto place = PlaceIn(path);
    if (!place) return;
    const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    Candidate candidate{*place, depth, std::move(path)};
    if (heap_.size() == most_) {
      complete_ = false;
      if (!(candidate < heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(std::move(candidate));
    std::push_heap(heap_.begin(), heap_.end());
  }
  std::vector<Candidate> Taken() {
    std::sort_heap(heap_.begin(), heap_.end());
    return std::move(heap_);
  }
  bool complete() const { return complete_; }

 private:
  static RE2::Options Literally() {
    RE2::Options options;
    options.set_literal(true);
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    return options;
  }
  std::optional<int> PlaceIn(std::string_view path) const {
    if (empty_) return path.starts_with('.') || path.find("/.") != std::string_view::npos ? 1 : 0;
    const std::size_t name = path.rfind('/') + 1;
    const auto is_at = [&](std::size_t from, RE2::Anchor anchor) {
      return words_.Match({path.data(), path.size()}, from, path.size(), anchor, nullptr, 0);
    };
    if (!is_at(0, RE2::UNANCHORED)) return std::nullopt;
    if (is_at(0, RE2::ANCHOR_START)) return 0;
    if (is_at(name, RE2::ANCHOR_START)) return 1;
    return is_at(name, RE2::UNANCHORED) ? 2 : 3;
  }

  const RE2 words_;
  const bool empty_;
  const std::size_t most_;
  std::vector<Candidate> heap_;  // the worst first
  bool complete_ = true;
};

struct Folder {
  std::string path;  // with a trailing slash; empty: the workspace
  IgnoreFiles::Rules rules_above;
};

// One walk through the workspace, level by level, so that entries near the top are always found.
class Walk {
 public:
  Walk(const Workspace& workspace, const IgnoreFiles& ignored, const LocalWorkspaceReader::Limits& limits)
      : workspace_(workspace), ignored_(ignored), limits_(limits), until_(Clock::now() + limits.time) {}

  Result<void> Through(Best& best) {
    const auto root = TRY(workspace_.OpenDirectory("."));
    struct stat status {};
    if (::fstat(root.get(), &status) != 0) return Fail(WorkspaceError(errno));
    device_ = status.st_dev;
    folders_.push_back({"", ignored_.Above()});
    while (!folders_.empty() && complete_) {
      if (is_over()) complete_ = false;
      const Folder folder = std::move(folders_.front());
      folders_.pop_front();
      Look(folder, best);
    }
    return {};
  }
  bool complete() const { return complete_; }
  bool is_over() const { return Clock::now() > until_; }

 private:
  // Skips folders that cannot be opened: secret, protected, gone, or another user's.
  void Look(const Folder& folder, Best& best) {
    const std::string path = folder.path.substr(0, folder.path.size() - (folder.path.empty() ? 0 : 1));
    auto opened = workspace_.OpenDirectory(path.empty() ? "." : path);
    struct stat status {};
    if (!opened || ::fstat(opened->get(), &status) != 0 || status.st_dev != device_) return;
    const auto rules = ignored_.In(opened->get(), path, folder.rules_above);
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(opened->get()));
    if (!stream) return;
    const int directory = opened->Release();  // the stream owns it now
    while (const dirent* entry = ::readdir(stream.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || IsLeftAlone(name) || !CanBeTyped(name)) continue;
      if (++looked_at_ > limits_.entries || (looked_at_ % kBetweenLooks == 0 && is_over())) {
        complete_ = false;
        return;
      }
      const EntryKind kind = KindOfEntry(directory, *entry);
      std::string below = folder.path + std::string(name);
      if (kind == EntryKind::kOther || below.size() > kLongestPath) continue;
      if (ignored_.Name(rules, below, kind == EntryKind::kDirectory)) continue;
      if (kind == EntryKind::kFile) {
        best.Offer(std::move(below));
      } else {
        folders_.push_back({below + "/", rules});
      }
    }
  }

  static constexpr std::size_t kBetweenLooks = 64;  // at the clock

  const Workspace& workspace_;
  const IgnoreFiles& ignored_;
  const LocalWorkspaceReader::Limits limits_;
  const Clock::time_point until_;
  std::deque<Folder> folders_;
  dev_t device_ = 0;
  std::size_t looked_at_ = 0;
  bool complete_ = true;
};

}  // namespace

Result<WorkspaceReader::Listing> LocalWorkspaceReader::Find(const Query& query) const {
  std::string_view words = query.text;
  while (words.starts_with("./")) words.remove_prefix(2);
  Best best(words, std::max(limits_.candidates, query.limit + 1));
  Walk walk(workspace_, ignored_, limits_);
  TRY(walk.Through(best));
  Listing listing{.files = {}, .complete = walk.complete() && best.complete()};
  for (const Candidate& candidate : best.Taken()) {
    // When the time is up, still return some of the matches found.
    if (listing.files.size() == query.limit || (!listing.files.empty() && walk.is_over())) {
      listing.complete = false;
      break;
    }
    if (query.accepts && !query.accepts(candidate.path)) continue;
    const auto file = workspace_.OpenFile(candidate.path);
    struct stat status {};
    if (!file || ::fstat(file->get(), &status) != 0) continue;
    listing.files.push_back({candidate.path, static_cast<std::uint64_t>(status.st_size)});
  }
  return listing;
}

Result<std::string> LocalWorkspaceReader::Read(std::string_view path) const {
  return workspace_.ReadFile(path, limits_.file_bytes);
}

}  // namespace reprise
