#pragma once

#include <functional>
#include <map>
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

// Ok if the two are equal; else kConflict (reason "interaction_exists").
Result<void> CheckSame(const Interaction& stored, const Interaction& meant);

// The links of an interaction's record. The index knows the digest of the parent's record, or `read` returns it
// (nullopt if the parent is stored elsewhere).
Result<RecordLinks> LinksTo(const std::optional<InteractionId>& parent, const ChatIndex& index,
                            const std::function<Result<std::optional<std::string>>(InteractionId)>& read);

struct StoredInteraction {
  Interaction interaction;
  RecordLinks links;
  std::string digest;
  std::optional<StateLink> state_link;  // set: the final state holds only its additions to the parent's
};

// An interaction's JSON as it is stored, and the position of the final state in it.
struct StoredJson {
  std::string text;
  std::size_t state_begin = 0, state_size = 0;
  bool state_linked = false;  // it holds only additions to the parent's, without saying so itself
  std::string digest{};       // of the record
  std::string model{};
  TokenUsage usage{};
};

struct WrittenInteraction {
  std::string digest;                   // of the record
  std::size_t file_hash = 0;            // of all but what `digest` covers
  std::size_t bytes = 0;                // of its JSON
  bool verbatim = false;                // it reads back unchanged: no text had to be turned into UTF-8
  std::optional<StateLink> state_link;  // as in StoredInteraction
};

// The content of an interaction's file.
struct SealedInteraction {
  std::string text;
  std::string digest;  // of the record
  std::size_t bytes = 0;
  bool verbatim = false;
  std::optional<StateLink> state_link;
};

// An interaction's readable record, as its neighbours see it.
struct FoundRecord {
  RecordLinks links;
  std::string digest;
};
// The defects that only a comparison shows: of the records with the index (null: unreadable) and, if
// `compares_parents`, with each other. A digest that differs means that another authentic version of the file was put
// back.
std::map<InteractionId, Error> CompareRecords(const ChatId& chat, const ChatIndex* index,
                                              const std::map<InteractionId, FoundRecord>& found, bool authenticated,
                                              bool compares_parents = true);

// The numbers of a chat's files, readable or not.
struct InteractionFiles {
  std::set<std::uint32_t> checkpoints, journals;
};

// A chat as its files describe it.
struct ChatOnDisk {
  ChatIndex index;
  std::set<std::uint32_t> numbers;   // of the interaction files, readable or not
  std::set<std::uint32_t> journals;  // likewise
  // The newest file if it was renamed and may not have been synced: its journal is still there, and the index does not
  // know it. One that cannot be read was cut off by a power loss; it is not in `numbers`.
  struct Unproven {
    InteractionId id;
    bool readable;
  };
  std::optional<Unproven> unproven{};
  bool has_index = false;         // there is a chat.json, readable or cut off
  bool index_unreadable = false;  // chat.json is cut off and must be set aside before a new one is written
};

// Reads and writes the records of one data folder. Has no state and no lock: thread-safe, but callers must order their
// writes to one chat. Failures: kNotFound, kCorruption, kIo, kStorageFull, kTooLarge.
class ChatFiles {
 public:
  ChatFiles(std::string root, std::unique_ptr<RecordFormat> format, FileSystem& file_system)
      : root_(std::move(root)), format_(std::move(format)), file_system_(file_system) {
    file_system_.Confine(root_);
  }

  // --- reading ---
  Result<StoredInteraction> ReadInteraction(const ChatId& chat, InteractionId id) const;
  // The same, with most of it left unparsed where the format allows that.
  Result<StoredJson> ReadJson(const ChatId& chat, InteractionId id) const;
  // Opens the file without reading its content, where the format allows it.
  struct Header {
    RecordLinks links;
    std::string digest;
  };
  Result<Header> ReadHeader(const ChatId& chat, InteractionId id) const;
  Result<RecordLinks> ReadLinks(const ChatId& chat, InteractionId id) const;
  // The links of the version with this authentic digest: see RecordFormat::ReadLinks.
  Result<RecordLinks> ReadLinks(const ChatId& chat, InteractionId id, std::string_view digest) const;
  // The parent that a possibly damaged file names, unchecked.
  std::optional<InteractionId> ClaimedParent(const ChatId& chat, InteractionId id) const;
  Result<std::string> ReadDigest(const ChatId& chat, InteractionId id) const;
  // The parent's state, for the record of the next interaction; nullopt if the parent cannot be read, has no state, or
  // is not the version that `links` name.
  std::optional<KnownState> ReadParentState(const ChatId& chat, const RecordLinks& links) const;
  // Whether the file is still as this process wrote it, without opening the record.
  bool IsAsWritten(const ChatId& chat, InteractionId id, std::string_view digest, std::size_t file_hash) const;
  // The content of chat.json; nullopt if there is none. `cut_off`: it fails because a crash left it unfinished.
  Result<std::optional<ChatIndex>> ReadIndex(const ChatId& chat, bool& cut_off) const;
  // The index from chat.json, completed from newer interaction files, or rebuilt from all of them if chat.json is
  // missing or cut off. kNotFound if the chat has no files.
  Result<ChatOnDisk> ReadChat(const ChatId& chat) const;
  // Empty if there is no such chat.
  Result<InteractionFiles> ListInteractions(const ChatId& chat) const;
  Result<std::vector<ChatId>> ListChats() const;
  // Empty if there is no queue file. A file is one record; a database returns several, with kQueueRecordEnd between
  // them.
  static constexpr char kQueueRecordEnd = '\0';
  Result<std::vector<QueuedMessage>> ReadQueue(const ChatId& chat) const;
  // The chats that have one.
  Result<std::vector<ChatId>> ListQueues() const;
  // The content of a journal's file. Empty if the file is still that of another interaction, which was saved.
  Result<JournalContent> ReadJournal(const RecordPlace& place, std::string_view text, const KeySet* keys) const;
  bool authenticated() const { return format_->authenticated(); }

