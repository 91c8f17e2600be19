#include "rewind/tracked_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/private_file.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"
#include "rewind/unified_diff.h"
#include "tools/arguments.h"
#include "tools/files/patch.h"
#include "tools/files/run_by_others.h"

namespace reprise {
namespace {

constexpr std::size_t kHeldBytes = 16 << 20;  // of contents on their way into the store
constexpr std::uint32_t kOpen = 0700;         // permissions needed to work in a directory
constexpr std::size_t kSyncedOneByOne = 8;    // files; for more, sync the whole file system at once

using Kind = FileVersion::Kind;

bool IsDirectory(const std::optional<FileVersion>& version) { return version && version->kind == Kind::kDirectory; }

// Puts contents into a chat's blobs and remembers those that failed.
class BlobSink {
 public:
  BlobSink(BlobStore& blobs, const ChatId& chat) : blobs_(blobs), chat_(chat) {}
  void Add(const std::string& digest, std::string content) {
    if (digest.empty() || !seen_.insert(digest).second) return;
    held_ += content.size();
    gathered_.push_back({digest, std::move(content)});
    if (held_ > kHeldBytes) Flush();
  }
  void Flush() {
    if (auto put = blobs_.Put(chat_, gathered_); !put) {
      LogError("the contents of files could not be stored",
               {{"chat", chat_.str()}, {"code", put.error().reason}, {"detail", put.error().detail}});
      for (const Blob& blob : gathered_) lost_.insert(blob.digest);
    }
    gathered_.clear();
    held_ = 0;
  }
  // Removes the digest of a content that was not stored.
  void Mend(std::optional<FileVersion>& version) const {
    if (version && lost_.contains(version->digest)) version->digest.clear();
  }

 private:
  BlobStore& blobs_;
  const ChatId& chat_;
  std::vector<Blob> gathered_;
  std::set<std::string> seen_, lost_;
  std::size_t held_ = 0;
};

// The number of changes that may still be recorded for a run. Thread-safe.
class Room {
 public:
  explicit Room(std::size_t most) : left_(most) {}
  std::size_t left() const { return left_; }
  void Take(std::size_t changes) {
    std::size_t left = left_;
    while (!left_.compare_exchange_weak(left, left - std::min(left, changes))) continue;
  }

 private:
  std::atomic<std::size_t> left_;
};

class AnyCallRecorder final : public CallRecorder {
 public:
  AnyCallRecorder(WorkspaceTracker& tracker, BlobStore& blobs, const ChatId& chat, Room& room)
      : tracker_(tracker), blobs_(blobs), chat_(chat), room_(room) {}
  WorkspaceChanges Finish() override {
    BlobSink sink(blobs_, chat_);
    const auto keep = [&](const std::string& digest, std::string content) { sink.Add(digest, std::move(content)); };
    WorkspaceChanges changes = tracker_.Collect(keep, room_.left());
    room_.Take(changes.recorded.size());
    sink.Flush();
    for (WorkspaceChange& change : changes.recorded) sink.Mend(change.before), sink.Mend(change.after);
    return changes;
  }

