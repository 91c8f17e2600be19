#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/queues.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/interaction_store.h"
#include "store/chat_files.h"
#include "store/chat_index.h"
#include "store/data_folder.h"
#include "store/file_journal.h"
#include "store/object_store.h"
#include "store/running_list.h"
#include "store/save_preparer.h"
#include "store/state_cache.h"
#include "store/whole_queues.h"

namespace reprise {

// Keeps each interaction as one file of a data folder (schemas/FILES.md), sealed when there are keys. Thread-safe;
// calls for different chats do not wait for each other.
//
// The interaction's file is the commit: SaveInteraction returns when it is durable, and chat.json follows a moment
// later, many saves in one write. What chat.json does not know yet is found in the files when a chat is first used by a
// process.
class FileInteractionStore final : public InteractionStore, public HistorySource {
 public:
  enum class Access {
    kServer,    // owns the folder: creates it, locks it, keeps what it has read of chat.json in memory
    kReadOnly,  // reads what is there, also while a server works; everything that writes is kForbidden
    kFallback,  // takes interactions that `kServer` could not save: the folder is created by the first one, which needs
                // no parent here; there is no chat.json
  };
  struct Options {
    std::string root;
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileSystem& file_system;             // must outlive the store
    Access access = Access::kServer;
    bool lock = true;   // kServer; false: the caller makes sure that nobody else uses the folder
    bool syncs = true;  // kServer; false: the caller does, when all is written (FileSystem::SyncTree)
    std::chrono::milliseconds index_delay{1000};  // how long chat.json may stay behind
    // Counts each interaction that LoadChat has read (null: nobody watches), which is kCancelled if it is told to stop.
    WorkCounter* reads = nullptr;
    // Where the files of chats are that are copied or brought in (null: in the folder). Must outlive the store.
    const FileBucket* bucket = nullptr;
  };

  // kConflict (reason "store_locked") if another server uses the folder, kNotFound if it is not there (kReadOnly),
  // kForbidden (reason "folder_not_private") if another user could change it (kFallback, at the first save).
  static Result<std::unique_ptr<FileInteractionStore>> Open(Options options);
  ~FileInteractionStore() override;                            // writes what chat.json files still lack
  FileInteractionStore(const FileInteractionStore&) = delete;  // its thread refers to it
  FileInteractionStore& operator=(const FileInteractionStore&) = delete;

