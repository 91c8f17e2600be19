#include "store/file_interaction_store.h"

#include <algorithm>
#include <optional>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/file_names.h"
#include "store/incoming_chats.h"
#include "store/store_errors.h"

namespace reprise {
namespace {

// Long states are assembled from many files. The others are one file each, so only those of the few chats in use are
// kept.
constexpr std::size_t kLongStatesBytes = 64u << 20, kShortStatesBytes = 512u << 10;
// Each file that is prepared holds a descriptor while its interaction runs. If so many run, those cost more than a
// save.
constexpr std::size_t kMostPrepared = 512;

Result<void> PrepareRoot(const FileInteractionStore::Options& options) {
  if (options.access == FileInteractionStore::Access::kFallback) return {};
  if (options.access == FileInteractionStore::Access::kReadOnly || !options.syncs) {  // it is there
    return options.file_system.ListDirectory(options.root).map([](const std::vector<DirectoryEntry>&) {});
  }
  return CreateDirectories(options.file_system, options.root).map([](bool) {});
}

}  // namespace

Result<std::unique_ptr<FileInteractionStore>> FileInteractionStore::Open(Options options) {
  TRY(PrepareRoot(options));
  std::unique_ptr<DirectoryLock> lock;
  if (options.access == Access::kServer && options.lock) {
    auto acquired = TRY(DirectoryLock::Acquire(LockFile(options.root)));
    lock = std::move(acquired);
  }
  std::unique_ptr<FileInteractionStore> store(new FileInteractionStore(std::move(options), std::move(lock)));
  if (store->lock_) RemoveIncoming(store->options_.root, store->options_.file_system);
  return store;
}

FileInteractionStore::FileInteractionStore(Options options, std::unique_ptr<DirectoryLock> lock)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      root_(options_.access == Access::kServer ? options_.file_system.Expect(options_.root) : nullptr),
      sync_reach_(options_.access == Access::kServer ? options_.file_system.sync_reach(options_.root)
                                                     : SyncReach::kItself),
      files_(options_.root, MakeRecordFormat(options_.keys), options_.file_system),
      queues_({.read = [this](const ChatId& chat) { return files_.ReadQueue(chat); },
               .write = [this](const ChatId& chat, const auto& messages) { return files_.WriteQueue(chat, messages); },
               .list = [this] { return files_.ListQueues(); },
               .is_read_only = options_.access == Access::kReadOnly}),
      long_states_(kLongStatesBytes),
      short_states_(kShortStatesBytes),
      running_(options_.file_system, RunningFile(options_.root)),
      list_(MakeList()),
      save_preparer_({.create_file = [this](const ChatId& chat,
                                            InteractionId id) { return files_.CreateInteractionFile(chat, id); },
                      .sync_chat = [this](const ChatId& chat) { return files_.SyncChatDirectory(chat); },
                      .sync_root = [this] { return files_.SyncRoot(); }}),
      index_writer_(options_.index_delay, [this](const ChatId& chat) { WriteIndex(chat, IndexNeed::kCurrent); }) {}

FileInteractionStore::~FileInteractionStore() = default;

void FileInteractionStore::NoteUrl(std::string_view url) {
  if (lock_) lock_->NoteUrl(url);
}

// --- chats in memory -------------------------------------------------------------------------------------------------

std::shared_ptr<FileInteractionStore::ChatState> FileInteractionStore::StateOf(const ChatId& chat) {
  // A read-only store remembers nothing, because the files may change between two calls.
  if (options_.access == Access::kReadOnly) return std::make_shared<ChatState>(chat);
  const MutexLock lock(chats_mutex_);
  auto& state = chats_[chat];
  if (!state) state = std::make_shared<ChatState>(chat);
  return state;
}

std::shared_ptr<FileInteractionStore::ChatState> FileInteractionStore::FindState(const ChatId& chat) {
  const MutexLock lock(chats_mutex_);
  const auto found = chats_.find(chat);
  return found == chats_.end() ? nullptr : found->second;
}

Result<FileInteractionStore::HeldChat> FileInteractionStore::HoldChat(const ChatId& chat, Missing missing, Hold hold) {
  for (;;) {
    HeldChat held{.state = StateOf(chat), .index_lock = {}, .lock = {}};
    // With the index lock, the caller may replace chat.json: nothing else writes it meanwhile.
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

// True if nothing of this chat was on disk.
Result<bool> FileInteractionStore::Load(const ChatId& chat, Missing missing, HeldChat& held) {
  if (missing == Missing::kCreate && options_.access == Access::kServer) {
    const auto is_new = TRY(MakeDirectories(chat, held));
    if (is_new) {
      held->loaded = true;
      return true;
    }
  }
  auto on_disk = files_.ReadChat(chat);
  const bool found = on_disk.has_value();
  if (!found && (!IsNotFound(on_disk.error()) || missing == Missing::kFail)) {
    return Fail(std::move(on_disk.error()));
  }
  if (found && !on_disk->has_index) {
    // There is no chat.json yet, whose opening would have shown the key.
    TRY(CheckKeyOf(chat, *on_disk));
  }
  if (found) {
    // Nothing is being written to this chat: files are written for loaded states only, and this one is not loaded yet.
    if (options_.access == Access::kServer) files_.RemoveLeftovers(chat);
    held->unproven = on_disk->unproven;
    const bool is_cut_off = held->unproven && !held->unproven->readable && options_.access == Access::kServer;
    if (is_cut_off && files_.RemoveInteraction(chat, held->unproven->id)) held->unproven.reset();
    held->index_unreadable = on_disk->index_unreadable;
    // The process that saved the first checkpoint may have ended before it wrote the index.
    held->has_index = on_disk->has_index || !on_disk->numbers.empty();
    held->index_on_disk = on_disk->has_index;
    held->index_durable = on_disk->has_index && on_disk->numbers.size() > 1;
    held->numbers = std::move(on_disk->numbers);
    for (const std::uint32_t number : on_disk->journals) held->journals.emplace(number, nullptr);
    held->index = std::move(on_disk->index);
    if (options_.access == Access::kServer) NoticeJournals(chat, *held.state);
  }
  const std::uint32_t last_saved = held->numbers.empty() ? 0 : *held->numbers.rbegin();
  const std::uint32_t last_journal = held->journals.empty() ? 0 : held->journals.rbegin()->first;
  held->next_number = std::max({last_saved, last_journal, held->index.last}) + 1;
  held->loaded = true;
  list_->Touch(chat);  // another program may have changed it since it was listed
  return !found;
}

// A chat that was begun under a key that is now missing must not continue under another one.
Result<void> FileInteractionStore::CheckKeyOf(const ChatId& chat, const ChatOnDisk& on_disk) const {
  const bool has_checkpoint = !on_disk.numbers.empty();
  const auto id = InteractionId::FromNumber(has_checkpoint ? *on_disk.numbers.begin() : *on_disk.journals.begin());
  const RecordPlace place{.chat = chat, .interaction = id};
  const std::string path =
      has_checkpoint ? InteractionFile(options_.root, chat, id) : JournalPath(options_.root, chat, id);
  const auto text = ReadRecordText(options_.file_system, path, place);
  // Damage is reported where the file is read.
  if (!text && !IsNotFound(text.error()) && text.error().code != ErrorCode::kCorruption) {
    return Fail(text.error());
  }
  if (!text) return {};
  const auto kid =
      KeyIdOf(has_checkpoint ? std::string_view(*text) : std::string_view(*text).substr(0, text->find('\n')));
  if (!kid || (options_.keys && options_.keys->Find(*kid) != nullptr)) return {};
  return Fail(options_.keys ? IntegrityError("auth", place, "it is sealed with a key that is not in the key file")
                            : IntegrityError("sealed", place, "it is sealed, and this data folder is not"));
}

// The list may be truncated or stale, so it can miss some of them.
void FileInteractionStore::NoticeJournals(const ChatId& chat, const ChatState& state) {
  for (const auto& [number, file] : state.journals) {
    const auto id = InteractionId::FromNumber(number);
    if (state.numbers.contains(number) || !running_.Notice(chat, id)) continue;
    LogWarning("an unfinished interaction was missing from the list of running ones; the next start takes it up",
               {{"chat", chat.str()}, {"interaction", id.str()}});
  }
}

// True if the chat's did not exist.
Result<bool> FileInteractionStore::MakeDirectories(const ChatId& chat, HeldChat& held) {
  if (held->directories_made) return false;
  auto is_new = files_.CreateDirectories(chat);
  held->directories_made = is_new.has_value();
  held->directories_new = is_new && *is_new;
  return is_new;
}

void FileInteractionStore::Retire(const ChatId& chat, const HeldChat& held) {
  held->retired = true;
  list_->Touch(chat);
  const MutexLock lock(chats_mutex_);
  const auto found = chats_.find(chat);
  if (found != chats_.end() && found->second == held.state) chats_.erase(found);
}

Result<void> FileInteractionStore::CheckWritable() const {
  return options_.access == Access::kReadOnly ? ReadOnly() : Result<void>();
}

// --- writing ---------------------------------------------------------------------------------------------------------

Result<void> FileInteractionStore::AddEmpty(const ChatIndex& index) {
  const ChatId& chat = index.summary.id;
  auto held = TRY(HoldChat(chat, Missing::kLeave, Hold::kStateAndIndex));
  if (!held.created) return ChatExists();
  auto made = files_.CreateDirectories(chat).and_then([&](bool) { return ReplaceIndexDurably(held, index); });
  if (!made) Retire(chat, held);
  return made.map([](const ChatSummary&) {});
}

Result<InteractionId> FileInteractionStore::ReserveInteraction(const ChatId& chat) {
  TRY(CheckWritable());
  auto held = TRY(HoldChat(chat, Missing::kCreate, Hold::kState));
  ChatState& state = *held.state;
  if (state.next_number > InteractionId::kMaxNumber) return ChatIsFull();
  if (options_.access == Access::kServer) {
    TRY(MakeDirectories(chat, held));
  }
  const InteractionId id = InteractionId::FromNumber(state.next_number++);
  if (options_.access == Access::kServer) {
    // A chat with two checkpoints and no chat.json would look like one that has lost it.
    state.index_must_last = !state.numbers.empty();
    if (state.has_index && state.index_must_last && !state.index_durable) index_writer_.WriteNow(chat);
    state.preparation = save_preparer_.Prepare(
        chat, id, {.file = running_.count() < kMostPrepared, .names = !state.names_durable && !SyncReachesNames(held)});
    state.prepared_number = id.number();
  }
  return id;
}

// The file that was prepared while the interaction ran, or a new one.
Result<AtomicFile> FileInteractionStore::FileFor(const Interaction& interaction, HeldChat& held) {
  if (held->prepared_number == interaction.id.number() && held->preparation.file.valid()) {
    if (auto ready = held->preparation.file.get()) return ready;
  }
  return files_.CreateInteractionFile(interaction.chat_id, interaction.id);
}

// One sync is enough where the disk syncs in order: the file has its name before it, and until then the interaction's
// journal shows that the file may be cut off. That shows nothing of a file that the index takes for finished.
Durability FileInteractionStore::DurabilityOf(const Interaction& interaction, const HeldChat& held) const {
  if (!options_.syncs) return Durability::kUnsynced;
  const auto journal = held->journals.find(interaction.id.number());
  const bool has_journal = journal != held->journals.end() && interaction.id.number() > held->index.last;
  return sync_reach_ == SyncReach::kAllNames && has_journal ? Durability::kNamedThenSynced : Durability::kSynced;
}

bool FileInteractionStore::SyncReachesNames(const HeldChat& held) const {
  return sync_reach_ == SyncReach::kAllNames || (sync_reach_ == SyncReach::kNewNames && held->directories_new);
}

Result<void> FileInteractionStore::SyncNamesOf(const ChatId& chat, HeldChat& held) {
  if (!options_.syncs) return {};
  if (held->names_durable || SyncReachesNames(held)) return files_.SyncInteractionNames(chat);
  if (!held->preparation.names.valid()) return files_.SyncNames(chat);
  auto outer = held->preparation.names.get();
  return outer.and_then([&] { return files_.SyncInteractionNames(chat); });
}

Result<void> FileInteractionStore::SaveInteraction(const Interaction& interaction) {
  TRY(CheckWritable());
  if (options_.access == Access::kFallback) {
    TRY(CreateFallbackRoot());
  }
  auto held = HoldChat(interaction.chat_id, Missing::kLeave, Hold::kState);
  const bool is_server = options_.access == Access::kServer;
  if (held && is_server && (*held)->has_index && !(*held)->index_durable && !(*held)->numbers.empty() &&
      !(*held)->numbers.contains(interaction.id.number())) {
    // The index writer is late, and two checkpoints without a chat.json would look like a chat that has lost it.
    (*held)->index_must_last = true;
    held = HeldChat{};
    WriteIndex(interaction.chat_id, IndexNeed::kDurable);
    held = HoldChat(interaction.chat_id, Missing::kLeave, Hold::kState);
  }
  if (held && interaction.id.number() < (*held)->index.last) {
    // Its number is below the last one in chat.json, so only chat.json can make it the head; it is written now.
    held = HeldChat{};
    held = HoldChat(interaction.chat_id, Missing::kLeave, Hold::kStateAndIndex);
  }
  if (!held) return Fail(std::move(held.error()));
  auto saved = SaveHeld(interaction, *held);
  if (!saved && held->created) Retire(interaction.chat_id, *held);
  return saved.map([](const std::string&) {});
}

Result<std::string> FileInteractionStore::SaveAdded(const Interaction& added, const std::optional<StateLink>& link) {
  TRY(CheckWritable());
  auto held = TRY(HoldChat(added.chat_id, Missing::kLeave, Hold::kState));
  return SaveHeld(added, held, link ? &*link : nullptr);
}

Result<std::string> FileInteractionStore::SaveHeld(const Interaction& interaction, HeldChat& held,
                                                   const StateLink* link) {
  const std::uint32_t number = interaction.id.number();
  if (held->numbers.contains(number)) {
    const auto stored = TRY(ReadWhole(interaction.chat_id, interaction.id, Version::kAny));
    TRY(CheckSame(stored.interaction, interaction));
    return SyncStoredNames(interaction.chat_id, held).map([&] { return stored.digest; });
  }
  const auto links = TRY(LinksFor(interaction, held));
  TRY(MakeDirectories(interaction.chat_id, held));
  const Durability durability = DurabilityOf(interaction, held);
  const auto write = [&] {
    return FileFor(interaction, held).and_then([&](AtomicFile file) {
      if (link != nullptr) return files_.WriteAdded(interaction, *link, links, std::move(file), durability);
      // In a fallback folder a parent may be missing.
      ChatFiles::ParentState parent_state;
      if (options_.access == Access::kServer) {
        parent_state = [&] { return ParentState(interaction.chat_id, links); };
      }
      return files_.WriteInteraction(interaction, links, std::move(file), parent_state, durability);
    });
  };
  auto written = write();
  if (!written && IsNotFound(written.error())) {
    // The chat's directory was removed or moved.
    held->names_durable = false;
    TRY(files_.CreateDirectories(interaction.chat_id));
    written = write();
  }
  if (!written) return Fail(std::move(written.error()));
  // The first save syncs all names, even those of an older chat: the process that made it may have been killed before
  // it synced them.
  const bool has_name = durability == Durability::kNamedThenSynced;
  if (auto synced = has_name ? Result<void>() : SyncNamesOf(interaction.chat_id, held); !synced) {
    // It must not be found, because the caller is told that it is not saved, and saves it elsewhere.
    static_cast<void>(files_.RemoveInteraction(interaction.chat_id, interaction.id));
    held->names_durable = false;
    return Fail(std::move(synced.error()));
  }
  held->names_durable = true;
  if (link == nullptr) KeepState(interaction, *written);
  // This is what the files alone give if the process ends before chat.json is written.
  if (!held->has_index && held->numbers.empty()) held->index.summary.created_at = interaction.created_at;
  if (links.parent && links.parent_digest) held->named.insert_or_assign(links.parent->number(), *links.parent_digest);
  held->parents.insert_or_assign(number, links.parent ? links.parent->number() : 0);
  AddToIndex(held->index, interaction, written->digest);
  held->numbers.insert(number);
  list_->Touch(interaction.chat_id);
  held->next_number = std::max(held->next_number, number + 1);
  if (held->unproven && held->unproven->id == interaction.id) held->unproven.reset();  // replaced
  EndJournal(interaction.chat_id, interaction.id, *held.state);
  if (options_.access == Access::kFallback) return std::move(written->digest);
  if (held.index_lock) {
    TRY(ReplaceIndexDurably(held, held->index));
    return std::move(written->digest);
  }
  held->has_index = true;
  index_writer_.WriteLater(interaction.chat_id);
  return std::move(written->digest);
}

// The files of an earlier process may be visible and still not durable.
Result<void> FileInteractionStore::SyncStoredNames(const ChatId& chat, HeldChat& held) {
  if (held->names_durable) return {};
  auto synced = files_.SyncNames(chat);
  held->names_durable = synced.has_value();
  return synced;
}

// --- journals --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Journal>> FileInteractionStore::BeginJournal(const ChatId& chat, InteractionId id,
                                                                    const std::vector<std::string>& records) {
  TRY(CheckWritable());
  auto held = TRY(HoldChat(chat, Missing::kLeave, Hold::kState));
  // First in the list, because a journal that is missing there would never be looked for.
  TRY(running_.Begin(chat, id));
  const std::string path = JournalPath(options_.root, chat, id);
  const auto sync_names = [this, chat] { return SyncJournalNames(chat); };
  const auto create = [&]() -> Result<std::unique_ptr<FileJournal>> {
    auto cipher = TRY(JournalCipher::Create({.chat = chat, .interaction = id}, options_.keys.get()));
    if (!records.empty()) {
      return FileJournal::Replace(options_.file_system, path, std::move(cipher), records, sync_names);
    }
    auto file = TRY(options_.file_system.CreateFile(path));
    return std::make_unique<FileJournal>(std::move(file), std::move(cipher), sync_names);
  };
  auto journal = create();
  if (!journal && IsNotFound(journal.error())) {
    held->names_durable = false;
    TRY(files_.CreateDirectories(chat));
    journal = create();
  }
  if (!journal) return Fail(std::move(journal.error()));
  held->journals.insert_or_assign(id.number(), (*journal)->file());
  return *std::move(journal);
}

Result<void> FileInteractionStore::SyncJournalNames(const ChatId& chat) {
  auto held = TRY(HoldChat(chat, Missing::kLeave, Hold::kState));
  if (!SyncReachesNames(held)) TRY(SyncNamesOf(chat, held));
  held->names_durable = true;
  return running_.Sync();
}

Result<std::vector<InteractionRef>> FileInteractionStore::ListUnfinished() {
  const auto last = running_.ReadLast();
  // A line is written before its journal, and cancelled before the journal is removed. So a line without a journal may
  // be a damaged one.
  const auto has_journal = [&](const RunningList::Entry& entry) {
    const auto there = options_.file_system.ReadFile(JournalPath(options_.root, entry.first, entry.second), 0);
    return there || !IsNotFound(there.error());
  };
  if (!last || !std::ranges::all_of(*last, has_journal)) return FindJournals();
  std::vector<InteractionRef> unfinished;
  for (const auto& [chat, id] : *last) unfinished.push_back({chat, id});
  return unfinished;
}

// Without the list: the folder is of an earlier version, or its list is lost or damaged. The next list has them all.
Result<std::vector<InteractionRef>> FileInteractionStore::FindJournals() {
  const auto chats = TRY(files_.ListChats());
  std::vector<InteractionRef> found;
  std::vector<RunningList::Entry> entries;
  bool all = true;
  for (const ChatId& chat : chats) {
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
  const auto text = TRY(ReadRecordText(options_.file_system, path, {.chat = chat, .interaction = id}));
  return files_.ReadJournal({.chat = chat, .interaction = id}, text, options_.keys.get());
}

Result<void> FileInteractionStore::DropJournal(const ChatId& chat, InteractionId id) {
  // First what the journal stands for: a file that may not have been synced is written again, one that is cut off goes.
  auto held = HoldChat(chat, Missing::kLeave, Hold::kState);
  if (held && (*held)->unproven && (*held)->unproven->id == id) {
    const bool readable = (*held)->unproven->readable;
    TRY(readable ? files_.WriteAgain(chat, id) : files_.RemoveInteraction(chat, id));
    (*held)->unproven.reset();
  }
  TRY(RemoveJournal(chat, id));
  if (!held) return {};
  (*held)->journals.erase(id.number());
  const bool has_nothing = !(*held)->has_index && (*held)->numbers.empty() && (*held)->journals.empty();
  if (has_nothing) Retire(chat, *held);  // so that there is no such chat
  return {};
}

Result<void> FileInteractionStore::RemoveJournal(const ChatId& chat, InteractionId id) {
  running_.End(chat, id);
  auto removed = options_.file_system.RemoveFile(JournalPath(options_.root, chat, id));
  if (!removed && IsNotFound(removed.error())) return {};
  return removed;
}

// The checkpoint is durable, so a journal that comes back after a power loss is known to be of a saved interaction.
void FileInteractionStore::EndJournal(const ChatId& chat, InteractionId id, ChatState& state) {
  const auto journal = state.journals.extract(id.number());
  if (!journal) return;
  if (journal.mapped()) journal.mapped()->Close();
  if (auto dropped = RemoveJournal(chat, id); !dropped) {
    LogWarning("a journal could not be removed", {{"chat", chat.str()}, {"detail", dropped.error().detail}});
  }
}

Result<RecordLinks> FileInteractionStore::LinksFor(const Interaction& interaction, const HeldChat& held) {
  const auto& parent = interaction.parent_id;
  const bool is_elsewhere = parent && !held->numbers.contains(parent->number());
  if (is_elsewhere && options_.access != Access::kFallback) return NoSuchParent();
  return LinksTo(parent, held->index, [&](InteractionId id) -> Result<std::optional<std::string>> {
    if (is_elsewhere) return std::nullopt;
    return TRY(files_.ReadDigest(interaction.chat_id, id));
  });
}

Result<void> FileInteractionStore::WriteIndexLocked(ChatState& state, const ChatIndex& index, Durability durability) {
  if (state.index_unreadable) {
    TRY(files_.SetIndexAside(index.summary.id));
    state.index_unreadable = false;
  }
  return files_.WriteIndex(index, durability);
}

Result<ChatSummary> FileInteractionStore::ReplaceIndexDurably(HeldChat& held, ChatIndex index) {
  const ChatId& chat = index.summary.id;
  // The names of the interactions become durable before the index that relies on them.
  TRY(SyncStoredNames(chat, held));
  TRY(WriteIndexLocked(*held.state, index).and_then([&] { return files_.SyncChatDirectory(chat); }));
  held->has_index = true;
  held->index_on_disk = true;
  held->index_durable = true;
  held->index = std::move(index);
  list_->Touch(held->index.summary.id);
  return held->index.summary;
}

void FileInteractionStore::WriteIndex(const ChatId& chat, IndexNeed need) {
  const auto state = FindState(chat);
  if (!state) return;
  const MutexLock index_lock(state->index_mutex);
  if (need == IndexNeed::kDurable && state->index_durable) return;  // the index writer was faster
  MutexLock lock(state->mutex);
  if (state->retired) return;
  const ChatIndex index = state->index;
  const bool must_last = state->index_must_last && !state->index_durable;
  lock.unlock();
  // Without the chat's own lock, so that the next save need not wait; its index comes after this one. The first index
  // replaces nothing and can be rebuilt from the interaction after a power loss, so it is not synced until a second
  // interaction comes.
  const bool sync = state->index_on_disk || must_last;
  auto written = WriteIndexLocked(*state, index, sync ? Durability::kSynced : Durability::kUnsynced);
  if (written) state->index_on_disk = true;
  if (written && must_last) written = files_.SyncChatDirectory(chat);
  if (written && must_last) state->index_durable = true;
  if (!written) {
    LogWarning("a chat's index could not be written; the next save tries again",
               {{"chat", chat.str()}, {"reason", written.error().reason}, {"detail", written.error().detail}});
  }
}

Result<ChatSummary> FileInteractionStore::ChangeIndex(const ChatId& chat, bool, const IndexChange& change) {
  auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kStateAndIndex));
  ChatIndex index = held->index;
  TRY(change(index));
  return ReplaceIndexDurably(held, std::move(index));
}

Result<void> FileInteractionStore::MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) {
  auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kStateAndIndex));
  auto moved = files_.MoveToTrash(chat, interactions);
  DropStates(chat);
  Retire(chat, held);  // even if only some were moved, so that the next call reads the disk
  return moved;
}

Result<void> FileInteractionStore::DeleteChat(const ChatId& chat) {
  TRY(CheckWritable());
  // A chat with a damaged index can be deleted as well. The locks keep writers out.
  auto held = HoldChat(chat, Missing::kFail, Hold::kStateAndIndex);
  if (!held && held.error().code != ErrorCode::kCorruption) return Fail(std::move(held.error()));
  if (held && !(*held)->numbers.empty()) {
    // The one on disk may be behind. It shows in the trash what this chat was; without it the interactions do.
    static_cast<void>(WriteIndexLocked(*held->state, (*held)->index, Durability::kUnsynced));
  }
  auto moved = files_.MoveToTrash(chat);
  queues_.Forget(chat);
  DropStates(chat);
  if (held) Retire(chat, *held);  // even if only the sync failed, so that the disk is read again
  if (!moved && IsNotFound(moved.error())) return NoSuchChat();
  return moved;
}

Result<void> FileInteractionStore::CreateFallbackRoot() {
  // Checked before, too: nothing must be made behind a link that another user has put there.
  TRY(CheckPrivateDirectory(options_.root));
  TRY(CreateDirectories(options_.file_system, options_.root));
  return CheckPrivateDirectory(options_.root);
}

}  // namespace reprise
