#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_write.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/journal.h"
#include "reprise/queue.h"
#include "reprise/result.h"
#include "store/chat_index.h"
#include "store/linked_state.h"
#include "store/record.h"

namespace reprise {

// Ok if the interaction that is stored under its id is equal; else kConflict (reason "interaction_exists").
Result<void> CheckSame(const Interaction& stored, const Interaction& meant);

// The links of an interaction's record. The index knows the digest of the parent's record, or `read` returns it
// (nullopt if the parent is stored elsewhere).
Result<RecordLinks> LinksTo(const std::optional<InteractionId>& parent, const ChatIndex& index,
                            const std::function<Result<std::optional<std::string>>(InteractionId)>& read);

struct StoredInteraction {
  Interaction interaction;
  RecordLinks links;
  std::string digest;
  std::optional<StateLink> state_link;  // set: the final state is what it adds to the parent's
};

// An interaction's JSON as it is stored, and where in it the final state is.
struct StoredJson {
  std::string text;
  std::size_t state_begin = 0, state_size = 0;
  bool state_linked = false;  // it is what it adds to the parent's, and does not say so itself
  std::string digest{};       // of the record
  std::string model{};
  TokenUsage usage{};
};

struct WrittenInteraction {
  std::string digest;                   // of the record
  std::string file_digest;              // see ReadFileDigest
  std::size_t bytes = 0;                // of its JSON
  bool verbatim = false;                // it can be read as it was given: no text had to be mended to be UTF-8
  std::optional<StateLink> state_link;  // likewise
};

// An interaction as its file holds it.
struct SealedInteraction {
  std::string text;
  std::string digest;  // of the record
  std::size_t bytes = 0;
  bool verbatim = false;
  std::optional<StateLink> state_link;
};

// The numbers of a chat's files, readable or not.
struct InteractionFiles {
  std::set<std::uint32_t> checkpoints, journals;
};

// What the files say about a chat.
struct ChatOnDisk {
  ChatIndex index;
  std::set<std::uint32_t> numbers;   // of the interaction files, readable or not
  std::set<std::uint32_t> journals;  // likewise
  bool has_index = false;            // there is a chat.json, readable or cut off
  bool index_unreadable = false;     // chat.json is there but cut off: it must be set aside before a new one is written
};

// Reads and writes the records of one data folder. Holds no state and no lock: thread-safe, but whoever writes one chat
// from several threads has to order the calls. Failures: kNotFound, kCorruption, kIo, kStorageFull, kTooLarge.
class ChatFiles {
 public:
  ChatFiles(std::string root, std::unique_ptr<RecordFormat> format, FileSystem& file_system)
      : root_(std::move(root)), format_(std::move(format)), file_system_(file_system) {
    file_system_.Confine(root_);
  }

  // --- reading ---
  Result<StoredInteraction> ReadInteraction(const ChatId& chat, InteractionId id) const;
  // The same without making objects of most of it, where the format allows it.
  Result<StoredJson> ReadJson(const ChatId& chat, InteractionId id) const;
  // Opens the file without reading its content, where the format allows it.
  struct Header {
    RecordLinks links;
    std::string digest;
  };
  Result<Header> ReadHeader(const ChatId& chat, InteractionId id) const;
  Result<RecordLinks> ReadLinks(const ChatId& chat, InteractionId id) const;
  // Those of the version with this digest, which is authentic: see RecordFormat.
  Result<RecordLinks> ReadLinks(const ChatId& chat, InteractionId id, std::string_view digest) const;
  // The parent that a file names which may be damaged otherwise; nobody has checked it.
  std::optional<InteractionId> ClaimedParent(const ChatId& chat, InteractionId id) const;
  Result<std::string> ReadDigest(const ChatId& chat, InteractionId id) const;
  // What the next interaction's record needs of its parent's state; nullopt if the parent has none, or is not the
  // version that `links` name.
  std::optional<KnownState> ReadParentState(const ChatId& chat, const RecordLinks& links) const;
  // Of the file as it is and where it is, without opening it: tells whether it is still what was written there.
  Result<std::string> ReadFileDigest(const ChatId& chat, InteractionId id) const;
  // chat.json as it is; nullopt: there is none, or (`cut_off`) one that a crash has left unfinished.
  Result<std::optional<ChatIndex>> ReadIndex(const ChatId& chat, bool& cut_off) const;
  // chat.json brought up to date by the interaction files that are newer, or rebuilt from all of them if it is missing
  // or cut off. kNotFound if there is neither.
  Result<ChatOnDisk> ReadChat(const ChatId& chat) const;
  // None if there is no such chat.
  Result<InteractionFiles> ListInteractions(const ChatId& chat) const;
  Result<std::vector<ChatId>> ListChats() const;
  // None if there is no file of them. A file is one record; what stands for it in a database is several, each but the
  // last with kQueueRecordEnd behind it.
  static constexpr char kQueueRecordEnd = '\0';
  Result<std::vector<QueuedMessage>> ReadQueue(const ChatId& chat) const;
  // What a journal's file holds. One that served another interaction before, which was saved, holds nothing.
  Result<JournalContent> ReadJournal(const RecordPlace& place, std::string_view text, const KeySet* keys) const;
  bool authenticated() const { return format_->authenticated(); }

