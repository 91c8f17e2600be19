#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// A chat whose summary cannot be read.
struct UnreadableChat {
  ChatId id;
  Error error;
};

// A place in the list of chats, which is the most recently updated first.
struct ChatPlace {
  Timestamp updated_at;
  ChatId id;

  // A chat has no time in the store while its first run goes on. It comes first.
  static Timestamp TimeOf(const ChatSummary& summary) {
    return summary.updated_at == Timestamp{} ? Timestamp::max() : summary.updated_at;
  }
  static ChatPlace Of(const ChatSummary& summary) { return {TimeOf(summary), summary.id}; }
  bool IsBefore(const ChatPlace& other) const {
    return updated_at != other.updated_at ? updated_at > other.updated_at : id < other.id;
  }
  // Of two chats, without copies of their ids.
  static bool IsBefore(const ChatSummary& a, const ChatSummary& b) {
    return TimeOf(a) != TimeOf(b) ? TimeOf(a) > TimeOf(b) : a.id < b.id;
  }
};

// A part of the list of chats.
struct ChatPage {
  std::vector<ChatSummary> chats;
  bool more = false;  // others follow
};

// Whether a chat is wanted. It must not call the store.
using ChatFilter = std::function<bool(const ChatSummary&)>;

// A chat in the trash.
struct TrashEntry {
  std::string id;  // names this deletion; begins with the chat's id and a dot
  ChatId chat_id;
  std::optional<std::string> title;  // nullopt: unreadable
  Timestamp deleted_at;
  std::uint64_t bytes;  // of its files
};

// The start of a chat's next turn.
struct ChatHead {
  ChatSummary summary;
  std::optional<AgentState> state{};      // final state of the summary's head, if one is stored
  std::optional<std::int64_t> version{};  // of the chat, for RunBeginning::expected_version
};

// Keeps finished interactions (specification section 4.5).
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // Returns a new number for `chat`, above all stored ones; creates an unknown chat. Costs no disk flush: the chat and
  // its first checkpoint become durable together.
  virtual Result<InteractionId> ReserveInteraction(const ChatId& chat) = 0;
  // Saves a finished interaction and moves the chat's head to it. When this returns ok, both survive a power loss.
  // Saving the same interaction again with equal content is ok; kConflict (reason "interaction_exists") if another one
  // has its id, kNotFound if its parent is not in the chat. REQUIRES: interaction.id came from ReserveInteraction,
  // IsFinished(interaction.status).
  virtual Result<void> SaveInteraction(const Interaction& interaction) = 0;
  virtual Result<Interaction> LoadInteraction(const ChatId& chat, InteractionId id) = 0;
  // The same, with only the messages that its state adds to its parent's: a whole chat read this way is only as long as
  // its conversation. The parent's state may be unreadable.
  virtual Result<AddedInteraction> LoadAdded(const ChatId& chat, InteractionId id) {
    auto whole = LoadInteraction(chat, id);
    if (!whole) return tl::unexpected(std::move(whole.error()));
    const auto before = LoadPreviousState(chat, id);
    return before && *before ? AddedTo(**before, *std::move(whole))
                             : AddedInteraction{.interaction = *std::move(whole)};
  }
  // Everything in one chat; damaged interactions are listed beside the readable ones. A long chat comes without final
  // states: each repeats the one before it, so that all together would grow with the square of the chat's length.
  virtual Result<Chat> LoadChat(const ChatId& chat) = 0;
  // Reads histories piece by piece; null: LoadChat costs nothing here.
  virtual HistorySource* histories() { return nullptr; }
  // The final state of an interaction, nullopt if none is stored with it. For the next turn: fast if it was stored a
  // moment ago.
  virtual Result<std::optional<AgentState>> LoadFinalState(const ChatId& chat, InteractionId id) = 0;
  // The state before `id`: its parent's final state, or nullopt if it is the first of its branch.
  virtual Result<std::optional<AgentState>> LoadPreviousState(const ChatId& chat, InteractionId id) = 0;
};

// Keeps each chat's title, settings and head. Lists, copies, imports, deletes and restores whole chats.
class ChatStore {
 public:
  virtual ~ChatStore() = default;

