#include "cli/recorded_chats.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/atomic_write.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "client/archive/chat_folder.h"
#include "engine/attachments.h"
#include "engine/chat_document.h"
#include "store/memory_interaction_store.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::size_t kMostSmallFile = 1u << 20;

using Parents = std::map<InteractionId, std::optional<InteractionId>>;

Parents ParentsOf(const std::vector<Interaction>& interactions) {
  Parents parents;
  for (const Interaction& each : interactions) parents[each.id] = each.parent_id;
  return parents;
}

// The turns on the branch that ends at `head`, the first one first.
std::vector<InteractionId> Branch(const Parents& parents, std::optional<InteractionId> head) {
  std::vector<InteractionId> branch;
  for (; head && parents.contains(*head) && branch.size() <= parents.size(); head = parents.at(*head)) {
    branch.push_back(*head);
  }
  std::ranges::reverse(branch);
  return branch;
}

// The branch that ends at `head`; if `only` is not on it, the one that ends there.
std::vector<InteractionId> BranchWith(const Parents& parents, std::optional<InteractionId> head,
                                      std::optional<InteractionId> only) {
  auto branch = Branch(parents, head);
  return !only || std::ranges::find(branch, *only) != branch.end() ? branch : Branch(parents, only);
}

// Why the chat is not whole, for people: a turn of the branch continues one that is not there; empty: it is whole.
std::string GapIn(const Parents& parents, const std::vector<InteractionId>& branch) {
  const auto first = branch.empty() ? parents.end() : parents.find(branch.front());
  if (first == parents.end() || !first->second || parents.contains(*first->second)) return {};
  return first->second->str() + ", which " + first->first.str() + " continues, is missing";
}

// What an argument names.
struct Exported {
  std::vector<std::string> chats{};
  std::vector<std::pair<std::string, Error>> faults{};  // what cannot be a part of the suite, with its path
  std::set<std::string> seen{};                         // folders, so that no link leads round in a circle
};

bool IsChat(const std::string& path) { return IsFile(path) || IsChatFolder(path); }

void AddExported(const std::string& path, Exported& exported) {
  constexpr std::size_t kMostFolders = 100'000;
  if (!exported.seen.insert(Resolved(path).string()).second) return;
  const auto fault = [&](const std::string& at, ErrorCode code, const std::string& why) {
    exported.faults.emplace_back(at, MakeError(code, why));
  };
  if (exported.seen.size() > kMostFolders) return fault(path, ErrorCode::kTooLarge, "there are too many folders");
  if (IsChat(path)) return exported.chats.push_back(path);
  auto entries = Disk().ListDirectory(path);
  if (!entries) return fault(path, entries.error().code, "the folder cannot be read: " + entries.error().message);
  std::ranges::sort(*entries, {}, &DirectoryEntry::name);
  bool has_chats = false, has_checks = false;  // directly in this folder
  for (const DirectoryEntry& entry : *entries) {
    const std::string &name = entry.name, below = path + "/" + name;
    if (name.starts_with('.')) continue;
    has_checks = has_checks || name == kSuiteFile;
    if (entry.is_directory || IsDirectory(below)) {
      has_chats = has_chats || IsChatFolder(below);
      AddExported(below, exported);
      continue;
    }
    const bool is_checks = name.ends_with(kChecksEnding);
    const std::string of_chat = below.substr(0, below.size() - (is_checks ? kChecksEnding.size() : 0));
    if (is_checks && !IsChat(of_chat) && !IsThere(of_chat + ".json")) {
      fault(below, ErrorCode::kInvalidArgument, "there is no chat for these checks");
    }
    const bool is_of_suite = is_checks || name.ends_with(kAcceptedEnding) || name == kSuiteFile;
    if (!name.ends_with(".json") || is_of_suite) continue;
    has_chats = true;
    exported.chats.push_back(below);
  }
  const bool is_for_none = has_checks && !has_chats;  // those in folders below it have their own
  if (is_for_none) {
    fault(path + "/" + std::string(kSuiteFile), ErrorCode::kInvalidArgument,
          "there is no chat for these checks in this folder");
  }
}

