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
constexpr std::size_t kEntryBytes = 512;  // the cost of keeping a state, besides its size

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
      queues_([this](const ChatId& chat) { return files_.ReadQueue(chat); },
              [this](const ChatId& chat, const auto& messages) { return files_.WriteQueue(chat, messages); }),
      long_states_(kLongStatesBytes),
      short_states_(kShortStatesBytes),
      running_(options_.file_system, RunningFile(options_.root)),
      list_({.list = [this] { return files_.ListChats(); },
             .load = [this](const ChatId& chat) { return LoadListed(chat); },
             .watch = [this] { return options_.file_system.Watch(options_.root); }}),
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
  list_.Touch(chat);  // another program may have changed it since it was listed
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
  list_.Touch(chat);
  const MutexLock lock(chats_mutex_);
  const auto found = chats_.find(chat);
  if (found != chats_.end() && found->second == held.state) chats_.erase(found);
}

Result<void> FileInteractionStore::CheckWritable() const {
  if (options_.access != Access::kReadOnly) return {};
  return Fail(ErrorCode::kForbidden, "the data folder was opened for reading");
}

// --- writing ---------------------------------------------------------------------------------------------------------

Result<ChatSummary> FileInteractionStore::CreateChat(const ChatId& chat, const ChatSettings& settings) {
  TRY(CheckWritable());
  auto held = TRY(HoldChat(chat, Missing::kLeave, Hold::kStateAndIndex));
  if (!held.created) return ChatExists();
  ChatIndex index = held->index;
  Apply(settings, index.summary);
  auto made =
      files_.CreateDirectories(chat).and_then([&](bool) { return ReplaceIndexDurably(held, std::move(index)); });
  if (!made) Retire(chat, held);
  return made;
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
  list_.Touch(interaction.chat_id);
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

// --- long states -----------------------------------------------------------------------------------------------------

Result<StoredInteraction> FileInteractionStore::ReadWhole(const ChatId& chat, InteractionId id, Version version) {
  auto stored = version == Version::kExpected ? ReadExpected(chat, id) : files_.ReadInteraction(chat, id);
  if (!stored || !stored->state_link) return stored;
  const StateTotals totals = stored->state_link->totals;
  std::vector<Messages> parts;  // newest first; each was added to the next
  auto known = long_states_.Find(stored->digest);
  const bool is_kept = known.has_value();
  AgentState& state = *stored->interaction.final_agent_state;
  std::optional<StateLink> link = stored->state_link;
  RecordLinks links = stored->links;
  InteractionId child = id;
  // When a chat is read in order, the state before this one is kept already.
  auto before = known || !links.parent_digest ? std::nullopt : long_states_.Find(*links.parent_digest);
  if (!known && !before) known = ShortenedTo(chat, totals);
  if (!known) parts.push_back(std::move(state.messages));
  if (before) known = std::move(before);
  while (link && !known) {
    const auto unusable = [&](std::string_view kind, std::string_view what) {
      return Fail(IntegrityError(kind, {.chat = chat, .interaction = child}, what));
    };
    // Parents are older, so this ends.
    if (!links.parent || *links.parent >= child) return unusable("auth", "its state continues that of no interaction");
    child = *links.parent;
    auto parent = files_.ReadInteraction(chat, child);
    if (!parent && IsNotFound(parent.error())) return Fail(MissingFile(chat, child));
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
  state.messages = known ? known->state->messages : Messages();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) state.messages.Append(*part, 0, part->size());
  if (state.messages.size() != totals.messages) {
    return Fail(IntegrityError("auth", {.chat = chat, .interaction = id}, "its state is not whole"));
  }
  if (!is_kept) KeepLong(chat, stored->digest, state, totals);
  stored->state_link.reset();
  return stored;
}

// An earlier state of a branch is usually the beginning of a later one that is kept.
std::optional<KnownState> FileInteractionStore::ShortenedTo(const ChatId& chat, const StateTotals& totals) const {
  for (const KnownState& later : long_states_.FindAll(chat.str())) {
    if (!BeginsWith(*later.state, totals)) continue;
    auto beginning = std::make_shared<AgentState>();
    beginning->messages = later.state->messages;
    beginning->messages.Truncate(totals.messages);
    return KnownState{.totals = totals, .state = std::move(beginning)};
  }
  return std::nullopt;
}

std::optional<KnownState> FileInteractionStore::ParentState(const ChatId& chat, const RecordLinks& links) {
  auto known = links.parent_digest ? long_states_.Find(*links.parent_digest) : std::nullopt;
  return known ? known : files_.ReadParentState(chat, links);
}

void FileInteractionStore::KeepState(const Interaction& interaction, const WrittenInteraction& written) {
  if (options_.access != Access::kServer || !interaction.final_agent_state) return;
  const AgentState& state = *interaction.final_agent_state;
  if (written.state_link) return KeepLong(interaction.chat_id, written.digest, state, written.state_link->totals);
  if (!written.verbatim || written.bytes > 2 * kFullStateBytes) return;
  short_states_.Put(
      interaction.chat_id.str(),
      {.interaction = interaction.id, .digest = written.digest, .file_hash = written.file_hash, .state = state},
      kEntryBytes + MemoryOf(state));
}

// The last used states of a chat are kept: for the next turn, for an edit of the last one, and for branches that are
// read side by side. They share their messages.
void FileInteractionStore::KeepLong(const ChatId& chat, const std::string& digest, const AgentState& state,
                                    StateTotals totals) {
  auto copy = std::make_shared<const AgentState>(state);
  const std::size_t bytes = kEntryBytes + totals.bytes + totals.messages * sizeof(Message);
  long_states_.Put(digest, {.totals = std::move(totals), .state = std::move(copy)}, bytes, chat.str());
}

std::size_t FileInteractionStore::kept_bytes() const { return long_states_.bytes() + short_states_.bytes(); }

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
  list_.Touch(held->index.summary.id);
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

Result<ChatSummary> FileInteractionStore::ChangeChat(const ChatId& chat, const ChatSettings& settings) {
  TRY(CheckWritable());
  auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kStateAndIndex));
  ChatIndex index = held->index;
  ApplySettings(index, settings);
  return ReplaceIndexDurably(held, std::move(index));
}