  // --- records as their files hold them ---
  // A long state is stored as its additions if `parent_state` (called for long states only) knows the parent's. Null:
  // always in full.
  using ParentState = std::function<std::optional<KnownState>()>;
  Result<SealedInteraction> SealInteraction(const Interaction& interaction, const RecordLinks& links,
                                            const ParentState& parent_state) const;
  Result<std::string> SealIndex(const ChatIndex& index) const;
  Result<std::string> SealQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const;
  Result<std::vector<QueuedMessage>> OpenQueue(const ChatId& chat, std::string_view text) const;
  Result<ChatIndex> OpenIndex(const ChatId& chat, std::string_view text) const;
  Result<std::string> DigestOf(const ChatId& chat, InteractionId id, std::string_view text) const;

  // --- writing ---
  // Creates the chat's directories. Their names are not durable yet. False if the chat's existed.
  Result<bool> CreateDirectories(const ChatId& chat) const;
  // Removes the temporary files of interrupted writes. REQUIRES: nothing is written to the chat meanwhile.
  void RemoveLeftovers(const ChatId& chat) const;
  // Makes the names of the chat's interaction files durable; SyncNames those of its directories as well.
  Result<void> SyncInteractionNames(const ChatId& chat) const;
  Result<void> SyncRoot() const;
  Result<void> SyncNames(const ChatId& chat) const;
  // Whether the file of an interaction without an index entry, beside its journal, may be one that was never synced.
  static bool MayBeUnsynced(const Error& error) {
    return error.Is(Reason::kIntegrityAuth) || error.Is(Reason::kIntegrityFormat);
  }
  // Replaces the file by an equal one whose content is durable.
  Result<void> WriteAgain(const ChatId& chat, InteractionId id) const;
  // Creates the file for WriteInteraction.
  Result<AtomicFile> CreateInteractionFile(const ChatId& chat, InteractionId id) const;
  // Writes what SealInteraction returns; durable (if kSynced) once its name is.
  Result<WrittenInteraction> WriteInteraction(const Interaction& interaction, const RecordLinks& links, AtomicFile file,
                                              const ParentState& parent_state,
                                              Durability durability = Durability::kSynced) const;
  // The same of an interaction that has only the messages that its state adds.
  Result<WrittenInteraction> WriteAdded(const Interaction& added, const StateLink& state_link, const RecordLinks& links,
                                        AtomicFile file, Durability durability) const;
  // Replaces chat.json atomically, without making the name durable: if an older one comes back after a power loss, it
  // serves as well, unless it moves the head back.
  Result<void> WriteIndex(const ChatIndex& index, Durability durability = Durability::kSynced) const;
  // Replaces or removes queue.json, durably.
  Result<void> WriteQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const;
  Result<void> SyncChatDirectory(const ChatId& chat) const;
  Result<void> SetIndexAside(const ChatId& chat) const;
  Result<void> MoveToTrash(const ChatId& chat) const;
  // The same for some of its interactions, parents first, which no others refer to any more. If it fails, the newer
  // ones may be moved.
  Result<void> MoveToTrash(const ChatId& chat, const std::vector<InteractionId>& interactions) const;
  // Last deletion first.
  Result<std::vector<TrashEntry>> ListTrash() const;
  // Ok if the trash has such an entry of this chat; else the failures of TakeFromTrash.
  Result<void> FindInTrash(const ChatId& chat, const std::string& entry) const;
  // Moves a chat back from the trash; if its summary cannot be read, it stays there. Fails as
  // InteractionStore::RestoreChat. REQUIRES: the chat's name is not used meanwhile.
  Result<ChatOnDisk> TakeFromTrash(const ChatId& chat, const std::string& entry) const;
  Result<void> RemoveInteraction(const ChatId& chat, InteractionId id) const;

 private:
  Result<SealedInteraction> Sealed(const RecordPlace& place, const RecordLinks& links, const std::string& text,
                                   std::optional<StateLink> state_link) const;
  static Result<WrittenInteraction> WriteSealed(SealedInteraction sealed, AtomicFile file, Durability durability);
  Result<OpenedRecord> OpenInteraction(const ChatId& chat, InteractionId id) const;
  Result<void> AddNewer(ChatOnDisk& chat) const;

  const std::string root_;
  const std::unique_ptr<RecordFormat> format_;
  FileSystem& file_system_;
};

}  // namespace reprise