// The exported chats that an argument names: a document, a chat's folder, or a folder of some, at any depth.
Result<Exported> ExportedIn(const std::string& path) {
  Exported exported;
  AddExported(path, exported);
  if (exported.chats.empty() && exported.faults.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "there is no chat in " + VisibleLine(path));
  }
  return exported;
}

// The checks for all chats of its folder.
std::string SuiteOf(const std::string& file) { return file.substr(0, file.rfind('/') + 1) + std::string(kSuiteFile); }

// The checks in this file; nullopt: there is none.
Result<std::optional<SuiteChecks>> ReadChecks(const std::string& path) {
  const auto text = TRY(ReadSmall(path));
  if (!text) return std::nullopt;
  return std::optional(TRY(ParseChecks(*text, path)));
}

// The turns in a suite.json that no chat of its folder has.
void AddUnknownTurns(Exported& exported) {
  std::map<std::string, std::vector<std::string>> chats_of;
  for (const std::string& chat : exported.chats) chats_of[SuiteOf(chat)].push_back(chat);
  for (const auto& [path, chats] : chats_of) {
    const auto checks = ReadChecks(path);
    if (!checks || !*checks) continue;  // ChecksBeside says so
    auto unknown = UnknownTurns(**checks, {});
    for (const std::string& chat : unknown.empty() ? std::vector<std::string>() : chats) {
      const auto foreign = ReadForeignChat(chat);
      if (!foreign) unknown.clear();  // its turns are not known
      if (unknown.empty()) break;
      const auto here = UnknownTurns(**checks, Branch(ParentsOf(foreign->interactions), foreign->head));
      std::erase_if(unknown, [&](const auto& turn) { return std::ranges::find(here, turn) == here.end(); });
    }
    if (unknown.empty()) continue;
    exported.faults.emplace_back(path,
                                 MakeError(ErrorCode::kInvalidArgument,
                                           "/turns/" + unknown.front() + ": no chat of this folder has such a turn"));
  }
}

// The turn in "PATH/int_002".
std::optional<InteractionId> TurnIn(const std::string& what) {
  const auto turn = InteractionId::Parse(std::string_view(what).substr(what.rfind('/') + 1));  // npos + 1 is 0
  return turn ? std::optional(*turn) : std::nullopt;
}

}  // namespace

Result<std::optional<std::string>> ReadSmall(const std::string& path) {
  if (!IsThere(path)) return std::nullopt;
  if (!IsFile(path)) return Fail(ErrorCode::kInvalidArgument, path + " is no file, or a link to none");
  auto text = Disk().ReadFile(path, kMostSmallFile);
  if (!text) return Fail(text.error().code, path + ": " + text.error().message);
  return std::optional(*std::move(text));
}

Result<std::vector<SuiteChecks>> ChecksBeside(const RecordedChat& chat, std::string& faulty) {
  std::vector<SuiteChecks> checks;
  if (chat.file.empty()) return checks;
  const std::string of_all = SuiteOf(chat.file);
  for (const std::string& path : {of_all, chat.file + std::string(kChecksEnding)}) {
    faulty = path;
    auto found = TRY(ReadChecks(path));
    if (!found) continue;
    checks.push_back(*std::move(found));
    if (path == of_all) continue;  // AddUnknownTurns compares it with each chat of the folder
    for (const std::string& turn : UnknownTurns(checks.back(), chat.turns)) {
      return Fail(ErrorCode::kInvalidArgument, path + ": /turns/" + turn + ": the chat has no such turn");
    }
  }
  return checks;
}