Result<ChatSummary> FileInteractionStore::MoveHead(const ChatId& chat, InteractionId head) {
  TRY(CheckWritable());
  // A chat must not end at an unreadable interaction. (Numbered files never change, so this needs no lock.)
  const auto interaction = TRY(LoadInteraction(chat, head));
  auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kStateAndIndex));
  if (!held->numbers.contains(head.number())) return NoSuchInteraction();
  ChatIndex index = held->index;
  SetHead(index, interaction);
  return ReplaceIndexDurably(held, std::move(index));
}

Result<std::vector<InteractionId>> FileInteractionStore::RemoveBranch(const ChatId& chat, InteractionId from) {
  TRY(CheckWritable());
  const Chat whole = TRY(LoadChat(chat));
  const RemovedBranch removed = TRY(BranchToRemove(whole, from));
  auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kStateAndIndex));
  ChatIndex index = held->index;
  TRY(files_.RemoveLeaves(removed, index));
  // First the index stops naming them. If the process ends here, they are still superseded and can be removed again.
  TRY(ReplaceIndexDurably(held, std::move(index)));
  TRY(files_.MoveToTrash(chat, removed.interactions));
  short_states_.Take(chat.str());
  long_states_.Drop(chat.str());
  Retire(chat, held);  // the next call reads the disk
  return removed.interactions;
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
  short_states_.Take(chat.str());
  long_states_.Drop(chat.str());
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

// --- reading ---------------------------------------------------------------------------------------------------------

Result<FileInteractionStore::Snapshot> FileInteractionStore::TakeSnapshot(const ChatId& chat) {
  const auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kState));
  return Snapshot{.index = held->index, .numbers = held->numbers, .left = LeftOf(*held.state)};
}

template <typename Read, typename IsWhole>
auto FileInteractionStore::InOneLife(const ChatId& chat, Read read, IsWhole is_whole) -> decltype(read()) {
  for (;;) {
    const auto before = FindState(chat);
    auto result = read();
    if (is_whole(result) || options_.access == Access::kReadOnly) return result;
    // A deletion holds the chat's lock, so this waits for its end. If no state was known before, the chat may have been
    // another one as well.
    const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
    const bool gone = !held && IsNotFound(held.error()) && options_.access == Access::kServer;
    if (gone && (result || !IsNotFound(result.error()))) return NoSuchChat();
    if (!held || held->state == before) return result;
  }
}

template <typename Read>
auto FileInteractionStore::InOneLife(const ChatId& chat, Read read) -> decltype(read()) {
  return InOneLife(chat, read, [](const auto& result) { return result.has_value(); });
}