  Result<ChatSummary> CreateChat(const ChatId& chat, const std::string& title) override;
  Result<InteractionId> ReserveInteraction(const ChatId& chat) override;
  Result<void> SaveInteraction(const Interaction& interaction) override;
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId& chat, InteractionId id,
                                                const std::vector<std::string>& records) override;
  Result<std::vector<InteractionRef>> ListUnfinished() override;
  Result<JournalContent> ReadJournal(const ChatId& chat, InteractionId id) override;
  Result<void> DropJournal(const ChatId& chat, InteractionId id) override;
  Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& chat) override;
  Result<void> AddQueued(const ChatId& chat, const QueuedMessage& message) override;
  Result<void> ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) override;
  Result<void> RemoveQueued(const ChatId& chat, std::string_view id) override;
  Result<void> FailQueued(const ChatId& chat, std::string_view id, const Error& failure) override;
  Result<void> TakeQueued(const ChatId& chat, std::string_view id) override;
  Result<void> ClearQueue(const ChatId& chat) override;
  Result<std::vector<ChatId>> ListQueues() override;
  Result<Interaction> LoadInteraction(const ChatId& chat, InteractionId id) override;
  Result<AddedInteraction> LoadAdded(const ChatId& chat, InteractionId id) override;
  Result<Chat> LoadChat(const ChatId& chat) override;
  HistorySource* histories() override { return this; }
  Result<ChatOutline> LoadOutline(const ChatId& chat, const HistoryRange& range,
                                  const std::optional<RunningInteraction>& running) override;
  Result<InteractionJson> LoadJson(const ChatOutline& outline, const ChatOutline::Entry& entry, State state) override;
  Result<ChatSummary> LoadSummary(const ChatId& chat) override;
  Result<std::optional<AgentState>> LoadFinalState(const ChatId& chat, InteractionId id) override;
  Result<std::optional<AgentState>> LoadPreviousState(const ChatId& chat, InteractionId id) override;
  Result<std::vector<ChatSummary>> ListChats() override;
  Result<std::vector<UnreadableChat>> ListUnreadableChats() override;
  Result<ChatSummary> ChangeChat(const ChatId& chat, const ChatSettings& settings) override;
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId head) override;
  Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                               const std::optional<std::string>& title) override;
  Result<ChatSummary> ImportChat(const IncomingChat& chat) override;
  Result<void> DeleteChat(const ChatId& chat) override;
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from) override;
  Result<std::vector<TrashEntry>> ListTrash() override;
  Result<ChatSummary> RestoreChat(const ChatId& chat, const std::string& entry) override;

  // Writes into the folder's lock file where the server listens (DirectoryLock::NoteUrl).
  void NoteUrl(std::string_view url);

  // CopyUpTo with its interactions, each the very version that the next was built on, and all files that can be read.
  // `from` is this store, or one that reads by it.
  Result<IncomingChat> CopyOfBranch(InteractionStore& from, const ChatId& source, InteractionId last,
                                    const ChatId& chat, const std::optional<std::string>& title);

  // How much memory the states take that are kept for the next turns.
  std::size_t kept_bytes() const;

 private:
  // What is known of one chat. Lock order: index_mutex, mutex, then the store's chats_mutex_.
  struct ChatState {
    explicit ChatState(const ChatId& chat) : index(NewIndex(chat)) {}

    Mutex index_mutex;                        // held by whoever writes chat.json
    bool index_unreadable = false;            // guarded by index_mutex
    std::atomic<bool> index_on_disk = false;  // set under index_mutex; there is a chat.json, of whatever age
    std::atomic<bool> index_durable = false;  // set under index_mutex; and a power loss leaves one

    Mutex mutex;                 // held for a whole save: calls that concern one chat take turns
    bool loaded = false;         // this and what follows is guarded by mutex
    bool retired = false;        // no longer the state of its chat: look it up again
    bool names_durable = false;  // this process has synced the chat's directories
    bool directories_made = false;
    bool has_index = false;        // there is a chat.json, or the first one will be written
    bool index_must_last = false;  // before the next checkpoint is there
    SavePreparation preparation;   // of the interaction reserved last
    std::uint32_t prepared_number = 0;
    ChatIndex index;
    std::set<std::uint32_t> numbers;  // stored interactions
    // Of interactions that run; null: that did when a process ended.
    std::map<std::uint32_t, std::shared_ptr<JournalFile>> journals;
    std::uint32_t next_number = 1;
    // The digests that interactions from `named_from` on say their parents' records have.
    std::map<std::uint32_t, std::string> named;
    std::uint32_t named_from = InteractionId::kMaxNumber + 1;
    // Whom interactions say they continue, as far as somebody has asked; 0: nobody. The digests that they name are in
    // `named`.
    std::map<std::uint32_t, std::uint32_t> parents;
  };
  // The final state of an interaction whose file had this digest.
  struct KeptState {
    InteractionId interaction;
    std::string file_digest;
    AgentState state;
  };
  enum class Missing { kFail, kLeave, kCreate };  // kCreate: with its directories
  enum class Hold { kState, kStateAndIndex };
  // A chat's state with its locks.
  struct HeldChat {
    std::shared_ptr<ChatState> state;
    std::unique_lock<Mutex> index_lock;  // empty for Hold::kState
    std::unique_lock<Mutex> lock;
    bool created = false;  // nothing was stored of this chat
    ChatState* operator->() const { return state.get(); }
  };

  explicit FileInteractionStore(Options options, std::unique_ptr<DirectoryLock> lock);

  Result<void> CheckWritable() const;
  Result<void> CreateFallbackRoot();
  Result<HeldChat> HoldChat(const ChatId& chat, Missing missing, Hold hold);
  std::shared_ptr<ChatState> StateOf(const ChatId& chat);
  std::shared_ptr<ChatState> FindState(const ChatId& chat);
  Result<bool> Load(const ChatId& chat, Missing missing, HeldChat& held);
  Result<void> CheckKeyOf(const ChatId& chat, const ChatOnDisk& on_disk) const;
  void NoticeJournals(const ChatId& chat, const ChatState& state);
  Result<bool> MakeDirectories(const ChatId& chat, HeldChat& held);
  void Retire(const ChatId& chat, const HeldChat& held);

  Result<void> SaveHeld(const Interaction& interaction, HeldChat& held);
  Result<AtomicFile> FileFor(const Interaction& interaction, HeldChat& held);
  // Makes a written interaction's name durable, and with it what it lies in.
  Result<void> SyncNamesOf(const ChatId& chat, HeldChat& held);
  // The same for a journal's, and makes it be found at the next start.
  Result<void> SyncJournalNames(const ChatId& chat);
  Result<std::vector<InteractionRef>> FindJournals();
  void EndJournal(const ChatId& chat, InteractionId id, ChatState& state);
  Result<void> SyncStoredNames(const ChatId& chat, HeldChat& held);
  Result<RecordLinks> LinksFor(const Interaction& interaction, const HeldChat& held);
  // `index` becomes what the chat's index is, on disk and here, durable before this returns; or nothing has changed.
  Result<ChatSummary> ReplaceIndexDurably(HeldChat& held, ChatIndex index);
  Result<void> WriteIndexLocked(ChatState& state, const ChatIndex& index, Durability durability = Durability::kSynced);
  enum class IndexNeed { kCurrent, kDurable };  // kDurable: of whatever age
  void WriteIndex(const ChatId& chat, IndexNeed need);
  struct Snapshot {
    ChatIndex index;
    std::set<std::uint32_t> numbers;
  };
  Result<Snapshot> TakeSnapshot(const ChatId& chat);
  // What `read` finds, unless the chat was deleted meanwhile: then what it finds of the chat that has the name now.
  // `is_whole` says whether a result cannot have come of that.
  template <typename Read, typename IsWhole>
  auto InOneLife(const ChatId& chat, Read read, IsWhole is_whole) -> decltype(read());
  template <typename Read>
  auto InOneLife(const ChatId& chat, Read read) -> decltype(read());
  bool IsExpected(const ChatId& chat, InteractionId id);
  // The digest that the index, or the next interaction, says this one's record has. nullopt: nobody says so.
  std::optional<std::string> ExpectedDigest(const ChatId& chat, InteractionId id);
  // kCorruption if its record is another one that was stored there before.
  Result<void> CheckVersion(const ChatId& chat, InteractionId id, const std::string& digest);
  template <typename Read>
  auto ReadOne(const ChatId& chat, InteractionId id, Read read) -> decltype(read());
  Result<StoredInteraction> ReadExpected(const ChatId& chat, InteractionId id);
  AddedInteraction Added(const ChatId& chat, StoredInteraction stored);
  Result<std::optional<AgentState>> ReadPreviousState(const ChatId& chat, InteractionId id);
  Result<Chat> ReadAll(const ChatId& chat);
  // chat_history.cc
  struct Tree;
  std::optional<InteractionId> ParentOf(const ChatId& chat, InteractionId id, Tree& tree) const;
  static void Remember(const Tree& tree);
  void AddExpected(const ChatId& chat, std::set<std::uint32_t>& numbers, Tree& tree) const;
  void OutlineBranch(const HistoryRange& range, std::optional<InteractionId> leaf, Tree& tree,
                     ChatOutline& outline) const;
  void OutlineAll(const std::set<std::uint32_t>& numbers, std::optional<InteractionId> leaf, Tree& tree,
                  ChatOutline& outline) const;
  Result<InteractionJson> ReadJson(const ChatId& chat, const ChatOutline::Entry& entry, State state);
  Result<ChatSummary> AddWhole(const IncomingChat& chat);
  Result<std::vector<InteractionId>> BranchUpTo(const ChatId& chat, InteractionId last);
  void CheckHistory(const ChatIndex& index, const std::vector<StoredInteraction>& stored, Chat& chat) const;

  const Options options_;
  const std::unique_ptr<DirectoryLock> lock_;
  // An interaction with its whole state. kAny: whatever version of it is there.
  enum class Version { kExpected, kAny };
  Result<StoredInteraction> ReadWhole(const ChatId& chat, InteractionId id, Version version);
  std::optional<KnownState> ShortenedTo(const ChatId& chat, const StateTotals& totals) const;
  std::optional<KnownState> ParentState(const ChatId& chat, const RecordLinks& links);
  void KeepState(const Interaction& interaction, const WrittenInteraction& written);
  void KeepLong(const ChatId& chat, const std::string& digest, const AgentState& state, StateTotals totals);

  const ChatFiles files_;
  WholeQueues queues_;                  // synchronises itself
  StateCache<KnownState> long_states_;  // synchronises itself
  StateCache<KeptState> short_states_;  // synchronises itself; the last one saved in each chat
  RunningList running_;                 // synchronises itself
  Mutex fork_mutex_;                    // whole chats come in one by one; taken before a chat's locks
  Mutex chats_mutex_;
  std::unordered_map<ChatId, std::shared_ptr<ChatState>> chats_ GUARDED_BY(chats_mutex_);
  SavePreparer save_preparer_;  // after what its thread uses
  IndexWriter index_writer_;    // last: its thread uses all of the above
};

}  // namespace reprise