Result<PresentAgent> AgentFor(PresentFolders& present, const RecordedChat& chat, const Interaction& turn) {
  PresentAgent agent = TRY(present.At(chat.file.empty() ? turn.workspace : std::string()));
  agent.chosen_model = chat.chosen_model;
  agent.effort = chat.effort;
  agent.instructions = chat.instructions;
  return agent;
}

std::shared_ptr<const Grader> GraderFor(const std::string& file) {
  return file.empty() ? nullptr : std::make_shared<const Grader>(Resolved(ParentDirectory(FullPath(file))).string());
}

std::string RecordedChats::PathIn(const std::string& what) {
  if (IsThere(what)) return what;
  const std::string above = what.substr(0, std::min(what.rfind('/'), what.size()));
  return above != what && TurnIn(what) && IsThere(above) ? above : std::string();
}

Result<bool> RecordedChats::Check(const std::string& what) {
  const std::string path = PathIn(what);
  if (path.empty()) return TRY(FindStored(what, flags_, environment_)).has_value();
  if (path != what) return true;
  auto exported = TRY(ExportedIn(path));
  if (!IsChat(path)) AddUnknownTurns(exported);
  if (exported.faults.empty()) return true;
  const auto& [at, error] = exported.faults.front();
  return Fail(error.code, at + ": " + error.message);
}

Result<bool> RecordedChats::Take(const std::string& what, RecordedChatTaker& taker) {
  const std::string path = PathIn(what);
  if (path == what && !path.empty()) {
    auto exported = TRY(ExportedIn(path));
    if (!IsChat(path)) AddUnknownTurns(exported);  // else others of its folder may have those turns
    for (const auto& [at, error] : exported.faults) taker.TakeBroken(at.substr(at.rfind('/') + 1), at, error);
    for (const std::string& each : exported.chats) TRY(TakeExported(each, std::nullopt, taker));
    return true;
  }
  if (!path.empty()) {
    TRY(TakeExported(path, TurnIn(what), taker));
    return true;
  }
  auto stored = TRY(FindStored(what, flags_, environment_));
  if (!stored) return false;
  TRY(TakeStored(stored->reader, stored->what, taker));
  return true;
}

int RecordedChats::TakeOrComplain(const std::string& what, RecordedChatTaker& taker) {
  const auto taken = Take(what, taker);
  if (!taken) return ComplainOfUse(taken.error());
  return *taken ? kExitOk : Misused("there is no file, folder or chat " + VisibleLine(what));
}

Result<void> RecordedChats::TakeExported(const std::string& path, std::optional<InteractionId> only,
                                         RecordedChatTaker& taker) {
  std::string file = path;
  while (file.size() > 1 && file.ends_with('/')) file.pop_back();
  const std::string last = file.substr(file.rfind('/') + 1);
  if (last == "." || last == "..") file = Resolved(file).string();
  if (file.ends_with(".json")) file.resize(file.size() - std::string_view(".json").size());
  const std::string name = file.substr(file.rfind('/') + 1);
  const auto broken = [&](const Error& error) {
    taker.TakeBroken(name, path, error);
    return Result<void>();
  };
  auto foreign = ReadForeignChat(path);
  if (!foreign) return broken(foreign.error());
  for (const std::string& gap : foreign->gaps) taker.TakeBroken(name, path, MakeError(ErrorCode::kCorruption, gap));
  const auto chat = ChatId::Parse("exported");
  MemoryInteractionStore store;
  FilesOfExport files(foreign->files);
  RequestBodies bodies(store, &files);
  RecordedChat recorded{.name = name,
                        .path = path,
                        .file = file,
                        .chat = *chat,
                        .bodies = &bodies,
                        .turns = BranchWith(ParentsOf(foreign->interactions), foreign->head, only),
                        .only = only,
                        .is_whole = foreign->gaps.empty()};
  if (only && recorded.turns.empty()) {
    return broken(MakeError(ErrorCode::kInvalidArgument, "the chat has no turn " + only->str()));
  }
  std::map<std::string, std::string> blobs;
  for (Blob& blob : foreign->blobs) blobs.emplace(std::move(blob.digest), std::move(blob.content));
  recorded.content_of = [&blobs](const FileVersion& version) -> std::optional<std::string> {
    const auto found = blobs.find(version.digest);
    return found == blobs.end() ? std::nullopt : std::optional(found->second);
  };
  recorded.files_at = [&](const Interaction& turn, std::uint64_t seq) -> Result<PastFiles> {
    RecordedChanges changes(turn.workspace, turn.workspace);
    changes.Add(TRY(store.LoadChat(*chat)));
    PastFiles then = changes.At(turn, seq);
    then.content = recorded.content_of;
    return then;
  };
  const auto imported = store.ImportChat(ToIncomingChat(*chat, *std::move(foreign)));
  return imported ? taker.Take(recorded) : broken(imported.error());
}

