#include "cli/recorded_chats.h"

#include <algorithm>
#include <utility>

#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "client/archive/chat_folder.h"
#include "engine/attachments.h"
#include "engine/chat_document.h"
#include "store/memory_interaction_store.h"

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

constexpr int kDeepestFolder = 8;  // of a suite

void AddExported(const std::string& path, int depth, std::vector<std::string>& chats) {
  const auto found = FindForeignChats(path);
  if (found && found->size() == 1 && found->front() == path) return chats.push_back(path);
  const auto entries = Disk().ListDirectory(path);
  for (const DirectoryEntry& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
    const std::string& name = entry.name;
    if (name.starts_with('.')) continue;
    if (entry.is_directory && depth > 0) AddExported(path + "/" + name, depth - 1, chats);
    const bool is_of_suite = name.ends_with(kChecksEnding) || name.ends_with(kAcceptedEnding) || name == kSuiteFile;
    if (!entry.is_directory && name.ends_with(".json") && !is_of_suite) chats.push_back(path + "/" + name);
  }
}

// The exported chats that an argument names: a document, a chat's folder, or a folder of some, at any depth.
Result<std::vector<std::string>> ExportedIn(const std::string& path) {
  std::vector<std::string> chats;
  AddExported(path, kDeepestFolder, chats);
  if (chats.empty()) return Fail(ErrorCode::kInvalidArgument, "there is no chat in " + VisibleLine(path));
  std::ranges::sort(chats);
  return chats;
}

}  // namespace

Result<std::optional<std::string>> ReadSmall(const std::string& path) {
  if (!IsFile(path)) return std::nullopt;
  auto text = Disk().ReadFile(path, kMostSmallFile);
  if (!text) return Fail(text.error().code, path + ": " + text.error().message);
  return std::optional(*std::move(text));
}

Result<std::vector<SuiteChecks>> ChecksBeside(const RecordedChat& chat, std::string& faulty) {
  std::vector<SuiteChecks> checks;
  if (chat.file.empty()) return checks;
  const std::string folder = chat.file.substr(0, chat.file.rfind('/') + 1);
  for (const std::string& path : {folder + std::string(kSuiteFile), chat.file + std::string(kChecksEnding)}) {
    faulty = path;
    const auto text = TRY(ReadSmall(path));
    if (text) checks.push_back(TRY(ParseChecks(*text, path)));
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

std::shared_ptr<const Grader> GraderFor(const RecordedChat& chat) {
  if (chat.file.empty()) return nullptr;
  return std::make_shared<const Grader>(Resolved(chat.file).parent_path().string());
}

Result<bool> RecordedChats::Take(const std::string& what, RecordedChatTaker& taker) {
  if (IsThere(what)) {
    for (const std::string& path : TRY(ExportedIn(what))) TRY(TakeExported(path, std::nullopt, taker));
    return true;
  }
  const std::size_t slash = std::min(what.rfind('/'), what.size());
  const auto turn = InteractionId::Parse(std::string_view(what).substr(std::min(slash + 1, what.size())));
  if (turn && IsThere(what.substr(0, slash))) {
    TRY(TakeExported(what.substr(0, slash), *turn, taker));
    return true;
  }
  auto stored = TRY(FindStored(what, flags_, environment_));
  if (!stored) return false;
  TRY(TakeStored(stored->reader, stored->what, taker));
  return true;
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
  const auto chat = ChatId::Parse("exported");
  MemoryInteractionStore store;
  FilesOfExport files(foreign->files);
  RequestBodies bodies(store, &files);
  RecordedChat recorded{.name = name,
                        .path = path,
                        .file = file,
                        .chat = *chat,
                        .bodies = &bodies,
                        .turns = Branch(ParentsOf(foreign->interactions), only ? only : foreign->head),
                        .only = only};
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
  const auto head = what.interaction ? what.interaction : chat->summary.head;
  const RecordedChat recorded{
      .name = what.chat.str(),
      .chat = what.chat,
      .bodies = &bodies,
      .turns = Branch(ParentsOf(chat->interactions), head),
      .only = what.interaction,
      .chosen_model = chat->summary.chosen_model,
      .effort = chat->summary.effort,
      .instructions = chat->summary.instructions,
      .content_of = [&](const FileVersion& version) -> std::optional<std::string> {
        auto content = reader.blobs().Get(what.chat, version.digest);
        return content ? std::optional(*std::move(content)) : std::nullopt;
      },
      .damaged = chat->damaged,
      .files_at = [&](const Interaction& turn, std::uint64_t seq) { return FilesAt(reader, turn, seq); }};
  if (what.interaction && recorded.turns.empty()) {
    return Fail(NotThere(MakeError(ErrorCode::kNotFound, ""), what, reader.options().data_dir));
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
