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

// A message and its answer as a client of another protocol tells them.
struct ForeignTurn {
  std::string user;
  std::optional<std::string> answer{};  // nullopt: the client has none, as it failed or was stopped
  std::size_t files = 0;                // that came with the message
  bool is_tool_result = false;          // no person has written it: tools of the client have said it
};

// What an agent is asked if a conversation ends with an answer of its own, which is to go on. What it answers belongs
// to the answer before: an interaction of this message is no turn.
inline constexpr std::string_view kContinueMessage =
    "Go on with your last answer exactly where it ends, without repeating any of it.";

// What such a client sends with each request: all that was said, and what is new.
struct ForeignConversation {
  std::optional<ChatId> chat{};  // if the client names it
  std::string opening{};         // what the assistant said before the first message, as a greeting: it is no turn
  std::vector<ForeignTurn> before{};
  std::string message;
  std::size_t files = 0;  // that come with it
};

// `instructions`, and behind them what the user was shown before the first message.
std::string InstructionsFor(const ForeignConversation& conversation, std::string instructions);

// The name that the client gives a chat as one of ours: itself where it can be, else one made of it. nullopt: it is
// none, but what a client sends that knows no name yet ("", "new", an unfilled placeholder).
std::optional<ChatId> ChatNamed(std::string_view name);

// What a foreign request means for our chats.
struct ConversationPlan {
  enum class Kind { kStart, kEdit, kRegenerate };
  Kind kind = Kind::kStart;
  ChatId chat;
  std::string message{};
  std::optional<InteractionId> interaction{};  // of kEdit and kRegenerate
  std::optional<InteractionId> after{};        // of kStart: where it goes on; nullopt: at the beginning
  bool moves_head = false;                     // of kStart: `after` is not the chat's head, and becomes it first
  std::vector<SpokenTurn> unknown{};           // of kStart: what was said elsewhere behind `after`; is added first
  std::optional<InteractionId> replaces{};     // in whose place the first of `unknown` stands
  bool cancels = false;                        // the run in the chat has lost its client: it is cancelled first
  bool is_unnamed = false;                     // a new chat, as nobody has named one
  bool may_repeat = false;                     // the request may have come before
};

// Finds the chats that foreign conversations are, so that a foreign edit makes a branch and no copy. Thread-safe; reads
// stored chats, so it is for threads that may wait for the disk.
//
// A chat is found by the name that the client gives. In it the conversation is the longest beginning that they share.
// Users' messages have to be the same but for white space at the ends of lines. Answers have to say the same
// (SpokenText), or less: they may have been stopped.
// A conversation without a name belongs to a chat if it knows all that was said there, the last answer word for word,
// and no other chat is like that: people begin with the same words, and each chat is its own person's.
class Conversations {
 public:
  explicit Conversations(Engine& engine) : engine_(engine) {}  // which must outlive it

  // The failures of the store.
  Result<ConversationPlan> Find(const ForeignConversation& conversation);
  // Of a conversation that goes on after an interaction which the client names: it tells what is new. kNotFound.
  Result<ConversationPlan> FindAfter(const InteractionRef& last, const ForeignConversation& conversation);
  // Likewise at the end of a chat, which need not be there yet.
  ConversationPlan AtEndOf(const ChatId& chat, const ForeignConversation& conversation);
  // What the same request has begun before, if that must not happen twice (Engine::FollowRepeated) and no client
  // follows it; nullopt: nothing.
  Result<std::optional<EventSubscription>> FollowRepeated(const ConversationPlan& plan, const ClientRequest& request);
  // Does what the plan says: `request` begins, with the plan's message. Failures as those of Engine::Start and Edit;
  // kConflict (reason "stale") if the chat has changed since: then it is to be found again; kInvalidArgument (reason
  // "conversation_too_long") if too many turns are unknown.
  Result<EventSubscription> Begin(const ConversationPlan& plan, StartRequest request);

  // `client` lives as long as a client follows the run. After that the next request of this conversation takes the
  // run's place. It must own an object and not only a deleter, since a weak_ptr keeps the deleter.
  void NoteClient(const ChatId& chat, InteractionId interaction, std::weak_ptr<void> client);
  // The conversation has come to an answer of this SpokenDigest at that interaction: the next request is likely to go
  // on from there. Cheap, and asks the engine for nothing.
  void NoteEnd(const ForeignConversation& conversation, std::string_view spoken_digest, const InteractionRef& end);

 private:
  struct Client {
    InteractionId interaction;
    std::weak_ptr<void> client;
  };
  struct Found {
    ConversationPlan plan;
    std::size_t turns = 0;  // that the chat has
    bool is_busy = false;
  };

  struct End {
    InteractionRef at;
    bool is_ambiguous = false;  // several chats without a name have gone this way
  };
  std::optional<End> Noted(const std::string& digest);
  // Whether another chat has this title.
  Result<bool> HasTwin(const ChatId& chat, const std::string& title);
  Result<std::optional<ConversationPlan>> FindNoted(const ForeignConversation& conversation,
                                                    const std::vector<std::string>& digests);
  Result<Found> FindIn(const ChatId& chat, const ForeignConversation& conversation);
  bool HasClient(const ChatId& chat, InteractionId interaction);
  Result<ConversationPlan> FindUnnamed(const ForeignConversation& conversation,
                                       const std::vector<std::string>& digests);
  bool IsAbandoned(const ChatId& chat);

  Engine& engine_;
  Mutex mutex_;
  // Where conversations have ended, by the digest of all that was said; the oldest are forgotten.
  std::unordered_map<std::string, End> ends_ GUARDED_BY(mutex_);
  std::deque<std::string> noted_ GUARDED_BY(mutex_);
  std::unordered_map<ChatId, Client> clients_ GUARDED_BY(mutex_);
};

}  // namespace reprise
