#include "store/file_interaction_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "domain/codec.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/private_directory.h"

namespace reprise {
namespace {

// Long states are put together from many files. The others are one file each: kept are those of the chats that a
// person has in hand.
constexpr std::size_t kLongStatesBytes = 64u << 20, kShortStatesBytes = 512u << 10;
constexpr std::size_t kEntryBytes = 512;  // what it takes to keep a state, however small

tl::unexpected<Error> NoSuchChat() { return Fail(ErrorCode::kNotFound, "no such chat"); }
tl::unexpected<Error> NoSuchInteraction() { return Fail(ErrorCode::kNotFound, "no such interaction in this chat"); }

tl::unexpected<Error> Conflict(std::string reason, std::string message) {
  return Fail(Error{.code = ErrorCode::kConflict, .reason = std::move(reason), .message = std::move(message)});
}

Error MissingFile(const ChatId& chat, InteractionId id) {
  return IntegrityError("missing", {.chat = chat, .interaction = id}, "the file is gone");
}

Result<void> PrepareRoot(const FileInteractionStore::Options& options) {
  if (options.access == FileInteractionStore::Access::kFallback) return {};
  if (options.access == FileInteractionStore::Access::kReadOnly) {
    return options.file_system.ListDirectory(options.root).map([](const std::vector<DirectoryEntry>&) {});
  }
  FileSystem& disk = options.file_system;
  const std::string parent = ParentDirectory(options.root);
  if (auto above = CreateDirectories(disk, parent); !above) return Fail(std::move(above.error()));
  const auto created = disk.CreateDirectoryApart(options.root);
  if (!created) return Fail(created.error());
  auto synced = disk.SyncDirectory(parent);
  if (*created && !synced) return synced;
  return {};
}

}  // namespace

Result<std::unique_ptr<FileInteractionStore>> FileInteractionStore::Open(Options options) {
  if (auto ready = PrepareRoot(options); !ready) return Fail(std::move(ready.error()));
  std::unique_ptr<DirectoryLock> lock;
  if (options.access == Access::kServer && options.lock) {
    auto acquired = DirectoryLock::Acquire(LockFile(options.root));
    if (!acquired) return Fail(std::move(acquired.error()));
    lock = *std::move(acquired);
  }
  std::unique_ptr<FileInteractionStore> store(new FileInteractionStore(std::move(options), std::move(lock)));
  if (store->options_.access == Access::kServer) store->spare_files_.RemoveLeftovers();
  return store;
}

FileInteractionStore::FileInteractionStore(Options options, std::unique_ptr<DirectoryLock> lock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      files_(options_.root, MakeRecordFormat(options_.keys), options_.file_system),
      long_states_(kLongStatesBytes),
      short_states_(kShortStatesBytes),
      running_(options_.file_system, RunningFile(options_.root)),
      spare_files_(options_.file_system, SpareDirectory(options_.root)),
      save_preparer_({.create_file = [this](const ChatId& chat,
                                            InteractionId id) { return files_.CreateInteractionFile(chat, id); },
                      .sync_chat = [this](const ChatId& chat) { return files_.SyncChatDirectory(chat); },
                      .sync_root = [this] { return files_.SyncRoot(); }}),
      index_writer_(options_.index_delay, [this](const ChatId& chat) { WriteIndex(chat); }) {}

FileInteractionStore::~FileInteractionStore() = default;

// --- chats in memory -------------------------------------------------------------------------------------------------

FileInteractionStore::ChatState::ChatState(const ChatId& chat)
    : index{.summary = {.id = chat, .title = {}, .created_at = Now(), .updated_at = {}, .head = std::nullopt}} {
  index.summary.updated_at = index.summary.created_at;
}

std::shared_ptr<FileInteractionStore::ChatState> FileInteractionStore::StateOf(const ChatId& chat) {
  // A reader has nothing to remember: the files may change under it with every call.
  if (options_.access == Access::kReadOnly) return std::make_shared<ChatState>(chat);
  const std::lock_guard lock(chats_mutex_);
  auto& state = chats_[chat];
  if (!state) state = std::make_shared<ChatState>(chat);
  return state;
}

std::shared_ptr<FileInteractionStore::ChatState> FileInteractionStore::FindState(const ChatId& chat) {
  const std::lock_guard lock(chats_mutex_);
  const auto found = chats_.find(chat);
  return found == chats_.end() ? nullptr : found->second;
}

Result<FileInteractionStore::HeldChat> FileInteractionStore::HoldChat(const ChatId& chat, Missing missing, Hold hold) {
  for (;;) {
    HeldChat held{.state = StateOf(chat), .index_lock = {}, .lock = {}};
    // chat.json is read under both locks, so that the reader cannot meet a writer of it.
    if (hold == Hold::kStateAndIndex) held.index_lock = std::unique_lock(held->index_mutex);
    held.lock = std::unique_lock(held->mutex);
    if (held->retired) continue;
    if (held->loaded) return held;
    auto created = Load(chat, missing, held);
    if (!created) {
      Retire(chat, held);  // or every name that a client asks for would stay in memory
      return Fail(std::move(created.error()));
    }
    held.created = *created;
    return held;
  }
}

// True: there is nothing of this chat on disk, and it begins its life here.
Result<bool> FileInteractionStore::Load(const ChatId& chat, Missing missing, HeldChat& held) {
  if (missing == Missing::kCreate && options_.access == Access::kServer) {
    const auto is_new = files_.CreateDirectories(chat);
    if (!is_new) return Fail(is_new.error());
    held->directories_made = true;
    if (*is_new) {
      held->loaded = true;
      return true;
    }
  }
  auto on_disk = files_.ReadChat(chat);
  const bool found = on_disk.has_value();
  if (!found && (on_disk.error().code != ErrorCode::kNotFound || missing == Missing::kFail)) {
    return Fail(std::move(on_disk.error()));
  }
  if (found) {
    // Nobody else has this state yet: it becomes loaded only now, and files are written for loaded states only.
    if (options_.access == Access::kServer) files_.RemoveLeftovers(chat);
    held->index_unreadable = on_disk->index_unreadable;
    held->has_index = on_disk->has_index;
    held->index_on_disk = on_disk->has_index;
    held->numbers = std::move(on_disk->numbers);
    for (const std::uint32_t number : on_disk->journals) held->journals.emplace(number, nullptr);
    held->index = std::move(on_disk->index);
  }
  const std::uint32_t last_saved = held->numbers.empty() ? 0 : *held->numbers.rbegin();
  const std::uint32_t last_journal = held->journals.empty() ? 0 : held->journals.rbegin()->first;
  held->next_number = std::max({last_saved, last_journal, held->index.last}) + 1;
  held->loaded = true;
  return !found;
}

void FileInteractionStore::Retire(const ChatId& chat, const HeldChat& held) {
  held->retired = true;
  const std::lock_guard lock(chats_mutex_);
  const auto found = chats_.find(chat);
  if (found != chats_.end() && found->second == held.state) chats_.erase(found);
}

Result<void> FileInteractionStore::CheckWritable() const {
  if (options_.access != Access::kReadOnly) return {};
  return Fail(ErrorCode::kForbidden, "the data folder was opened for reading");
}

// --- writing ---------------------------------------------------------------------------------------------------------

Result<ChatSummary> FileInteractionStore::CreateChat(const ChatId& chat, const std::string& title) {
  if (auto writable = CheckWritable(); !writable) return Fail(std::move(writable.error()));
  auto held = HoldChat(chat, Missing::kLeave, Hold::kStateAndIndex);
  if (!held) return Fail(std::move(held.error()));
  if (!held->created) return Conflict("chat_exists", "there is a chat of this name already");
  ChatIndex index = (*held)->index;
  index.summary.title = title;
  auto made =
      files_.CreateDirectories(chat).and_then([&](bool) { return ReplaceIndexDurably(*held, std::move(index)); });
  if (!made) Retire(chat, *held);
  return made;
}

Result<InteractionId> FileInteractionStore::ReserveInteraction(const ChatId& chat) {
  if (auto writable = CheckWritable(); !writable) return Fail(std::move(writable.error()));
  auto held = HoldChat(chat, Missing::kCreate, Hold::kState);
  if (!held) return Fail(std::move(held.error()));
  ChatState& state = *held->state;
  if (state.next_number > InteractionId::kMaxNumber) return Conflict("chat_full", "the chat has too many interactions");
  if (!state.directories_made && options_.access == Access::kServer) {
    if (auto made = files_.CreateDirectories(chat); !made) return Fail(std::move(made.error()));
    state.directories_made = true;
  }
  const InteractionId id = InteractionId::FromNumber(state.next_number++);
  if (options_.access == Access::kServer) {
    // A chat with two checkpoints and no chat.json is taken for one that has lost it.
    if (state.has_index && !state.index_on_disk) index_writer_.WriteNow(chat);
    state.preparation = save_preparer_.Prepare(chat, id, /*sync_names=*/!state.names_durable);
    state.prepared_number = id.number();
  }
  return id;
}

// The file that was made ready while the interaction ran, or a new one.
Result<AtomicFile> FileInteractionStore::FileFor(const Interaction& interaction, HeldChat& held) {
  if (held->prepared_number == interaction.id.number() && held->preparation.file.valid()) {
    if (auto ready = held->preparation.file.get()) return ready;
  }
  return files_.CreateInteractionFile(interaction.chat_id, interaction.id);
}

Result<void> FileInteractionStore::SyncNamesOf(const ChatId& chat, HeldChat& held) {
  if (held->names_durable) return files_.SyncInteractionNames(chat);
  if (!held->preparation.names.valid()) return files_.SyncNames(chat);
  auto outer = held->preparation.names.get();
  return outer.and_then([&] { return files_.SyncInteractionNames(chat); });
}

Result<void> FileInteractionStore::SaveInteraction(const Interaction& interaction) {
  if (auto writable = CheckWritable(); !writable) return writable;
  if (options_.access == Access::kFallback) {
    if (auto ready = CreateFallbackRoot(); !ready) return ready;
  }
  auto held = HoldChat(interaction.chat_id, Missing::kLeave, Hold::kState);
  if (held && (*held)->has_index && !(*held)->index_on_disk) {
    // Two checkpoints without a chat.json would look like a chat that has lost it: the background is late.
    held = HeldChat{};
    WriteIndex(interaction.chat_id);
    held = HoldChat(interaction.chat_id, Missing::kLeave, Hold::kState);
  }
  if (held && interaction.id.number() < (*held)->index.last) {
    // Older than what chat.json knows, so it would not become the head by its number: chat.json has to say so now.
    held = HeldChat{};
    held = HoldChat(interaction.chat_id, Missing::kLeave, Hold::kStateAndIndex);
  }
  if (!held) return Fail(std::move(held.error()));
  auto saved = SaveHeld(interaction, *held);
  if (!saved && held->created) Retire(interaction.chat_id, *held);
  return saved;
}

Result<void> FileInteractionStore::SaveHeld(const Interaction& interaction, HeldChat& held) {
  const std::uint32_t number = interaction.id.number();
  if (held->numbers.contains(number)) {
    return CheckSame(interaction).and_then([&] { return SyncStoredNames(interaction.chat_id, held); });
  }
  const auto links = LinksFor(interaction, held);
  if (!links) return Fail(links.error());
  if (!held->directories_made) {
    if (auto made = files_.CreateDirectories(interaction.chat_id); !made) return Fail(std::move(made.error()));
    held->directories_made = true;
  }
  const auto write = [&] {
    return FileFor(interaction, held).and_then([&](AtomicFile file) {
      // In a fallback folder a parent may be missing.
      ChatFiles::ParentState parent_state;
      if (options_.access == Access::kServer) {
        parent_state = [&] { return ParentState(interaction.chat_id, *links); };
      }
      return files_.WriteInteraction(interaction, *links, std::move(file), parent_state);
    });
  };
  auto written = write();
  if (!written && written.error().code == ErrorCode::kNotFound) {
    // Somebody has removed or moved the chat's directory.
    held->names_durable = false;
    if (auto made = files_.CreateDirectories(interaction.chat_id); !made) return Fail(std::move(made.error()));
    written = write();
  }
  if (!written) return Fail(std::move(written.error()));
  // All names with the first save, also of a chat that was there before: the process that made it may have been killed
  // before it synced them.
  if (auto synced = SyncNamesOf(interaction.chat_id, held); !synced) return synced;
  held->names_durable = true;
  KeepState(interaction, *written);
  // As the files alone will say if the process ends before chat.json is written.
  if (!held->has_index && held->numbers.empty()) held->index.summary.created_at = interaction.created_at;
  AddToIndex(held->index, interaction, std::move(written->digest));
  held->numbers.insert(number);
  held->next_number = std::max(held->next_number, number + 1);
  EndJournal(interaction.chat_id, interaction.id, *held.state);
  if (options_.access == Access::kFallback) return {};
  if (held.index_lock) return ReplaceIndexDurably(held, held->index).map([](const ChatSummary&) {});
  held->has_index = true;
  index_writer_.WriteLater(interaction.chat_id);
  return {};
}

// What an earlier process has left may be seen, and still not be durable.
Result<void> FileInteractionStore::SyncStoredNames(const ChatId& chat, HeldChat& held) {
  if (held->names_durable) return {};
  auto synced = files_.SyncNames(chat);
  held->names_durable = synced.has_value();
  return synced;
}

// --- journals --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Journal>> FileInteractionStore::BeginJournal(const ChatId& chat, InteractionId id,
                                                                    const std::vector<std::string>& records) {
  if (auto writable = CheckWritable(); !writable) return Fail(std::move(writable.error()));
  auto held = HoldChat(chat, Missing::kLeave, Hold::kState);
  if (!held) return Fail(std::move(held.error()));
  // First in the list: a journal that is not in it would never be looked for.
  if (auto begun = running_.Begin(chat, id); !begun) return Fail(std::move(begun.error()));
  const std::string path = JournalPath(options_.root, chat, id);
  const auto sync_names = [this, chat] { return SyncJournalNames(chat); };
  const auto create = [&]() -> Result<std::unique_ptr<FileJournal>> {
    auto cipher = JournalCipher::Create({.chat = chat, .interaction = id}, options_.keys.get());
    if (!cipher) return Fail(std::move(cipher.error()));
    if (!records.empty()) {
      return FileJournal::Replace(options_.file_system, path, *std::move(cipher), records, sync_names);
    }
    auto file = spare_files_.Take(path);
    if (!file) return Fail(std::move(file.error()));
    return std::make_unique<FileJournal>(*std::move(file), *std::move(cipher), sync_names);
  };
  auto journal = create();
  if (!journal && journal.error().code == ErrorCode::kNotFound) {
    (*held)->names_durable = false;
    if (auto made = files_.CreateDirectories(chat); !made) return Fail(std::move(made.error()));
    journal = create();
  }
  if (!journal) return Fail(std::move(journal.error()));
  (*held)->journals.insert_or_assign(id.number(), (*journal)->file());
  return *std::move(journal);
}

Result<void> FileInteractionStore::SyncJournalNames(const ChatId& chat) {
  auto held = HoldChat(chat, Missing::kLeave, Hold::kState);
  if (!held) return Fail(std::move(held.error()));
  if (auto synced = SyncNamesOf(chat, *held); !synced) return synced;
  (*held)->names_durable = true;
  return running_.Sync();
}

Result<std::vector<InteractionRef>> FileInteractionStore::ListUnfinished() {
  const auto last = running_.ReadLast();
  if (!last) return FindJournals();
  std::vector<InteractionRef> unfinished;
  for (const auto& [chat, id] : *last) unfinished.push_back({chat, id});
  return unfinished;
}

// Without the list: a folder of an earlier version, or one that lost it. The list that is begun next knows them all.
Result<std::vector<InteractionRef>> FileInteractionStore::FindJournals() {
  const auto chats = files_.ListChats();
  if (!chats) return Fail(chats.error());
  std::vector<InteractionRef> found;
  std::vector<RunningList::Entry> entries;
  bool all = true;
  for (const ChatId& chat : *chats) {
    const auto files = files_.ListInteractions(chat);
    if (!files) {
      LogError("a chat's folder cannot be listed", {{"chat", chat.str()}, {"detail", files.error().detail}});
      all = false;
      continue;
    }
    for (const std::uint32_t number : files->journals) {
      found.push_back({chat, InteractionId::FromNumber(number)});
      entries.emplace_back(chat, InteractionId::FromNumber(number));
    }
  }
  running_.Adopt(entries, all);
  return found;
}

Result<JournalContent> FileInteractionStore::ReadJournal(const ChatId& chat, InteractionId id) {
  const std::string path = JournalPath(options_.root, chat, id);
  const auto text = options_.file_system.ReadFile(path, kMaxRecordBytes);
  if (!text) return Fail(text.error());
  auto content = ReadJournalText(*text, {.chat = chat, .interaction = id}, options_.keys.get());
  if (content || content.error().reason != "integrity_swap") return content;
  // A file that served another interaction before, and nothing of this one had reached the disk when the power went.
  const auto served = JournalCipher::ClaimedPlace(text->substr(0, text->find('\n')));
  if (!served || !files_.ReadInteraction(served->chat, *served->interaction)) return content;
  return JournalContent{.records = {}, .cut_off = true};
}

Result<void> FileInteractionStore::DropJournal(const ChatId& chat, InteractionId id) {
  return RemoveJournal(chat, id, nullptr);
}

Result<void> FileInteractionStore::RemoveJournal(const ChatId& chat, InteractionId id,
                                                 std::unique_ptr<WritableFile> file) {
  running_.End(chat, id);
  auto removed = spare_files_.Give(JournalPath(options_.root, chat, id), std::move(file));
  if (!removed && removed.error().code == ErrorCode::kNotFound) return {};
  return removed;
}

// The checkpoint is durable: a journal that comes back after a power loss is seen to be of a saved interaction.
void FileInteractionStore::EndJournal(const ChatId& chat, InteractionId id, ChatState& state) {
  const auto journal = state.journals.extract(id.number());
  if (!journal) return;
  auto file = journal.mapped() ? journal.mapped()->TakeAway() : nullptr;
  if (auto dropped = RemoveJournal(chat, id, std::move(file)); !dropped) {
    LogWarning("a journal could not be removed", {{"chat", chat.str()}, {"detail", dropped.error().detail}});
  }
}

Result<void> FileInteractionStore::CheckSame(const Interaction& interaction) {
  const auto stored = ReadWhole(interaction.chat_id, interaction.id);
  if (!stored) return Fail(stored.error());
  // Compared as they are written: text that is not UTF-8 changes on its way to the file.
  if (DumpJson(ToJson(stored->interaction)) == DumpJson(ToJson(interaction))) return {};
  return Conflict("interaction_exists", "another interaction is stored under this id");
}

// --- long states -----------------------------------------------------------------------------------------------------

Result<StoredInteraction> FileInteractionStore::ReadWhole(const ChatId& chat, InteractionId id) {
  auto stored = files_.ReadInteraction(chat, id);
  if (!stored || !stored->state_link) return stored;
  const StateTotals totals = stored->state_link->totals;
  std::vector<std::vector<Message>> parts;  // newest first; each is what was added to the one behind it
  auto known = long_states_.Find(stored->digest);
  AgentState& state = *stored->interaction.final_agent_state;
  std::optional<StateLink> link = stored->state_link;
  RecordLinks links = stored->links;
  InteractionId child = id;
  if (!known) parts.push_back(std::move(state.messages));
  while (link && !known) {
    const auto unusable = [&](std::string_view kind, std::string_view what) {
      return Fail(IntegrityError(kind, {.chat = chat, .interaction = child}, what));
    };
    // Parents are older, so this ends.
    if (!links.parent || *links.parent >= child) return unusable("auth", "its state continues that of no interaction");
    child = *links.parent;
    auto parent = files_.ReadInteraction(chat, child);
    if (!parent && parent.error().code == ErrorCode::kNotFound) return Fail(MissingFile(chat, child));
    if (!parent) return parent;
    if (links.parent_digest && *links.parent_digest != parent->digest) {
      return unusable("rollback", "it is not the version that the next interaction was built on");
    }
    known = long_states_.Find(parent->digest);
    if (!known && !parent->interaction.final_agent_state) return unusable("auth", "it has no state to continue");
    if (!known) parts.push_back(std::move(parent->interaction.final_agent_state->messages));
    link = parent->state_link;
    links = std::move(parent->links);
  }
  if (known) {
    state.messages = known->state->messages;
  } else {
    state.messages.clear();
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    state.messages.insert(state.messages.end(), std::make_move_iterator(part->begin()),
                          std::make_move_iterator(part->end()));
  }
  if (state.messages.size() != totals.messages) {
    return Fail(IntegrityError("auth", {.chat = chat, .interaction = id}, "its state is not whole"));
  }
  KeepLong(stored->digest, state, totals);
  stored->state_link.reset();
  return stored;
}

std::optional<KnownState> FileInteractionStore::ParentState(const ChatId& chat, const RecordLinks& links) {
  if (!links.parent || !links.parent_digest) return std::nullopt;
  if (auto known = long_states_.Find(*links.parent_digest)) return known;
  auto parent = files_.ReadInteraction(chat, *links.parent);
  if (!parent || !parent->interaction.final_agent_state) return std::nullopt;
  if (parent->state_link) return KnownState{.totals = std::move(parent->state_link->totals), .state = nullptr};
  auto state = std::make_shared<const AgentState>(*std::move(parent->interaction.final_agent_state));
  return KnownState{.totals = TotalsOf(*state), .state = std::move(state)};
}

void FileInteractionStore::KeepState(const Interaction& interaction, const WrittenInteraction& written) {
  if (options_.access != Access::kServer || !interaction.final_agent_state) return;
  const AgentState& state = *interaction.final_agent_state;
  if (written.state_link) return KeepLong(written.digest, state, written.state_link->totals);
  if (!written.verbatim || written.bytes > 2 * kFullStateBytes) return;
  short_states_.Put(interaction.chat_id.str(),
                    {.interaction = interaction.id, .file_digest = written.file_digest, .state = state},
                    kEntryBytes + written.bytes + state.messages.size() * sizeof(Message));
}

void FileInteractionStore::KeepLong(const std::string& digest, const AgentState& state, StateTotals totals) {
  const std::size_t bytes = totals.bytes;
  long_states_.Put(digest, {.totals = std::move(totals), .state = std::make_shared<const AgentState>(state)}, bytes);
}

Result<RecordLinks> FileInteractionStore::LinksFor(const Interaction& interaction, const HeldChat& held) {
  RecordLinks links{.parent = interaction.parent_id, .parent_digest = std::nullopt};
  if (!links.parent) return links;
  const std::uint32_t parent = links.parent->number();
  if (!held->numbers.contains(parent)) {
    if (options_.access == Access::kFallback) return links;
    return Fail(ErrorCode::kNotFound, "the parent interaction is not in this chat");
  }
  if (const auto leaf = held->index.leaves.find(parent); leaf != held->index.leaves.end()) {
    links.parent_digest = leaf->second;
    return links;
  }
  auto digest = files_.ReadDigest(interaction.chat_id, *links.parent);
  if (!digest) return Fail(std::move(digest.error()));
  links.parent_digest = *std::move(digest);
  return links;
}

Result<void> FileInteractionStore::WriteIndexLocked(ChatState& state, const ChatIndex& index, Durability durability) {
  if (state.index_unreadable) {
    if (auto aside = files_.SetIndexAside(index.summary.id); !aside) return aside;
    state.index_unreadable = false;
  }
  return files_.WriteIndex(index, durability);
}

Result<ChatSummary> FileInteractionStore::ReplaceIndexDurably(HeldChat& held, ChatIndex index) {
  const ChatId& chat = index.summary.id;
  // The names of the interactions before the index that counts on them.
  if (auto synced = SyncStoredNames(chat, held); !synced) return Fail(std::move(synced.error()));
  auto written = WriteIndexLocked(*held.state, index).and_then([&] { return files_.SyncChatDirectory(chat); });
  if (!written) return Fail(std::move(written.error()));
  held->has_index = true;
  held->index_on_disk = true;
  held->index = std::move(index);
  return held->index.summary;
}

void FileInteractionStore::WriteIndex(const ChatId& chat) {
  const auto state = FindState(chat);
  if (!state) return;
  const std::lock_guard index_lock(state->index_mutex);
  std::unique_lock lock(state->mutex);
  if (state->retired) return;
  const ChatIndex index = state->index;
  lock.unlock();
  // Without the chat's own lock: the next save need not wait for this, and its index comes after this one. The first
  // replaces nothing, and if the power fails before the kernel has written it, it is made from the interactions again:
  // not worth a sync.
  const Durability durability = state->index_on_disk ? Durability::kSynced : Durability::kUnsynced;
  auto written = WriteIndexLocked(*state, index, durability);
  if (written) state->index_on_disk = true;
  if (!written) {
    LogWarning("a chat's index could not be written; the next save tries again",
               {{"chat", chat.str()}, {"reason", written.error().reason}, {"detail", written.error().detail}});
  }
}

Result<ChatSummary> FileInteractionStore::RenameChat(const ChatId& chat, const std::string& title) {
  if (auto writable = CheckWritable(); !writable) return Fail(std::move(writable.error()));
  auto held = HoldChat(chat, Missing::kFail, Hold::kStateAndIndex);
  if (!held) return Fail(std::move(held.error()));
  ChatIndex index = (*held)->index;
  index.summary.title = title;
  index.summary.updated_at = std::max(index.summary.updated_at, Now());
  return ReplaceIndexDurably(*held, std::move(index));
}

Result<ChatSummary> FileInteractionStore::MoveHead(const ChatId& chat, InteractionId head) {
  if (auto writable = CheckWritable(); !writable) return Fail(std::move(writable.error()));
  // A chat must not end at what cannot be read. (Numbered files never change: before the lock is as good as under it.)
  const auto interaction = LoadInteraction(chat, head);
  if (!interaction) return Fail(interaction.error());
  auto held = HoldChat(chat, Missing::kFail, Hold::kStateAndIndex);
  if (!held) return Fail(std::move(held.error()));
  if (!(*held)->numbers.contains(head.number())) return NoSuchInteraction();
  ChatIndex index = (*held)->index;
  index.summary.head = head;
  index.summary.head_status = interaction->status;
  index.summary.updated_at = std::max(index.summary.updated_at, Now());
  return ReplaceIndexDurably(*held, std::move(index));
}

Result<void> FileInteractionStore::DeleteChat(const ChatId& chat) {
  if (auto writable = CheckWritable(); !writable) return writable;
  // A chat whose index is damaged can be deleted as well, so it is not read; the locks keep writers out.
  auto held = HoldChat(chat, Missing::kFail, Hold::kStateAndIndex);
  if (!held && held.error().code != ErrorCode::kCorruption) return Fail(std::move(held.error()));
  auto moved = files_.MoveToTrash(chat);
  short_states_.Take(chat.str());
  if (held) Retire(chat, *held);  // even if only the sync failed: what is on disk is read again
  if (!moved && moved.error().code == ErrorCode::kNotFound) return NoSuchChat();
  return moved;
}

Result<void> FileInteractionStore::CreateFallbackRoot() {
  auto created = CreateDirectories(options_.file_system, options_.root);
  if (!created) return Fail(std::move(created.error()));
  return CheckPrivateDirectory(options_.root);
}

// --- reading ---------------------------------------------------------------------------------------------------------

Result<FileInteractionStore::Snapshot> FileInteractionStore::TakeSnapshot(const ChatId& chat) {
  const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
  if (!held) return Fail(held.error());
  return Snapshot{.index = (*held)->index, .numbers = (*held)->numbers};
}

// Whether something that is stored says that there is such an interaction.
bool FileInteractionStore::IsExpected(const ChatId& chat, InteractionId id) {
  const auto snapshot = TakeSnapshot(chat);
  if (!snapshot) return false;
  const auto& [index, numbers] = *snapshot;
  const bool known = numbers.contains(id.number()) || index.leaves.contains(id.number()) || index.summary.head == id;
  return known || std::any_of(numbers.upper_bound(id.number()), numbers.end(), [&](std::uint32_t number) {
           const auto links = files_.ReadLinks(chat, InteractionId::FromNumber(number));
           return links && links->parent == id;
         });
}

Result<std::optional<AgentState>> FileInteractionStore::LoadFinalState(const ChatId& chat, InteractionId id) {
  // Taken, since the turn that asks for it will save the next one.
  if (auto kept = short_states_.Take(chat.str()); kept && kept->interaction == id) {
    if (files_.ReadFileDigest(chat, id) == kept->file_digest) return std::move(kept->state);
  }
  return LoadInteraction(chat, id).map(
      [](Interaction interaction) { return std::move(interaction.final_agent_state); });
}

Result<Interaction> FileInteractionStore::LoadInteraction(const ChatId& chat, InteractionId id) {
  auto stored = ReadWhole(chat, id);
  if (stored) return std::move(stored->interaction);
  if (stored.error().code != ErrorCode::kNotFound) return Fail(std::move(stored.error()));
  if (IsExpected(chat, id)) return Fail(MissingFile(chat, id));
  return NoSuchInteraction();
}

Result<ChatSummary> FileInteractionStore::LoadSummary(const ChatId& chat) {
  const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
  if (!held) return Fail(held.error());
  return (*held)->index.summary;
}

Result<std::optional<AgentState>> FileInteractionStore::LoadPreviousState(const ChatId& chat, InteractionId id) {
  const auto links = files_.ReadLinks(chat, id);
  if (!links && links.error().code == ErrorCode::kNotFound) {
    if (IsExpected(chat, id)) return Fail(MissingFile(chat, id));
    return NoSuchInteraction();
  }
  if (!links) return Fail(links.error());
  if (!links->parent) return std::optional<AgentState>();
  auto parent = ReadWhole(chat, *links->parent);
  if (!parent && parent.error().code == ErrorCode::kNotFound) return Fail(MissingFile(chat, *links->parent));
  if (!parent) return Fail(std::move(parent.error()));
  if (links->parent_digest && *links->parent_digest != parent->digest) {
    return Fail(IntegrityError("rollback", {.chat = chat, .interaction = *links->parent},
                               "it is not the version that the next interaction was built on"));
  }
  return std::move(parent->interaction.final_agent_state);
}

Result<Chat> FileInteractionStore::LoadChat(const ChatId& chat) {
  const auto snapshot = TakeSnapshot(chat);
  if (!snapshot) return Fail(snapshot.error());
  const auto& [index, numbers] = *snapshot;
  // Without a lock: a stored interaction does not change, and a long history must not hold up a save.
  Chat result{.summary = index.summary, .interactions = {}, .damaged = {}};
  std::vector<StoredInteraction> stored;
  for (const std::uint32_t number : numbers) {
    const InteractionId id = InteractionId::FromNumber(number);
    auto read = files_.ReadInteraction(chat, id);
    if (read) {
      if (read->state_link) read->interaction.final_agent_state.reset();
      stored.push_back(*std::move(read));
    } else if (read.error().code == ErrorCode::kCorruption) {
      result.damaged.push_back(
          {.id = id, .error = std::move(read.error()), .parent_id = files_.ClaimedParent(chat, id)});
    } else if (read.error().code == ErrorCode::kNotFound) {
      result.damaged.push_back({.id = id, .error = MissingFile(chat, id), .parent_id = {}});
    } else {
      return Fail(std::move(read.error()));
    }
  }
  CheckHistory(index, stored, result);
  for (StoredInteraction& one : stored) {
    const bool damaged = std::any_of(result.damaged.begin(), result.damaged.end(),
                                     [&](const DamagedInteraction& other) { return other.id == one.interaction.id; });
    if (!damaged) result.interactions.push_back(std::move(one.interaction));
  }
  return result;
}

// Compares what the index and the interactions say of each other with what is there. A digest that differs means that
// an authentic but other version of the file was put back.
void FileInteractionStore::CheckHistory(const ChatIndex& index, const std::vector<StoredInteraction>& stored,
                                        Chat& chat) const {
  std::map<std::uint32_t, const StoredInteraction*> by_number;
  for (const StoredInteraction& one : stored) by_number[one.interaction.id.number()] = &one;
  std::map<std::uint32_t, Error> found;
  const ChatId& chat_id = chat.summary.id;
  const auto expect = [&](InteractionId id, const std::optional<std::string>& digest) {
    const auto there = by_number.find(id.number());
    if (there == by_number.end()) {
      found.emplace(id.number(), MissingFile(chat_id, id));
    } else if (digest && files_.authenticated() && *digest != there->second->digest) {
      found.emplace(id.number(), IntegrityError("rollback", {.chat = chat_id, .interaction = id},
                                                "it is not the version that was stored last"));
    }
  };
  for (const auto& [number, digest] : index.leaves) expect(InteractionId::FromNumber(number), digest);
  if (index.summary.head) expect(*index.summary.head, std::nullopt);
  // From the newest down, so that what a replaced file says of its own parent is not believed. In a fallback folder the
  // parents are elsewhere.
  if (options_.access != Access::kFallback) {
    for (auto one = stored.rbegin(); one != stored.rend(); ++one) {
      const bool believed = !found.contains(one->interaction.id.number());
      if (one->links.parent && believed) expect(*one->links.parent, one->links.parent_digest);
    }
  }
  for (const DamagedInteraction& known : chat.damaged) found.erase(known.id.number());
  for (auto& [number, error] : found) {
    const InteractionId id = InteractionId::FromNumber(number);
    chat.damaged.push_back({.id = id, .error = std::move(error), .parent_id = files_.ClaimedParent(chat_id, id)});
  }
  std::sort(chat.damaged.begin(), chat.damaged.end(),
            [](const DamagedInteraction& a, const DamagedInteraction& b) { return a.id < b.id; });
}

Result<std::vector<ChatSummary>> FileInteractionStore::ListChats() {
  auto chats = files_.ListChats();
  if (!chats && chats.error().code == ErrorCode::kNotFound && options_.access == Access::kFallback) chats.emplace();
  if (!chats) return Fail(std::move(chats.error()));
  std::vector<ChatSummary> summaries;
  for (const ChatId& chat : *chats) {
    auto summary = LoadSummary(chat);
    if (summary) {
      summaries.push_back(*std::move(summary));
    } else if (summary.error().code != ErrorCode::kNotFound) {
      LogError("a chat cannot be listed",
               {{"chat", chat.str()}, {"reason", summary.error().reason}, {"detail", summary.error().detail}});
    }
  }
  std::sort(summaries.begin(), summaries.end(), [](const ChatSummary& a, const ChatSummary& b) {
    return a.updated_at != b.updated_at ? a.updated_at > b.updated_at : a.id < b.id;
  });
  return summaries;
}

}  // namespace reprise
