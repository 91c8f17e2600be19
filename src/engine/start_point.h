#pragma once

#include <optional>
#include <string>

#include "agent/agent.h"
#include "engine/attachments.h"
#include "engine/interactions.h"
#include "reprise/engine.h"

namespace reprise {

// Where a person wants an interaction to begin.
struct StartPoint {
  enum class Kind {
    kHead,        // after the chat's last interaction
    kEdit,        // as a sibling of one, with another message
    kRegenerate,  // as a sibling of one, with its message
    kResume,      // as a sibling of an unfinished one, where that stopped
    kCompact,     // after the last one, without a message: the conversation is summarized, and nothing else happens
  };
  Kind kind = Kind::kHead;
  std::optional<InteractionId> interaction = std::nullopt;  // nullopt for kHead and kCompact
};

// What a run needs to begin.
struct Beginning {
  std::optional<InteractionId> parent = std::nullopt, edited_from = std::nullopt;
  AgentState state{};                                      // the state to start from
  std::optional<Interrupted> interrupted = std::nullopt;   // set if that is in the middle of a turn
  std::optional<ResumedFrom> resumed_from = std::nullopt;  // set likewise
  TraceContext resumed_span = {};                          // likewise; invalid if it was not traced
  std::string user_message{};
  std::string model{};                // as requested, or chosen for the chat; empty for the default
  Attached attached{};                // to the message
  bool makes_chat = false;            // the chat does not exist yet
  std::optional<ChatSummary> chat{};  // as it was read, for its settings; nullopt: a new chat
  // RunBeginning::expected_head.
  std::optional<std::optional<InteractionId>> expected_head{};
  std::optional<std::int64_t> expected_version{};  // likewise

  std::string workspace() const { return chat ? chat->workspace : std::string(); }  // ChatSummary::workspace
};

// Loads the beginnings of interactions.
class StartPoints {
 public:
  StartPoints(EngineServices& services, Interactions& interactions)
      : services_(services), interactions_(interactions) {}

  // REQUIRES: the chat is occupied. kNotFound, kConflict (reasons "not_resumable", "no_message"), the store's failures.
  enum class Head { kNow, kKnown };  // kKnown may be stale: then the run cannot begin (LoadKnownHead)
  Result<Beginning> Load(const ChatId& chat, const StartPoint& from, const StartRequest& request, Head which);
  // The beginning at the chat's head now, without a message.
  Result<Beginning> AtHead(const ChatId& chat) { return AtHead(chat, Head::kNow); }
  // Checks that the target of the request exists, before a run is cancelled for it or it waits.
  Result<void> Check(const ChatId& chat, const StartPoint& from, const StartRequest& request) const;

 private:
  Result<Beginning> BesideEdited(const ChatId& chat, const StartPoint& from, const StartRequest& request);
  Result<Beginning> WhereItStopped(const ChatId& chat, const StartPoint& from, const StartRequest& request);

  std::string ModelFor(const ChatId& chat, const StartRequest& request, const std::string& otherwise) const;
  // What the model takes of attached files.
  PartRecipient RecipientOf(const ChatId& chat, const std::string& model) const;
  AttachmentServices AttachmentParts() const;
  Result<Beginning> AtHead(const ChatId& chat, Head which);
  Result<std::optional<Beginning>> AtRescued(const ChatId& chat);

  EngineServices& services_;
  Interactions& interactions_;
};

}  // namespace reprise
