#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// A message and its answer, as a client of another protocol sends them.
struct ForeignTurn {
  std::string user;
  std::optional<std::string> answer{};  // nullopt: the client has none, because the run failed or was stopped
  std::size_t files = 0;                // sent with the message
  bool is_tool_result = false;          // not written by a person, but by the client's tools
};

// Asks an agent to continue if a conversation ends with one of its answers. The continuation belongs to that answer, so
// an interaction with this message is no turn.
inline constexpr std::string_view kContinueMessage =
    "Go on with your last answer exactly where it ends, without repeating any of it.";

// What such a client sends with each request: the whole conversation, and the new message.
struct ForeignConversation {
  std::optional<ChatId> chat{};  // if the client names it
  std::string workspace{};       // where it works, without symbolic links; empty: the client does not say
  std::string opening{};         // a greeting by the assistant before the first message; no turn
  std::vector<ForeignTurn> before{};
  std::string message;
  std::size_t files = 0;  // sent with `message`
};

// `instructions`, followed by the greeting that the user saw before the first message.
std::string InstructionsFor(const ForeignConversation& conversation, std::string instructions);

// Turns a client's name for a chat into an id: the name itself if it can be one, otherwise an id made of its digest.
// nullopt if it is no name, but what a client sends that has none yet ("", "new", an unfilled placeholder).
std::optional<ChatId> ChatNamed(std::string_view name);

// How a foreign request applies to our chats.
struct ConversationPlan {
  enum class Kind { kStart, kEdit, kRegenerate };
  Kind kind = Kind::kStart;
  ChatId chat;
  std::string message{};
  std::optional<InteractionId> interaction{};  // for kEdit and kRegenerate
  std::optional<InteractionId> after{};        // for kStart: the interaction before it; nullopt: it is the first
  bool moves_head = false;                     // for kStart: `after` is not the head, and becomes it first
  std::vector<SpokenTurn> unknown{};           // for kStart: turns after `after` that the chat lacks; added first
  std::optional<InteractionId> replaces{};     // the sibling that the first of `unknown` supersedes
  bool cancels = false;                        // cancels the chat's run first, which has lost its client
  bool is_unnamed = false;                     // a new chat, because the client named none
  bool may_repeat = false;                     // the request may be a repeated one
};

// Finds the chats of foreign conversations, so that a foreign edit makes a branch and no copy. Thread-safe. Reads
// stored chats, so its callers must be allowed to wait for the disk.
//
// A client may name the chat. The conversation then continues at the end of the longest beginning that it shares with
// the chat. Users' messages must be equal except for white space at the ends of lines. Answers must say the same
// (SpokenText), or only the beginning of it, because they may have been stopped.
//
// A conversation without a name belongs to a chat if it contains all turns of it, with the last answer word for word,
// and if this is true of no other chat: people begin with the same words, but a chat belongs to one person. Where the
// client says a folder, only chats that work there count.
class Conversations {
 public:
  explicit Conversations(Engine& engine) : engine_(engine) {}  // the engine must outlive this object

  // Fails like the store.
  Result<ConversationPlan> Find(const ForeignConversation& conversation);
  // For a conversation that continues after an interaction that the client names, and that contains only what is new.
  // kNotFound.
  Result<ConversationPlan> FindAfter(const InteractionRef& last, const ForeignConversation& conversation);
  // The same at the end of a chat, which need not exist yet.
  ConversationPlan AtEndOf(const ChatId& chat, const ForeignConversation& conversation);
  // The run that the same unnamed request has begun before, if it must not be begun twice (Engine::FollowRepeated) and
  // no client follows it; otherwise nullopt.
  Result<std::optional<EventSubscription>> FollowRepeated(const ConversationPlan& plan, const ClientRequest& request);
  // Executes the plan: begins `request` with the plan's message. Fails like Engine::Start, Edit, AddTurns and MoveHead;
  // kConflict (reason "stale") if the chat has changed since and must be found again; kInvalidArgument (reason
  // "conversation_too_long") if too many turns are unknown.
  Result<EventSubscription> Begin(const ConversationPlan& plan, StartRequest request);

  // `client` lives as long as a client follows the run. After that, the next request of this conversation may cancel
  // the run. `client` must own an object and not only a deleter, because a weak_ptr keeps the deleter.
  void NoteClient(const ChatId& chat, InteractionId interaction, std::weak_ptr<void> client);
  // Notes that the conversation ends at that interaction, with an answer of this SpokenDigest, because the next request
  // is likely to continue there. Cheap; does not call the engine.
  void NoteEnd(const ForeignConversation& conversation, std::string_view spoken_digest, const InteractionRef& end);

 private:
  struct Client {
    InteractionId interaction;
    std::weak_ptr<void> client;
  };
  struct Found {
    ConversationPlan plan;
    std::size_t turns = 0;  // that the chat and the conversation share
    bool is_busy = false;
  };

  struct End {
    InteractionRef at;
    bool is_ambiguous = false;  // several unnamed chats have the same turns
  };
  std::optional<End> Noted(const std::string& digest);
  // True if another chat has this title.
  Result<bool> HasTwin(const ChatId& chat, const std::string& title);
  // Whether a chat works in another folder than a conversation that names no chat.
  bool IsElsewhere(const ChatListEntry& entry, const ForeignConversation& conversation) const;
  Result<std::optional<ConversationPlan>> FindNoted(const ForeignConversation& conversation,
                                                    const std::vector<std::string>& digests);
  Result<Found> FindIn(const ChatId& chat, const ForeignConversation& conversation);
  bool HasClient(const ChatId& chat, InteractionId interaction);
  Result<ConversationPlan> FindUnnamed(const ForeignConversation& conversation,
                                       const std::vector<std::string>& digests);
  bool IsAbandoned(const ChatId& chat);

  Engine& engine_;
  Mutex mutex_;
  // The ends of conversations, by a digest of all turns; the oldest are forgotten.
  std::unordered_map<std::string, End> ends_ GUARDED_BY(mutex_);
  std::deque<std::string> noted_ GUARDED_BY(mutex_);
  std::unordered_map<ChatId, Client> clients_ GUARDED_BY(mutex_);
};

}  // namespace reprise