  // --- records as their files hold them ---
  // A long state is what it adds, if `parent_state` (called for long ones only) knows that of the parent; null: never.
  using ParentState = std::function<std::optional<KnownState>()>;
  Result<SealedInteraction> SealInteraction(const Interaction& interaction, const RecordLinks& links,
                                            const ParentState& parent_state) const;
  Result<std::string> SealIndex(const ChatIndex& index) const;
  Result<std::string> SealQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const;
  Result<std::vector<QueuedMessage>> OpenQueue(const ChatId& chat, std::string_view text) const;
  Result<ChatIndex> OpenIndex(const ChatId& chat, std::string_view text) const;
  Result<std::string> DigestOf(const ChatId& chat, InteractionId id, std::string_view text) const;
  // Removes the branch's leaves from the index and adds the one that its removal leaves.
  Result<void> RemoveLeaves(const RemovedBranch& removed, ChatIndex& index) const;

  // --- writing ---
  // Creates the chat's directories. Their names are not durable yet. False: the chat's was there.
  Result<bool> CreateDirectories(const ChatId& chat) const;
  // Removes what writes have left behind that did not end. REQUIRES: nobody writes to the chat.
  void RemoveLeftovers(const ChatId& chat) const;
  // Makes the names of the chat's interaction files durable; the second one those of its directories as well.
  Result<void> SyncInteractionNames(const ChatId& chat) const;
  Result<void> SyncRoot() const;
  Result<void> SyncNames(const ChatId& chat) const;
  // Where WriteInteraction writes.
  Result<AtomicFile> CreateInteractionFile(const ChatId& chat, InteractionId id) const;
  // As SealInteraction has it; durable once its name is.
  Result<WrittenInteraction> WriteInteraction(const Interaction& interaction, const RecordLinks& links, AtomicFile file,
                                              const ParentState& parent_state,
                                              Durability durability = Durability::kSynced) const;
  // Replaces chat.json, all or nothing, without making the name durable: an older one that comes back after a power
  // loss is as good, unless it moves the head back.
  Result<void> WriteIndex(const ChatIndex& index, Durability durability = Durability::kSynced) const;
  // Replaces or removes queue.json, durably.
  Result<void> WriteQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const;
  Result<void> SyncChatDirectory(const ChatId& chat) const;
  Result<void> SetIndexAside(const ChatId& chat) const;
  Result<void> MoveToTrash(const ChatId& chat) const;
  // The same with some of its interactions, which nothing names any more.
  Result<void> MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) const;
  // Deleted last first.
  Result<std::vector<TrashEntry>> ListTrash() const;
  // Ok if the trash has such an entry of this chat; else the failures of TakeFromTrash.
  Result<void> FindInTrash(const ChatId& chat, const std::string& entry) const;
  // Moves what MoveToTrash has moved back, if its summary can be read then; else it stays where it was. The failures of
  // InteractionStore::RestoreChat. REQUIRES: nobody uses the chat's name meanwhile.
  Result<ChatOnDisk> TakeFromTrash(const ChatId& chat, const std::string& entry) const;
  Result<void> RemoveInteraction(const ChatId& chat, InteractionId id) const;

 private:
  Result<OpenedRecord> OpenInteraction(const ChatId& chat, InteractionId id) const;
  Result<void> AddNewer(ChatOnDisk& chat) const;

  const std::string root_;
  const std::unique_ptr<RecordFormat> format_;
  FileSystem& file_system_;
};

}  // namespace reprise
