#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/error.h"
#include "reprise/history.h"
#include "reprise/ids.h"
#include "reprise/incoming_chat.h"
#include "reprise/interaction.h"
#include "reprise/journal.h"
#include "reprise/queue.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A chat of which not even the summary can be read.
struct UnreadableChat {
  ChatId id;
  Error error;
};

// A chat in the trash.
struct TrashEntry {
  std::string id;  // names this deletion; begins with the chat's id and a dot
  ChatId chat_id;
  std::optional<std::string> title;  // nullopt: it cannot be read
  Timestamp deleted_at;
  std::uint64_t bytes;  // of its files
};

// Common failures of all these: kNotFound (no such chat or interaction), kCorruption (reason integrity_auth,
// integrity_swap, integrity_rollback, integrity_version, integrity_plain, integrity_sealed or integrity_missing; the
// neighbours stay readable), kIo, kStorageFull. All methods may be called from several threads; calls that concern one
// chat take effect one after the other.

// What the next turn of a chat goes on from.
struct ChatHead {
  ChatSummary summary;
  std::optional<AgentState> state{};      // in which the summary's head ended, if one is stored with it
  std::optional<std::int64_t> version{};  // of the chat, as RunBeginning::expected_version has it
};

// Keeps the interactions that have ended (specification section 4.5).
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // The number for the next interaction of `chat`; creates the chat if it is unknown. Each call gives another number,
  // above all that are stored. Costs no disk flush: the chat and its first checkpoint become durable together.
  virtual Result<InteractionId> ReserveInteraction(const ChatId& chat) = 0;
  // Saves a finished interaction and moves the chat's head to it. When this returns ok, both survive a power loss.
  // Saving the same interaction twice with equal content is ok; kConflict (reason "interaction_exists") if another one
  // is stored under its id, kNotFound if its parent is not in the chat.
  // REQUIRES: interaction.id came from ReserveInteraction, IsFinished(interaction.status).
  virtual Result<void> SaveInteraction(const Interaction& interaction) = 0;
  virtual Result<Interaction> LoadInteraction(const ChatId& chat, InteractionId id) = 0;
  // The same with what its state adds to its parent's, where it begins with that: a chat read so is as long as what was
  // said in it. Its state may be the continuation of one that cannot be read.
  virtual Result<AddedInteraction> LoadAdded(const ChatId& chat, InteractionId id) {
    auto whole = LoadInteraction(chat, id);
    if (!whole) return tl::unexpected(std::move(whole.error()));
    const auto before = LoadPreviousState(chat, id);
    return before && *before ? AddedTo(**before, *std::move(whole))
                             : AddedInteraction{.interaction = *std::move(whole)};
  }
  // Everything in one chat, damaged interactions named beside the readable ones. Of a long chat without the final
  // states: each repeats the one before it, and all together would grow with the square of the chat's length.
  virtual Result<Chat> LoadChat(const ChatId& chat) = 0;
  // How its histories are read piece by piece; null: LoadChat costs nothing here.
  virtual HistorySource* histories() { return nullptr; }
  // The state in which an interaction ended, nullopt if none is stored with it. Made for the turn that goes on from
  // there: fast if it was stored a moment ago.
  virtual Result<std::optional<AgentState>> LoadFinalState(const ChatId& chat, InteractionId id) = 0;
  // The state before `id`: its parent's final state, or nullopt if it is the first of its branch.
  virtual Result<std::optional<AgentState>> LoadPreviousState(const ChatId& chat, InteractionId id) = 0;
};

// Keeps what there is of each chat beside its interactions: its title and the branch that it ends at. It lists, copies,
// takes in, deletes and brings back whole chats.
class ChatStore {
 public:
  virtual ~ChatStore() = default;

