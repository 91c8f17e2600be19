#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "remote/postgres/database_files.h"
#include "remote/postgres/postgres_queue.h"
#include "reprise/interaction_store.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/linked_state.h"

namespace reprise {

// A base, so that they are there before the store that reads them.
struct FilesOfDatabase {
  DatabaseFiles database_files_;
};

// Chats in a PostgreSQL database, each record as its file would be: a data folder that is read as any other, through
// DatabaseFiles and with the same checks, and written in other ways. Each write is one atomic statement. The row of a
// chat has its index and a version of that: a writer that finds another version reads the row again. Any number of
// processes may use one database. Thread-safe.
//
// Runs and their journals are PostgresRunStore's.
class PostgresStore final : private FilesOfDatabase, public FileInteractionStore {
 public:
  struct Options {
    Database& database;                  // must outlive the store; its schema is current
    std::shared_ptr<const KeySet> keys;  // null: plain
    std::string tenant{};
    const FileBucket* bucket = nullptr;  // null: files are rows; must outlive the store
    // The connection that finishes runs, many in one transaction; null: `database`. Must outlive the store.
    Database* finishes = nullptr;
    std::string instance{};  // the user of the store (Lease::instance); empty: a command
  };
  explicit PostgresStore(Options options);

  Result<InteractionId> ReserveInteraction(const ChatId& chat) override;
  Result<void> SaveInteraction(const Interaction& interaction) override;
  // The reader looks for a record, and then for its name in the index. A record that another process saves in between
  // seems to be gone, so it is looked for again.
  Result<Interaction> LoadInteraction(const ChatId& chat, InteractionId id) override {
    auto read = FileInteractionStore::LoadInteraction(chat, id);
    const bool seems_gone = !read && read.error().Is(Reason::kIntegrityMissing);
    return seems_gone ? FileInteractionStore::LoadInteraction(chat, id) : std::move(read);
  }
  Result<AddedInteraction> LoadAdded(const ChatId& chat, InteractionId id) override {
    auto read = FileInteractionStore::LoadAdded(chat, id);
    const bool seems_gone = !read && read.error().Is(Reason::kIntegrityMissing);
    return seems_gone ? FileInteractionStore::LoadAdded(chat, id) : std::move(read);
  }
  Result<Chat> LoadChat(const ChatId& chat) override {
    auto read = FileInteractionStore::LoadChat(chat);
    const bool seems_gone = read && !read->damaged.empty();
    return seems_gone ? FileInteractionStore::LoadChat(chat) : std::move(read);
  }
  // Runs keep their journals themselves.
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId&, InteractionId,
                                                const std::vector<std::string>&) override {
    return nullptr;
  }
  Result<std::vector<InteractionRef>> ListUnfinished() override { return std::vector<InteractionRef>(); }
  Result<void> DropJournal(const ChatId&, InteractionId) override { return {}; }

  Result<ChatHead> LoadHead(const ChatId& chat) override;
  Result<ChatHead> LoadKnownHead(const ChatId& chat) override;

  Result<ChatSummary> LoadSummary(const ChatId& chat) override;
  Result<void> DeleteChat(const ChatId& chat) override;
  Result<std::vector<TrashEntry>> ListTrash() override;
  Result<ChatSummary> RestoreChat(const ChatId& chat, const std::string& entry) override;

  QueueStore& queues() override { return queue_; }