Result<void> RecordedChats::TakeStored(ChatReader& reader, const RecordReference& what, RecordedChatTaker& taker) {
  const auto chat = reader.store().LoadChat(what.chat);
  if (!chat) return Fail(NotThere(chat.error(), what, reader.options().data_dir));
  FilesInStore files(reader.files(), what.chat);
  RequestBodies bodies(reader.store(), &files);
  const Parents parents = ParentsOf(chat->interactions);
  const auto branch = BranchWith(parents, chat->summary.head, what.interaction);
  const std::string gap = GapIn(parents, branch);
  const RecordedChat recorded{
      .name = what.chat.str(),
      .chat = what.chat,
      .bodies = &bodies,
      .turns = branch,
      .only = what.interaction,
      .chosen_model = chat->summary.chosen_model,
      .effort = chat->summary.effort,
      .instructions = chat->summary.instructions,
      .content_of = [&](const FileVersion& version) -> std::optional<std::string> {
        auto content = reader.blobs().Get(what.chat, version.digest);
        return content ? std::optional(*std::move(content)) : std::nullopt;
      },
      .damaged = chat->damaged,
      .is_whole = chat->damaged.empty() && gap.empty(),
      .files_at = [&](const Interaction& turn, std::uint64_t seq) { return FilesAt(reader, turn, seq); }};
  if (what.interaction && recorded.turns.empty()) {
    return Fail(NotThere(MakeError(ErrorCode::kNotFound, ""), what, reader.options().data_dir));
  }
  if (!gap.empty() && chat->damaged.empty()) {
    taker.TakeBroken(recorded.name, "", MakeError(ErrorCode::kCorruption, gap));
  }
  return taker.Take(recorded);
}

// Other chats may have changed the same files.
Result<PastFiles> RecordedChats::FilesAt(ChatReader& reader, const Interaction& turn, std::uint64_t seq) {
  const std::string home = Resolved(reader.options().workspace).string();
  const std::string workspace = turn.workspace.empty() ? home : turn.workspace;
  const MutexLock lock(mutex_);
  auto known = changes_.find(workspace);
  if (known == changes_.end()) {
    RecordedChanges changes(workspace, home);
    for (const ChatId& id : TRY(reader.AllChats())) {
      const auto summary = reader.store().LoadSummary(id);
      const bool is_here =
          summary && (summary->workspace.empty() ? workspace == home : summary->workspace == workspace);
      if (!is_here && id != turn.chat_id) continue;
      if (const auto chat = reader.store().LoadChat(id)) changes.Add(*chat);  // of a damaged one nothing is known
    }
    known = changes_.emplace(workspace, std::move(changes)).first;
  }
  PastFiles then = known->second.At(turn, seq);
  const RecordedChanges& changes = known->second;
  then.content = [&reader, &changes](const FileVersion& version) -> std::optional<std::string> {
    for (const ChatId& chat : changes.ChatsWith(version.digest)) {
      if (auto content = reader.blobs().Get(chat, version.digest)) return *std::move(content);
    }
    return std::nullopt;
  };
  return then;
}

}  // namespace reprise