  // Creates an empty chat. kConflict (reason "chat_exists") if there is one of that name.
  virtual Result<ChatSummary> CreateChat(const ChatId& chat, const std::string& title) = 0;
  virtual Result<ChatSummary> LoadSummary(const ChatId& chat) = 0;
  // All readable chats, most recently updated first.
  virtual Result<std::vector<ChatSummary>> ListChats() = 0;
  // Those that ListChats leaves out, and why, by their ids. A store that cannot be damaged has none.
  virtual Result<std::vector<UnreadableChat>> ListUnreadableChats() { return std::vector<UnreadableChat>(); }
  // Durable when it returns ok.
  virtual Result<ChatSummary> ChangeChat(const ChatId& chat, const ChatSettings& settings) = 0;
  // Switches the branch. kNotFound if `head` is not stored in this chat. Durable when it returns ok.
  virtual Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId head) = 0;
  // Copies the branch that ends at `last`, from its root on, into a new chat, which is there as a whole or not at all
  // whenever the process ends; durable when it returns ok. The copies keep their numbers, so that a reserved number of
  // the new chat is above them. No title: that of `source`. The settings of `source` hold in it too, but for
  // kApproveAll, which was said of that chat alone. kConflict (reason "chat_exists") if there is a chat of that name.
  virtual Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                       const std::optional<std::string>& title) = 0;
  // Takes a whole chat in, which is there as a whole or not at all whenever the process ends; durable when it returns
  // ok. A store that keeps no files with its chats leaves them out. kConflict (reason "chat_exists") if there is a chat
  // of its name; the failures of `load`. REQUIRES: no journals.
  virtual Result<ChatSummary> ImportChat(const IncomingChat& chat) {
    static_cast<void>(chat);
    return Fail(ErrorCode::kForbidden, "this store takes no chats in");
  }
  // Moves this interaction, and all that continue it, to the trash. Gives what was moved. kNotFound; kConflict: reason
  // "on_head_branch" if the chat's head is among them, "still_used" if another interaction has taken its state from one
  // of them. Durable when it returns ok. REQUIRES: nothing is saved in this chat meanwhile.
  virtual Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from) {
    static_cast<void>(chat), static_cast<void>(from);
    return Fail(ErrorCode::kForbidden, "this store removes no branches");
  }
  // Moves the chat to the trash, where nothing lists it and a person can still find it.
  virtual Result<void> DeleteChat(const ChatId& chat) = 0;
  // What the trash holds, deleted last first. A store without one has nothing in it.
  virtual Result<std::vector<TrashEntry>> ListTrash() { return std::vector<TrashEntry>(); }
  // Brings a chat of the trash back as it was, in one step; durable when it returns ok. kNotFound if there is no such
  // entry of this chat, kConflict (reason "chat_exists") if there is a chat of its name, kCorruption if its summary
  // cannot be read: it stays in the trash then.
  virtual Result<ChatSummary> RestoreChat(const ChatId& chat, const std::string& entry) {
    static_cast<void>(chat), static_cast<void>(entry);
    return Fail(ErrorCode::kNotFound, "there is no such chat in the trash");
  }
};

// A store of chats: each of its sides is a small interface of its own, with a suite of what every implementation does
// (tests/store/*_conformance_test.cc). Who needs one side takes that.
class InteractionStore : public CheckpointStore, public ChatStore, public JournalStore, public QueueStore {
 public:
  // What the next turn goes on from.
  virtual Result<ChatHead> LoadHead(const ChatId& chat) {
    auto summary = LoadSummary(chat);
    if (!summary) return tl::unexpected(std::move(summary.error()));
    ChatHead head{.summary = *std::move(summary)};
    if (!head.summary.head) return head;
    auto state = LoadFinalState(chat, *head.summary.head);
    if (!state) return tl::unexpected(std::move(state.error()));
    head.state = *std::move(state);
    return head;
  }
  // The same for whoever begins a run with it. A store that other processes write to may tell what it knew last, with a
  // version, and that there is no such chat if it knows of none: RunStore::Begin finds out whether that holds (else
  // "head_moved"), and LoadHead looks again.
  virtual Result<ChatHead> LoadKnownHead(const ChatId& chat) { return LoadHead(chat); }
};

}  // namespace reprise
