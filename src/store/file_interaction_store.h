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
#include "store/data_folder.h"
#include "store/file_journal.h"
#include "store/linked_state.h"
#include "store/object_store.h"
#include "store/running_list.h"
#include "store/save_preparer.h"
#include "store/store_core.h"
#include "store/whole_queues.h"

namespace reprise {

// Keeps each interaction as one file of a data folder (schemas/FILES.md), sealed when there are keys. Thread-safe;
// calls for different chats do not wait for each other.
//
// The interaction's file is the commit: SaveInteraction returns when it is durable, and chat.json follows a moment
// later, many saves in one write. When a process first uses a chat, it finds in the files what chat.json lacks.
class FileInteractionStore : public StoreCore, public HistorySource {
 public:
  enum class Access {
    kServer,    // owns the folder: creates it, locks it, keeps the content of chat.json in memory
    kReadOnly,  // reads the folder, even while a server uses it; every write is kForbidden
    kFallback,  // takes interactions that `kServer` could not save; the first one creates the folder, none needs its
                // parent here, and there is no chat.json
  };
  struct Options {
    std::string root;
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileSystem& file_system;             // must outlive the store
    Access access = Access::kServer;
    bool lock = true;   // kServer; false: the caller makes sure that nothing else uses the folder
    bool syncs = true;  // kServer; false: the caller syncs when all is written (FileSystem::SyncTree)
    std::chrono::milliseconds index_delay{1000};  // how long chat.json may stay behind
    // Counts each interaction that LoadChat reads, and may stop it (kCancelled). Null: no counter.
    WorkCounter* reads = nullptr;
    // For the files of chats that are copied or imported (null: they are in the folder). Must outlive the store.
    const FileBucket* bucket = nullptr;
  };

  // kConflict (reason "store_locked") if another server uses the folder, kNotFound if it is missing (kReadOnly). If
  // another user could change a fallback folder, its saves are kForbidden (reason "folder_not_private").
  static Result<std::unique_ptr<FileInteractionStore>> Open(Options options);
  ~FileInteractionStore() override;                            // writes what chat.json files still lack
  FileInteractionStore(const FileInteractionStore&) = delete;  // its thread refers to it
  FileInteractionStore& operator=(const FileInteractionStore&) = delete;