 private:
  WorkspaceTracker& tracker_;
  BlobStore& blobs_;
  const ChatId chat_;
  Room& room_;
};

// Of a call that may change anything in a workspace that cannot be watched.
class NoRecorder final : public CallRecorder {
 public:
  WorkspaceChanges Finish() override { return {.unseen = true}; }
};

// Records a tool that changes the files that it names and may create the directories above them.
class NamedFilesRecorder final : public CallRecorder {
 public:
  NamedFilesRecorder(WorkspaceTracker& tracker, BlobStore& blobs, const ChatId& chat, std::vector<std::string> files)
      : tracker_(tracker), blobs_(blobs), chat_(chat), files_(std::move(files)) {
    const auto add = [this](std::string path) {
      if (std::ranges::find(paths_, path) == paths_.end()) paths_.push_back(std::move(path));
    };
    for (const std::string& path : files_) {
      for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        add(path.substr(0, slash));
      }
      add(path);
    }
    for (const std::string& each : paths_) before_.push_back(Read(each));
  }
  WorkspaceChanges Finish() override {
    std::vector<WorkspaceChange> changes;
    BlobSink sink(blobs_, chat_);
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      auto now = Read(paths_[i]);
      auto& before = before_[i];
      if (!before || !now) continue;  // out of reach
      if (VersionIn(*before) == VersionIn(*now)) continue;
      changes.push_back({.path = paths_[i], .before = VersionIn(*before), .after = VersionIn(*now)});
      if (*before) sink.Add((*before)->version.digest, std::move((*before)->content));
      if (*now) sink.Add((*now)->version.digest, std::move((*now)->content));
    }
    if (changes.empty()) return {};
    sink.Flush();
    for (WorkspaceChange& change : changes) sink.Mend(change.before), sink.Mend(change.after);
    tracker_.Settle(files_);
    return {.recorded = std::move(changes)};
  }

 private:
  using Read_ = Result<std::optional<ReadVersion>>;
  Read_ Read(const std::string& path) const { return tracker_.files().Read(path); }
  static std::optional<FileVersion> VersionIn(const std::optional<ReadVersion>& read) {
    return read ? std::optional(read->version) : std::nullopt;
  }

  WorkspaceTracker& tracker_;
  BlobStore& blobs_;
  const ChatId chat_;
  const std::vector<std::string> files_;
  std::vector<std::string> paths_;  // each after the directories above it
  std::vector<Read_> before_;
};

class TrackedRun final : public RunRecorder {
 public:
  TrackedRun(WorkspaceTracker& tracker, BlobStore& blobs, ChatId chat, bool hooks_change)
      : tracker_(tracker),
        blobs_(blobs),
        chat_(std::move(chat)),
        hooks_change_(hooks_change),
        room_(tracker.limits().changes) {}

  std::unique_ptr<CallRecorder> Begin(const ToolTraits& traits, std::string_view arguments,
                                      const std::stop_token& stop) override {
    auto effect = traits.file_effect.value_or(traits.read_only ? FileEffect::kNothing : FileEffect::kAnything);
    if (effect != FileEffect::kNothing && hooks_change_) effect = FileEffect::kAnything;
    if (effect == FileEffect::kNothing) return nullptr;
    if (effect != FileEffect::kAnything) {
      auto files = RecordedFiles(effect, arguments);
      if (files.recorded.empty()) return nullptr;
      return std::make_unique<NamedFilesRecorder>(tracker_, blobs_, chat_, std::move(files.recorded));
    }
    if (!tracker_.Refresh(stop)) return stop.stop_requested() ? nullptr : std::make_unique<NoRecorder>();
    {
      const MutexLock lock(mutex_);
      looks_again_ = true;
    }
    return std::make_unique<AnyCallRecorder>(tracker_, blobs_, chat_, room_);
  }

  bool CanRecord(const ToolTraits& traits, std::string_view arguments, const std::stop_token& stop) const override {
    const auto effect = traits.file_effect.value_or(FileEffect::kAnything);
    if (effect == FileEffect::kAnything) {
      // What a background job changes after its call is nobody's change.
      return !Arguments(arguments).Boolean("background").value_or(false) && tracker_.IsKnown(stop);
    }
    const Named files = RecordedFiles(effect, arguments);
    return files.all && !files.recorded.empty();
  }

  WorkspaceChanges End() override {
    {
      const MutexLock lock(mutex_);
      if (!looks_again_) return {};
    }
    return AnyCallRecorder(tracker_, blobs_, chat_, room_).Finish();
  }