  // --- for PostgresRunStore
  // A run's interaction, sealed only once, so that a record that is stored already is recognized by its digest.
  using Sealed = std::optional<SealedInteraction>;
  // Saves the interaction, moves the head and ends the run and its journal in the same step. kConflict (reason
  // "fenced") if another token holds it.
  Result<void> FinishRun(const Interaction& interaction, const std::string& token, Sealed& sealed);
  // The same in two steps: PrepareFinish may wait for the database, SubmitFinish does not.
  struct Finishing {
    std::shared_ptr<const Interaction> interaction;
    std::string token;
    ChatIndex index;
    std::int64_t version;  // before
    std::string index_record;
    SealedInteraction sealed;
  };
  Result<std::shared_ptr<const Finishing>> PrepareFinish(std::shared_ptr<const Interaction> interaction,
                                                         const std::string& token, Sealed& sealed);
  enum class Finished { kSaved, kOtherVersion, kNotHeld };  // kOtherVersion: prepare it again
  void SubmitFinish(std::shared_ptr<const Finishing> finishing, std::function<void(Result<Finished>)> done);
  // Commits the statement together with the ends of runs, synchronously; it may share (`Statement::may_share`). Waits
  // for it.
  Result<Rows> CommitTogether(Statement statement) { return finishes_.ExecuteInOrder(std::move(statement)); }
  // The number of the chat's next run, if this version of the chat is remembered.
  std::optional<InteractionId> NextOf(const ChatId& chat, std::int64_t version);
  // Remembers that the chat has its first run now, and its row this version.
  void RememberFirst(const ChatId& chat, std::int64_t version);
  // Drops the remembered chat.
  void Forget(const ChatId& chat) { known_.Take(chat.str()); }
  const KeySet* keys() const { return options_.keys.get(); }
  // Seal and open a record of a place without a file.
  Result<std::string> Seal(const RecordPlace& place, std::string_view plaintext) const;
  Result<std::string> Open(const RecordPlace& place, std::string_view record) const;
  DatabaseFiles& files() { return database_files_; }
  const std::string& tenant() const { return options_.tenant; }

 private:
  // A chat's row.
  struct ChatRow {
    ChatIndex index;
    bool has_index = false;
    std::int64_t version = 0;
    std::int64_t next_number = 0;
    std::optional<std::int64_t> running{};  // the number of the run that holds it
  };
  // A chat as this process has read or written it last. Its version shows whether it is still current when it is used.
  struct KnownChat {
    ChatRow row;
    std::shared_ptr<const AgentState> state;  // of the head; null: it has none
    std::string digest{};                     // of the head's record
    std::optional<StateTotals> totals{};      // of the state, if it was written as its additions
    bool is_full = false;                     // it was written in full
  };
  using Known = std::shared_ptr<const KnownChat>;
  static ChatHead HeadOf(const KnownChat& known);
  void Remember(const Finishing& finishing);
  // `is_patient`: as Statement.
  Result<std::optional<ChatRow>> ReadRow(const ChatId& chat, bool is_patient = false);
  // The digest of an interaction's record; nullopt if it is not stored.
  Result<std::optional<std::string>> DigestOf(const ChatId& chat, InteractionId id, bool is_patient);
  std::optional<KnownState> ParentState(const ChatId& chat, const RecordLinks& links);
  Result<SealedInteraction> Seal(const Interaction& interaction, const ChatRow& row, bool is_patient);
  // Adds a saved interaction to the index, as the statements that save it do. Returns the index's record.
  Result<std::string> AddTo(ChatRow& row, const Interaction& interaction, const std::string& digest) const;
  // Its row says whether it was saved, and whether the token is the run's.
  static Statement FinishStatement(const std::string& tenant, const Finishing& finishing);
  Result<Rows> InsertInteraction(const Interaction& interaction, std::int64_t version, const std::string& index,
                                 const SealedInteraction& sealed);
  Result<void> CheckWritable() const override { return {}; }
  std::shared_ptr<ChatList> List() override { return list_; }
  Result<std::vector<ChatVersion>> ListVersions();
  Result<ChatSummary> LoadListed(const ChatId& chat);
  Result<void> AddEmpty(const ChatIndex& index) override;
  Result<ChatSummary> AddWhole(const IncomingChat& chat) override;
  Result<ChatSummary> ChangeIndex(const ChatId& chat, bool while_running, const IndexChange& change) override;
  Result<void> MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) override;
  Result<void> AddRow(const IncomingChat& chat, ChatIndex& index);
  Result<void> AddParts(const IncomingChat& chat);
  // Moves the chat into this entry of the trash; nullopt removes it for good, because it never was whole. False if the
  // chat does not exist, has no index or runs.
  Result<bool> Remove(const ChatId& chat, const std::optional<std::string>& entry);

  const Options options_;
  TenantDatabase database_, finishes_;
  const std::unique_ptr<RecordFormat> format_;
  PostgresQueue queue_;
  StateCache<Known> known_;  // by the chat; synchronises itself
  const std::shared_ptr<ChatList> list_;
};

// The id for the number in a row.
inline InteractionId NumberedId(std::int64_t number) {
  return InteractionId::FromNumber(static_cast<std::uint32_t>(number));
}

}  // namespace reprise