// Whether the index or a stored interaction says that this one exists.
bool FileInteractionStore::IsExpected(const ChatId& chat, InteractionId id) {
  const auto snapshot = TakeSnapshot(chat);
  if (!snapshot) return false;
  const auto& [index, numbers, left] = *snapshot;
  const bool known = numbers.contains(id.number()) || index.leaves.contains(id.number()) || index.summary.head == id;
  return known || std::any_of(numbers.upper_bound(id.number()), numbers.end(), [&](std::uint32_t number) {
           const auto links = files_.ReadLinks(chat, InteractionId::FromNumber(number));
           return links && links->parent == id;
         });
}

std::optional<std::string> FileInteractionStore::ExpectedDigest(const ChatId& chat, InteractionId id) {
  const std::uint32_t number = id.number();
  // A read-only store remembers nothing and would search the chat each time, so it knows only what the index says.
  if (options_.access == Access::kReadOnly) {
    bool cut_off = false;
    const auto index = files_.ReadIndex(chat, cut_off);
    if (!index || !*index) return std::nullopt;
    const auto leaf = (*index)->leaves.find(number);
    return leaf == (*index)->leaves.end() ? std::nullopt : std::optional(leaf->second);
  }
  std::map<std::uint32_t, std::string> leaves, named;
  std::set<std::uint32_t> numbers;
  std::uint32_t named_from = 0;
  std::shared_ptr<ChatState> asked;
  {
    const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
    if (!held) return std::nullopt;  // interactions can be read even if the index cannot
    const ChatState& state = *held->state;
    if (const auto leaf = state.index.leaves.find(number); leaf != state.index.leaves.end()) return leaf->second;
    if (const auto known = state.named.find(number); known != state.named.end()) return known->second;
    if (number + 1 >= state.named_from || options_.access == Access::kFallback) return std::nullopt;
    leaves = state.index.leaves;
    named = state.named;
    numbers = state.numbers;
    named_from = state.named_from;
    asked = held->state;
  }
  // From the newest down, so that the digest of nearly every file is known before it is read: such a file is believed
  // without decryption, and a replaced file is not believed about its own parent.
  const auto newest = numbers.lower_bound(named_from);
  for (auto one = std::make_reverse_iterator(newest); one != numbers.rend() && *one > number; ++one) {
    const InteractionId later = InteractionId::FromNumber(*one);
    const auto leaf = leaves.find(*one);
    const auto successor = named.find(*one);
    const auto links = leaf != leaves.end()       ? files_.ReadLinks(chat, later, leaf->second)
                       : successor != named.end() ? files_.ReadLinks(chat, later, successor->second)
                                                  : files_.ReadLinks(chat, later);
    if (links && links->parent && links->parent_digest)
      named.try_emplace(links->parent->number(), *links->parent_digest);
  }
  const auto found = named.find(number);
  const auto digest = found == named.end() ? std::nullopt : std::optional(found->second);
  const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
  if (held && held->state == asked && (*held)->named_from > number + 1) {
    (*held)->named.merge(named);
    (*held)->named_from = number + 1;
  }
  return digest;
}

Result<void> FileInteractionStore::CheckVersion(const ChatId& chat, InteractionId id, const std::string& digest) {
  if (!files_.authenticated()) return {};
  const auto expected = ExpectedDigest(chat, id);
  if (!expected || *expected == digest) return {};
  return Fail(
      IntegrityError("rollback", {.chat = chat, .interaction = id}, "it is not the version that was stored last"));
}

Result<std::optional<AgentState>> FileInteractionStore::LoadFinalState(const ChatId& chat, InteractionId id) {
  // Taken out, because the turn that asks for it will save the next one.
  if (auto kept = short_states_.Take(chat.str()); kept && kept->interaction == id) {
    if (files_.IsAsWritten(chat, id, kept->digest, kept->file_hash)) return std::move(kept->state);
  }
  return LoadInteraction(chat, id).map(
      [](Interaction interaction) { return std::move(interaction.final_agent_state); });
}

Result<Interaction> FileInteractionStore::LoadInteraction(const ChatId& chat, InteractionId id) {
  return ReadOne(chat, id, [&] {
    return ReadWhole(chat, id, Version::kExpected).map([](StoredInteraction stored) {
      return std::move(stored.interaction);
    });
  });
}

Result<AddedInteraction> FileInteractionStore::LoadAdded(const ChatId& chat, InteractionId id) {
  return ReadOne(chat, id, [&] {
    return ReadExpected(chat, id).map([&](StoredInteraction stored) { return Added(chat, std::move(stored)); });
  });
}