 private:
  struct Named {
    std::vector<std::string> recorded;  // without those that are ignored or outside the workspace
    bool all = true;                    // there are no others
  };
  // The files that a call of a file tool changes.
  Named RecordedFiles(FileEffect effect, std::string_view arguments) const {
    Named files;
    for (const std::string& named : effect == FileEffect::kPatchedFiles
                                        ? PathsInPatch(arguments)
                                        : std::vector{Arguments(arguments).String("path").value_or("")}) {
      auto path = tracker_.workspace().PathInWorkspace(named);
      if (path && !tracker_.IsIgnored(*path)) {
        files.recorded.push_back(*std::move(path));
      } else {
        files.all = false;
      }
    }
    return files;
  }

  WorkspaceTracker& tracker_;
  BlobStore& blobs_;
  const ChatId chat_;
  const bool hooks_change_;
  Room room_;
  Mutex mutex_;
  bool looks_again_ GUARDED_BY(mutex_) = false;
};

// The start time of a process, to tell it from a later one with the same pid; empty if there is no such process.
std::string BeginOfProcess(pid_t pid) {
  const auto status = ReadSmallFile("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!status) return {};
  // After the name, which may hold any character, come the state, eighteen numbers and then the start time.
  std::size_t at = status->rfind(')');
  for (int field = 0; at != std::string::npos && field < 20; ++field) at = status->find(' ', at + 1);
  if (at == std::string::npos) return {};
  return status->substr(at + 1, status->find(' ', at + 1) - at - 1);
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

struct Intent {
  std::string workspace, host, begun, then;
  std::string staging;  // folder of the files on their way
  pid_t pid = 0;
  std::vector<RestoreStep> steps{};
};

std::string ToText(const Intent& intent) {
  Json json = {{"workspace", intent.workspace}, {"host", intent.host}, {"pid", intent.pid},
               {"begun", intent.begun},         {"then", intent.then}, {"staging", intent.staging}};
  Json& steps = json["steps"] = Json::array();
  for (const RestoreStep& step : intent.steps) {
    steps.push_back(ToJson(WorkspaceChange{.path = step.path, .before = step.from, .after = step.to}));
  }
  return DumpJson(json);
}

Result<Intent> IntentFrom(std::string_view text) {
  const Json json = TRY(ParseJson(text));
  JsonReader reader(json, "intent");
  Intent intent{.workspace = reader.String("workspace"),
                .host = reader.String("host"),
                .begun = reader.String("begun"),
                .then = reader.String("then"),
                .staging = reader.String("staging")};
  intent.pid = static_cast<pid_t>(reader.Integer("pid"));
  if (const Json* steps = reader.Array("steps")) {
    for (const Json& each : *steps) {
      auto change = reader.Take(WorkspaceChangeFromJson(each), WorkspaceChange{});
      intent.steps.push_back({std::move(change.path), std::move(change.before), std::move(change.after)});
    }
  }
  if (reader.error()) return Fail(*reader.error());
  return intent;
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Json ScriptsIn(const std::optional<std::string>& package) {
  const auto json = ParseJson(package.value_or("{}"));
  return json && json->is_object() && json->contains("scripts") ? (*json)["scripts"] : Json();
}

// A warning about a change for people who work on in that folder; empty if there is none.
std::string WhoRunsChange(const WorkspaceChange& change, const std::optional<std::string>& before,
                          const std::optional<std::string>& after, std::string_view home) {
  if (const std::string_view who = WhoRuns(change.path, home); !who.empty()) {
    return std::string(who) + " runs or obeys this by itself";
  }
  const bool is_package = NameOf(change.path) == "package.json" && ScriptsIn(before) != ScriptsIn(after);
  return is_package ? "the scripts that npm runs have changed" : "";
}

std::vector<std::string> PathsOf(const std::vector<RestoreStep>& steps) {
  std::vector<std::string> paths;
  for (const RestoreStep& step : steps) paths.push_back(step.path);
  return paths;
}

Error ChangedMeanwhile(const std::vector<RestoreStep>& left) {
  Json files = Json::array();
  for (const RestoreStep& step : left) {
    files.push_back({{"path", ToValidUtf8(step.path)},
                     {"change", !step.from ? "created"
                                : !step.to ? "deleted"
                                           : "modified"},
                     {"conflict", true},
                     {"reason", "changed"}});
  }
  const std::string count = std::to_string(left.size()) + (left.size() == 1 ? " file was" : " files were");
  Error error = Refused(Reason::kWorkspaceConflict,
                        count + " changed by someone else while files were being put back; nothing was put back");
  error.details_json = DumpJson({{"files", std::move(files)}});
  return error;
}

}  // namespace

// A step of a restore, and the file or link that it may replace: nullopt if there is none.
struct TrackedHistory::Todo {
  const RestoreStep* step;
  std::optional<FileStamp> stamp{};
  bool left = false;  // the file was changed meanwhile
};

std::unique_ptr<RunRecorder> TrackedHistory::Record(const ChatId& chat, bool hooks_change) {
  return std::make_unique<TrackedRun>(tracker_, blobs_, chat, hooks_change);
}

std::map<std::string, WorkspaceHistory::Seen> TrackedHistory::Look(const ChatId& chat,
                                                                   const std::vector<std::string>& paths, bool keep) {
  std::map<std::string, Seen> seen;
  BlobSink sink(blobs_, chat);
  for (const std::string& path : paths) {
    auto read = tracker_.files().Read(path);
    if (!read) {
      seen.emplace(path, Seen{Fail(read.error())});
      continue;
    }
    if (*read && keep) sink.Add((*read)->version.digest, std::move((*read)->content));
    seen.emplace(path, Seen{*read ? std::optional((*read)->version) : std::nullopt});
  }
  if (keep) sink.Flush();
  for (auto& [path, each] : seen) {
    if (each.version) sink.Mend(*each.version);
  }
  return seen;
}

bool TrackedHistory::HoldsMore(const std::string& path, const std::vector<std::string>& but) {
  const std::set<std::string> known(but.begin(), but.end());
  std::vector<std::string> left{path};
  while (!left.empty()) {
    const std::string at = std::move(left.back());
    left.pop_back();
    for (const std::string& name : tracker_.files().List(at)) {
      const std::string below = at + "/" + name;
      if (!known.contains(below)) return true;
      left.push_back(below);
    }
  }
  return false;
}

Result<void> TrackedHistory::Restore(const ChatId& chat, const std::vector<RestoreStep>& steps, const std::string& then,
                                     const std::function<Result<void>()>& commit) {
  if (steps.empty()) return commit();
  for (const RestoreStep& step : steps) {
    TRY(CheckWorkspacePath(step.path));
    if (!step.to || step.to->kind == Kind::kDirectory) continue;
    TRY(ContentOf(chat, *step.to));
  }
  const Intent intent{.workspace = tracker_.workspace().directory(),
                      .host = HostName(),
                      .begun = BeginOfProcess(::getpid()),
                      .then = then,
                      .staging = WorkspaceFiles::NewStaging(),
                      .pid = ::getpid(),
                      .steps = steps};
  TRY(blobs_.WriteIntent(chat, ToText(intent)));
  auto done = Apply(chat, steps, intent.staging, /*going_on=*/false).and_then([&](const Left& left) {
    return left.empty() ? commit() : Fail(ChangedMeanwhile(left));
  });
  if (!done) {
    std::vector<RestoreStep> back;
    for (const RestoreStep& step : steps) back.push_back({step.path, step.to, step.from});
    if (auto undone = Apply(chat, back, intent.staging, /*going_on=*/true); !undone) {
      LogError("files of the workspace could be neither put back nor left as they were",
               {{"chat", chat.str()}, {"detail", undone.error().detail}});
    }
  }
  Sync(steps.size());
  if (auto ended = blobs_.WriteIntent(chat, ""); !ended) {
    LogWarning("the files put back are checked again at the next start", {{"detail", ended.error().detail}});
  }
  return done;
}

// Stages contents first, because that needs space. Then removes entries that are in the way, makes directories and
// places files. A file is compared with what was read just before it is removed or replaced.
Result<TrackedHistory::Left> TrackedHistory::Apply(const ChatId& chat, const std::vector<RestoreStep>& steps,
                                                   const std::string& staging, bool going_on) {
  const WorkspaceFiles& files = tracker_.files();
  std::vector<Todo> todo;
  Left left;
  const auto leave = [&](const RestoreStep& step) {
    LogWarning("a file is left as it is because it was changed meanwhile", {{"chat", chat.str()}, {"path", step.path}});
    left.push_back(step);
  };
  for (const RestoreStep& step : steps) {
    const auto now = files.Read(step.path);
    const auto version = now && *now ? std::optional((*now)->version) : std::nullopt;
    if (now && version == step.to) continue;
    // An interrupted restore may have removed the old entry, or left a directory writable for its work.
    const bool half_done =
        going_on && (!version || (IsDirectory(version) && (IsDirectory(step.from) || IsDirectory(step.to))));
    const bool expected = now && (version == step.from || half_done);
    if (!expected) {
      leave(step);
    } else {
      todo.push_back({&step, version && !IsDirectory(version) ? std::optional((*now)->stamp) : std::nullopt});
    }
  }
  if (!left.empty() && !going_on) return left;
  std::ranges::sort(todo, [](const Todo& one, const Todo& other) { return one.step->path < other.step->path; });
  const auto is_as_read = [&](Todo& each) {
    if (!each.left && !files.IsAsRead(each.step->path, each.stamp)) {
      leave(*each.step);
      each.left = true;
    }
    return !each.left;
  };
  auto done = Work(chat, todo, staging, /*sync=*/steps.size() <= kSyncedOneByOne, is_as_read);
  files.RemoveStaging(staging);
  tracker_.Settle(PathsOf(steps));
  if (!done) return Fail(std::move(done.error()));
  return left;
}

Result<void> TrackedHistory::Work(const ChatId& chat, std::vector<Todo>& todo, const std::string& staging, bool sync,
                                  const std::function<bool(Todo&)>& is_as_read) {
  const WorkspaceFiles& files = tracker_.files();
  for (const auto& [step, stamp, left] : todo) {
    if (!step->to || IsDirectory(step->to)) continue;
    const std::string content = TRY(ContentOf(chat, *step->to));
    TRY(files.Stage(staging, step->path, *step->to, content, sync));
  }
  for (const auto& [step, stamp, left] : todo) {
    const bool closed = IsDirectory(step->from) && (step->from->mode & kOpen) != kOpen;
    if (closed) TRY(files.SetMode(step->path, step->from->mode | kOpen, WorkspaceFiles::SpecialBits::kKeep));
  }
  for (auto at = todo.rbegin(); at != todo.rend(); ++at) {
    const RestoreStep& step = *at->step;
    if (!step.from || (step.to && IsDirectory(step.from) == IsDirectory(step.to))) continue;
    if (!IsDirectory(step.from) && !is_as_read(*at)) continue;
    TRY(files.Remove(step.path, IsDirectory(step.from)));
  }
  for (const auto& [step, stamp, left] : todo) {
    if (IsDirectory(step->to) && !left) TRY(files.MakeDirectory(step->path, step->to->mode | kOpen));
  }
  for (Todo& each : todo) {
    if (each.step->to && !IsDirectory(each.step->to) && is_as_read(each)) TRY(files.Place(staging, each.step->path));
  }
  for (auto at = todo.rbegin(); at != todo.rend(); ++at) {
    if (!IsDirectory(at->step->to) || at->left) continue;
    // Those that a new folder takes from the one above it are in no older record.
    const bool had_any = IsDirectory(at->step->from) && at->step->from->mode > kFileBits;
    using Bits = WorkspaceFiles::SpecialBits;
    TRY(files.SetMode(at->step->path, at->step->to->mode, had_any ? Bits::kSet : Bits::kKeep));
  }
  return {};
}

void TrackedHistory::Sync(std::size_t steps) const {
  if (steps <= kSyncedOneByOne) return;
  const int root = ::open(tracker_.workspace().directory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return;
  ::syncfs(root);
  ::close(root);
}

std::vector<std::string> TrackedHistory::Recover(
    const std::function<Result<void>(const ChatId&, const std::string& then)>& commit) {
  std::vector<std::string> others;
  auto intents = blobs_.ReadIntents();
  if (!intents) {
    LogError("cannot find out whether files were being put back", {{"detail", intents.error().detail}});
    return others;
  }
  for (const BlobStore::Intent& each : *intents) {
    auto intent = each.text.and_then([](const std::string& text) { return IntentFrom(text); });
    if (!intent) {
      LogError("the record of files to put back cannot be read; they are left as they are",
               {{"chat", each.chat.str()}, {"detail", intent.error().message}});
      continue;
    }
    if (shared_ && intent->host != HostName()) continue;  // another machine's workspace
    if (intent->workspace != tracker_.workspace().directory()) {
      others.push_back(intent->workspace);
      continue;
    }
    const bool is_alive =
        intent->pid != ::getpid() && !intent->begun.empty() && BeginOfProcess(intent->pid) == intent->begun;
    if (is_alive) continue;  // another server is working on it
    tracker_.files().RemoveStaging(intent->staging);
    auto done = Apply(each.chat, intent->steps, intent->staging, /*going_on=*/true).and_then([&](const Left&) {
      return commit(each.chat, intent->then);
    });
    if (!done) {
      LogError("files could not be put back; the next start tries again",
               {{"chat", each.chat.str()}, {"code", done.error().reason}, {"detail", done.error().detail}});
      continue;
    }
    Sync(kSyncedOneByOne + 1);
    static_cast<void>(blobs_.WriteIntent(each.chat, ""));
    LogInfo("files of the workspace were put back: an earlier process had not finished",
            {{"chat", each.chat.str()}, {"files", intent->steps.size()}});
  }
  return others;
}

Result<std::string> TrackedHistory::ContentOf(const ChatId& chat, const FileVersion& version) {
  if (version.kind == Kind::kDirectory) return std::string();
  if (!version.is_kept()) return Fail(ErrorCode::kNotFound, "the content is not kept");
  return blobs_.Get(chat, version.digest);
}

Result<std::string> TrackedHistory::DiffOf(const ChatId& chat, const WorkspaceChange& change) {
  const auto content = [&](const std::optional<FileVersion>& version) -> Result<std::optional<std::string>> {
    if (!version || version->kind == Kind::kDirectory || !version->is_kept()) return std::nullopt;
    auto text = blobs_.Get(chat, version->digest);
    if (!text && IsNotFound(text.error())) {
      // The current content becomes a blob only when it is overwritten.
      auto now = tracker_.files().Read(change.path);
      if (!now || !*now || (*now)->version != version) return std::nullopt;
      return std::optional(std::move((*now)->content));
    }
    return text.map([](std::string found) { return std::optional(std::move(found)); });
  };
  const auto before = TRY(content(change.before));
  const auto after = TRY(content(change.after));
  std::string diff = UnifiedDiff(change, before, after);
  const std::string who = WhoRunsChange(change, before, after, tracker_.workspace().home());
  // Before the header, where readers of diffs skip it.
  if (!diff.empty() && !who.empty()) diff.insert(0, "# " + who + "\n");
  return diff;
}

std::optional<std::string> TrackedHistory::Position(const ChatId& chat) {
  auto position = blobs_.ReadPosition(chat);
  if (position) return *std::move(position);
  LogWarning("the position of a chat's workspace cannot be read",
             {{"chat", chat.str()}, {"detail", position.error().detail}});
  return std::nullopt;
}

Result<void> TrackedHistory::SetPosition(const ChatId& chat, std::string_view text) {
  return blobs_.WritePosition(chat, text);
}

void TrackedHistory::ForgetChat(const ChatId& chat) { blobs_.ForgetChat(chat); }

}  // namespace reprise