  // Creates an empty chat. kConflict (reason "chat_exists") if the name is taken.
  virtual Result<ChatSummary> CreateChat(const ChatId& chat, const ChatSettings& settings) = 0;
  virtual Result<ChatSummary> LoadSummary(const ChatId& chat) = 0;
  // All readable chats, most recently updated first.
  virtual Result<std::vector<ChatSummary>> ListChats() = 0;
  // The first `limit` of them behind a place, which need not be that of a chat. With a filter: of those that it wants.
  virtual Result<ChatPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit,
                                    const ChatFilter& wanted) = 0;
  // The chats that ListChats leaves out, and why, by id. A store that cannot be damaged has none.
  virtual Result<std::vector<UnreadableChat>> ListUnreadableChats() { return std::vector<UnreadableChat>(); }
  // Durable when it returns ok.
  virtual Result<ChatSummary> ChangeChat(const ChatId& chat, const ChatSettings& settings) = 0;
  // Switches the branch. kNotFound if `head` is not stored in this chat. Durable when it returns ok.
  virtual Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId head) = 0;
  // Copies the branch from its root to `last` into a new chat, atomically; durable when it returns ok. The copies keep
  // their numbers; numbers reserved in the new chat are above them. No title: that of `source`. The copy has the
  // settings of `source`, except kApproveAll, which was chosen for that chat alone. kConflict (reason "chat_exists") if
  // the name is taken.
  virtual Result<ChatSummary> ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                       const std::optional<std::string>& title) = 0;
  // Imports a whole chat, atomically; durable when it returns ok. A store that keeps no files with its chats leaves
  // them out. kConflict (reason "chat_exists") if the name is taken; the failures of `load`. REQUIRES: no journals.
  virtual Result<ChatSummary> ImportChat(const IncomingChat& chat) {
    static_cast<void>(chat);
    return Fail(ErrorCode::kForbidden, "this store takes no chats in");
  }
  // Moves this interaction and its descendants to the trash; returns their ids. kNotFound; kConflict: reason
  // "on_head_branch" if the chat's head is among them, "still_used" if another interaction took its state from one of
  // them, or a damaged one continues them. Durable when it returns ok. REQUIRES: nothing is saved in this chat
  // meanwhile.
  virtual Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from) {
    static_cast<void>(chat), static_cast<void>(from);
    return Fail(ErrorCode::kForbidden, "this store removes no branches");
  }
  // Moves the chat to the trash: it is no longer listed, but a person can find it.
  virtual Result<void> DeleteChat(const ChatId& chat) = 0;
  // The trash, last deletion first. Empty for a store without one.
  virtual Result<std::vector<TrashEntry>> ListTrash() { return std::vector<TrashEntry>(); }
  // Restores a chat from the trash, in one step; durable when it returns ok. kNotFound if this chat has no such entry,
  // kConflict (reason "chat_exists") if the name is taken, kCorruption if its summary cannot be read: it then stays in
  // the trash.
  virtual Result<ChatSummary> RestoreChat(const ChatId& chat, const std::string& entry) {
    static_cast<void>(chat), static_cast<void>(entry);
    return Fail(ErrorCode::kNotFound, "there is no such chat in the trash");
  }
};

// A store of chats, made of small interfaces; each has a conformance suite for every implementation
// (tests/store/*_conformance_test.cc). Code that needs one of them takes only that one.
//
// Common failures: kNotFound (no such chat or interaction), kCorruption (reason integrity_auth, integrity_swap,
// integrity_rollback, integrity_version, integrity_plain, integrity_sealed or integrity_missing; the neighbours stay
// readable), kIo, kStorageFull. All methods may be called from several threads; calls for one chat take effect one
// after the other.
//
//   const auto chat = *reprise::ChatId::Parse("demo");
//   if (auto made = store.CreateChat(chat, {.title = "Demo"}); !made) return Complain(made.error().message);
//   auto read = store.LoadChat(chat);
//   if (!read) return Complain(read.error().message);
//   for (const reprise::Interaction& each : read->interactions) Print(each.user_message);
class InteractionStore : public CheckpointStore, public ChatStore, public JournalStore {
 public:
  // The messages that wait in its chats.
  virtual QueueStore& queues() = 0;
  // The start of the chat's next turn.
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
  // The same for the caller of RunStore::Begin. A store shared with other processes may answer from memory, with a
  // version, or report an unknown chat as missing. Begin checks the version ("head_moved" if it is stale), and LoadHead
  // reads again.
  virtual Result<ChatHead> LoadKnownHead(const ChatId& chat) { return LoadHead(chat); }
};

}  // namespace reprise