template <typename Read>
auto FileInteractionStore::ReadOne(const ChatId& chat, InteractionId id, Read read) -> decltype(read()) {
  return InOneLife(chat, [&]() -> decltype(read()) {
    auto stored = read();
    if (stored || !IsNotFound(stored.error())) return stored;
    return Fail(WhyNotThere(chat, id));
  });
}

Result<StoredInteraction> FileInteractionStore::ReadExpected(const ChatId& chat, InteractionId id) {
  auto stored = TRY(files_.ReadInteraction(chat, id));
  TRY(CheckVersion(chat, id, stored.digest));
  return stored;
}

// The record of a long state names its additions. A state in a single file is compared with its parent's.
AddedInteraction FileInteractionStore::Added(const ChatId& chat, StoredInteraction stored) {
  Interaction& interaction = stored.interaction;
  if (stored.state_link) return {std::move(interaction), stored.state_link->kept};
  if (!interaction.parent_id || !interaction.final_agent_state) return {std::move(interaction)};
  const auto parent = ReadWhole(chat, *interaction.parent_id, Version::kAny);
  const bool is_known = parent && parent->interaction.final_agent_state &&
                        (!stored.links.parent_digest || *stored.links.parent_digest == parent->digest);
  if (!is_known) return {std::move(interaction)};
  return AddedTo(*parent->interaction.final_agent_state, std::move(interaction));
}

Result<ChatSummary> FileInteractionStore::LoadSummary(const ChatId& chat) {
  const auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kState));
  return held->index.summary;
}

Result<std::optional<AgentState>> FileInteractionStore::LoadPreviousState(const ChatId& chat, InteractionId id) {
  return InOneLife(chat, [&] { return ReadPreviousState(chat, id); });
}

Result<std::optional<AgentState>> FileInteractionStore::ReadPreviousState(const ChatId& chat, InteractionId id) {
  const auto links = files_.ReadLinks(chat, id);
  if (!links && IsNotFound(links.error())) return Fail(WhyNotThere(chat, id));
  if (!links) return Fail(links.error());
  if (!links->parent) return std::optional<AgentState>();
  auto parent = ReadWhole(chat, *links->parent, Version::kAny);
  if (!parent && IsNotFound(parent.error())) return Fail(MissingFile(chat, *links->parent));
  if (!parent) return Fail(std::move(parent.error()));
  if (links->parent_digest && *links->parent_digest != parent->digest) {
    // Unless this one was replaced and names another history.
    const auto own = files_.ReadDigest(chat, id);
    TRY(own ? CheckVersion(chat, id, *own) : Result<void>());
    return Fail(IntegrityError("rollback", {.chat = chat, .interaction = *links->parent},
                               "it is not the version that the next interaction was built on"));
  }
  return std::move(parent->interaction.final_agent_state);
}

Result<Chat> FileInteractionStore::LoadChat(const ChatId& chat) {
  return InOneLife(
      chat, [&] { return ReadAll(chat); }, [](const Result<Chat>& read) { return read && read->damaged.empty(); });
}

Result<Chat> FileInteractionStore::ReadAll(const ChatId& chat) {
  const auto snapshot = TRY(TakeSnapshot(chat));
  const auto& [index, numbers, left] = snapshot;
  // Without a lock: a stored interaction does not change, and a long history must not hold up a save.
  Chat result{.summary = index.summary, .interactions = {}, .damaged = DamagedRuns(chat, left)};
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
    } else if (IsNotFound(read.error())) {
      result.damaged.push_back({.id = id, .error = MissingFile(chat, id), .parent_id = {}});
    } else {
      return Fail(std::move(read.error()));
    }
    TRY(CountStep(options_.reads));
  }
  CheckHistory(index, stored, result);
  for (StoredInteraction& one : stored) {
    const bool damaged = std::ranges::any_of(
        result.damaged, [&](const DamagedInteraction& other) { return other.id == one.interaction.id; });
    if (!damaged) result.interactions.push_back(std::move(one.interaction));
  }
  return result;
}

// Checks the stored interactions against the index and against each other. A digest that differs means that another
// authentic version of the file was put back.
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
  // From the newest down, so that a replaced file is not believed about its own parent. In a fallback folder the
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
  std::ranges::sort(chat.damaged, {}, &DamagedInteraction::id);
}

}  // namespace reprise