  Result<InteractionId> ReserveInteraction(const ChatId& chat) override;
  Result<void> SaveInteraction(const Interaction& interaction) override;
  // The same, and returns the digest of the record. With a link, the state has only the messages that it adds to its
  // parent's.
  Result<std::string> SaveAdded(const Interaction& added, const std::optional<StateLink>& link);
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId& chat, InteractionId id,
                                                const std::vector<std::string>& records) override;
  Result<std::vector<InteractionRef>> ListUnfinished() override;
  Result<JournalContent> ReadJournal(const ChatId& chat, InteractionId id) override;
  Result<void> DropJournal(const ChatId& chat, InteractionId id) override;
  QueueStore& queues() override { return queues_; }
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
  Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                               const std::optional<std::string>& title) override;
  Result<void> DeleteChat(const ChatId& chat) override;
  Result<std::vector<TrashEntry>> ListTrash() override;
  Result<ChatSummary> RestoreChat(const ChatId& chat, const std::string& entry) override;

  // Writes the server's URL into the folder's lock file (DirectoryLock::NoteUrl).
  void NoteUrl(std::string_view url);

  // The memory that the states kept for the next turns take.
  std::size_t kept_bytes() const;

 protected:
  // For a store that is one but for its writes: it opens this one as kReadOnly.
  explicit FileInteractionStore(Options options, std::unique_ptr<DirectoryLock> lock = nullptr);
  const ChatFiles& records() const { return files_; }

 private:
  // One chat in memory. Lock order: index_mutex, mutex, then the store's chats_mutex_.
  struct ChatState {
    explicit ChatState(const ChatId& chat) : index(NewIndex(chat)) {}

    Mutex index_mutex;                        // held while chat.json is written
    bool index_unreadable = false;            // guarded by index_mutex
    std::atomic<bool> index_on_disk = false;  // set under index_mutex (or by Load): there is a chat.json, of any age
    std::atomic<bool> index_durable = false;  // set under index_mutex (or by Load): and it survives a power loss

    Mutex mutex;                 // held for a whole save, so calls for one chat take turns
    bool loaded = false;         // guarded by mutex, like all members below
    bool retired = false;        // no longer the state of its chat, which has to be looked up again
    bool names_durable = false;  // this process has synced the chat's directories
    bool directories_made = false;
    bool directories_new = false;  // made by this process
    bool has_index = false;        // there is a chat.json, or the first one will be written
    bool index_must_last = false;  // chat.json must be durable before the next checkpoint is
    SavePreparation preparation;   // for the interaction reserved last
    std::uint32_t prepared_number = 0;
    ChatIndex index;
    std::set<std::uint32_t> numbers;  // stored interactions
    std::optional<ChatOnDisk::Unproven> unproven;
    // Of running interactions; null: left by a process that ended.
    std::map<std::uint32_t, std::shared_ptr<JournalFile>> journals;
    std::uint32_t next_number = 1;
    // The digests of parents' records, as named by all interactions from `named_from` on and by some older ones.
    std::map<std::uint32_t, std::string> named;
    std::uint32_t named_from = InteractionId::kMaxNumber + 1;
    // The parents that interactions name, as far as they were needed; 0: none. The digests that they name are in
    // `named`.
    std::map<std::uint32_t, std::uint32_t> parents;
  };
  // The final state of an interaction, and what its file was.
  struct KeptState {
    InteractionId interaction;
    std::string digest;
    std::size_t file_hash;
    AgentState state;
  };
  enum class Missing { kFail, kLeave, kCreate };  // kCreate: with its directories
  enum class Hold { kState, kStateAndIndex };
  // A chat's state with its locks.
  struct HeldChat {
    std::shared_ptr<ChatState> state;
    std::unique_lock<Mutex> index_lock;  // empty for Hold::kState
    std::unique_lock<Mutex> lock;
    bool created = false;  // nothing of this chat was stored before
    ChatState* operator->() const { return state.get(); }
  };

  Result<void> CheckWritable() const override;
  std::shared_ptr<ChatList> List() override;
  Result<std::string> ReadDigest(const ChatId& chat, InteractionId id) override { return files_.ReadDigest(chat, id); }
  Result<IncomingChat> CopyOfBranch(const ChatId& source, InteractionId last, const ChatId& chat,
                                    const std::optional<std::string>& title) override;
  Result<void> AddEmpty(const ChatIndex& index) override;
  Result<ChatSummary> AddWhole(const IncomingChat& chat) override;
  Result<ChatSummary> ChangeIndex(const ChatId& chat, bool while_running, const IndexChange& change) override;
  Result<void> MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) override;
  Result<void> CreateFallbackRoot();
  Result<HeldChat> HoldChat(const ChatId& chat, Missing missing, Hold hold);
  std::shared_ptr<ChatState> StateOf(const ChatId& chat);
  std::shared_ptr<ChatState> FindState(const ChatId& chat);
  Result<bool> Load(const ChatId& chat, Missing missing, HeldChat& held);
  Result<void> CheckKeyOf(const ChatId& chat, const ChatOnDisk& on_disk) const;
  void NoticeJournals(const ChatId& chat, const ChatState& state);
  Result<bool> MakeDirectories(const ChatId& chat, HeldChat& held);
  void Retire(const ChatId& chat, const HeldChat& held);

  // `link` is null if the state is whole.
  Result<std::string> SaveHeld(const Interaction& interaction, HeldChat& held, const StateLink* link = nullptr);
  Result<AtomicFile> FileFor(const Interaction& interaction, HeldChat& held);
  Durability DurabilityOf(const Interaction& interaction, const HeldChat& held) const;
  // Makes the names of a written interaction and of the folders above it durable.
  Result<void> SyncNamesOf(const ChatId& chat, HeldChat& held);
  // Whether the sync of a new file makes its name and those of the folders above it durable.
  bool SyncReachesNames(const HeldChat& held) const;
  // The same for a journal; the next start then finds it.
  Result<void> SyncJournalNames(const ChatId& chat);
  Result<std::vector<InteractionRef>> FindJournals();
  Result<void> RemoveJournal(const ChatId& chat, InteractionId id);
  void EndJournal(const ChatId& chat, InteractionId id, ChatState& state);
  Result<void> SyncStoredNames(const ChatId& chat, HeldChat& held);
  Result<RecordLinks> LinksFor(const Interaction& interaction, const HeldChat& held);
  // Makes `index` the chat's index, durably on disk and in memory. After a failure the one in memory is unchanged.
  Result<ChatSummary> ReplaceIndexDurably(HeldChat& held, ChatIndex index);
  Result<void> WriteIndexLocked(ChatState& state, const ChatIndex& index, Durability durability = Durability::kSynced);
  enum class IndexNeed { kCurrent, kDurable };  // kDurable: of any age
  void WriteIndex(const ChatId& chat, IndexNeed need);
  struct Snapshot {
    ChatIndex index;
    std::set<std::uint32_t> numbers;
    std::set<std::uint32_t> left;  // LeftOf
  };
  Result<Snapshot> TakeSnapshot(const ChatId& chat);
  // The result of `read`, which is called again if the chat was deleted meanwhile and another one has its name.
  // `is_whole`: whether a result rules that out.
  template <typename Read, typename IsWhole>
  auto InOneLife(const ChatId& chat, Read read, IsWhole is_whole) -> decltype(read());
  template <typename Read>
  auto InOneLife(const ChatId& chat, Read read) -> decltype(read());
  bool IsExpected(const ChatId& chat, InteractionId id);
  static std::set<std::uint32_t> LeftOf(const ChatState& state);
  Error WhyNotThere(const ChatId& chat, InteractionId id);
  Error WhyGone(const ChatId& chat, InteractionId id);
  std::optional<Error> JournalDamage(const ChatId& chat, InteractionId id);
  std::vector<DamagedInteraction> DamagedRuns(const ChatId& chat, const std::set<std::uint32_t>& left);
  // The digest of this interaction's record according to the index or to the next interaction. nullopt: unknown.
  std::optional<std::string> ExpectedDigest(const ChatId& chat, InteractionId id);
  // kCorruption if its record is not the expected version.
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
  // The summary for a list, without keeping the chat in memory.
  Result<ChatSummary> LoadListed(const ChatId& chat);
  std::shared_ptr<ChatList> MakeList();
  Result<std::vector<InteractionId>> BranchUpTo(const ChatId& chat, InteractionId last);
  void CheckHistory(const ChatIndex& index, const std::vector<StoredInteraction>& stored, Chat& chat) const;

  const Options options_;
  const std::unique_ptr<DirectoryLock> lock_;
  const std::shared_ptr<const void> root_;  // that the root is still the locked one
  const SyncReach sync_reach_;
  // An interaction with its whole state. kAny: in any version.
  enum class Version { kExpected, kAny };
  Result<StoredInteraction> ReadWhole(const ChatId& chat, InteractionId id, Version version);
  std::optional<KnownState> ShortenedTo(const ChatId& chat, const StateTotals& totals) const;
  std::optional<KnownState> ParentState(const ChatId& chat, const RecordLinks& links);
  void KeepState(const Interaction& interaction, const WrittenInteraction& written);
  void DropStates(const ChatId& chat) { short_states_.Take(chat.str()), long_states_.Drop(chat.str()); }
  void KeepLong(const ChatId& chat, const std::string& digest, const AgentState& state, StateTotals totals);

  const ChatFiles files_;
  WholeQueues queues_;                    // synchronises itself
  StateCache<KnownState> long_states_;    // synchronises itself
  StateCache<KeptState> short_states_;    // synchronises itself; the last one saved in each chat
  RunningList running_;                   // synchronises itself
  const std::shared_ptr<ChatList> list_;  // of kServer
  Mutex fork_mutex_;                      // held while a whole chat is added; taken before a chat's locks
  Mutex chats_mutex_;
  std::unordered_map<ChatId, std::shared_ptr<ChatState>> chats_ GUARDED_BY(chats_mutex_);
  SavePreparer save_preparer_;  // after what its thread uses
  IndexWriter index_writer_;    // last: its thread uses all of the above
};

}  // namespace reprise
