#pragma once

#include <optional>
#include <string>

#include "agent/agent.h"
#include "engine/attachments.h"
#include "engine/interactions.h"
#include "engine/run_journal.h"
#include "reprise/engine.h"

namespace reprise {

// Where a person wants an interaction to begin.
struct StartPoint {
  enum class Kind {
    kHead,        // behind the chat's last interaction
    kEdit,        // beside one, with another message
    kRegenerate,  // beside one, with its message
    kResume,      // beside one that did not come to its end, where that stopped
    kCompact,     // behind the last one, without a message: what was said is summed up, and nothing else happens
  };
  Kind kind = Kind::kHead;
  std::optional<InteractionId> interaction = std::nullopt;  // nullopt for kHead and kCompact
};

// What an interaction begins with.
struct Beginning {
  std::optional<InteractionId> parent = std::nullopt, edited_from = std::nullopt;
  AgentState state{};                                      // what it starts from
  std::optional<Interrupted> interrupted = std::nullopt;   // set if that is in the middle of a turn
  std::optional<ResumedFrom> resumed_from = std::nullopt;  // set likewise
  TraceContext resumed_span = {};                          // likewise; not valid: it was not traced
  std::string user_message{};
  std::string model{};      // that was asked for, or chosen for the chat; empty: the default
  Attached attached{};      // to the message
  bool makes_chat = false;  // there is none of that name yet
  // RunBeginning::expected_head.
  std::optional<std::optional<InteractionId>> expected_head{};
  std::optional<std::int64_t> expected_version{};  // likewise
};

// Puts together what interactions begin with.
class StartPoints {
 public:
  StartPoints(EngineServices& services, Interactions& interactions)
      : services_(services), interactions_(interactions) {}

  // REQUIRES: the chat is occupied. kNotFound, kConflict (reasons "not_resumable", "no_message"), the store's failures.
  enum class Head { kNow, kKnown };  // kKnown: if it is another by now, the run cannot begin (LoadKnownHead)
  Result<Beginning> Load(const ChatId& chat, const StartPoint& from, const StartRequest& request, Head which);
  // Without a message, as the chat is now.
  Result<Beginning> AtHead(const ChatId& chat) { return AtHead(chat, Head::kNow); }
  // Before a run is cancelled for it, or it waits: what the request is about has to be there.
  Result<void> Check(const ChatId& chat, const StartPoint& from, const StartRequest& request) const;

 private:
  Result<Beginning> BesideEdited(const ChatId& chat, const StartPoint& from, const StartRequest& request);
  Result<Beginning> WhereItStopped(const ChatId& chat, const StartPoint& from, const StartRequest& request);

  std::string ModelFor(const ChatId& chat, const StartRequest& request, const std::string& otherwise) const;
  // Of attached files.
  PartRecipient RecipientOf(const std::string& model) const;
  AttachmentServices AttachmentParts() const;
  Result<Beginning> AtHead(const ChatId& chat, Head which);
  Result<std::optional<Beginning>> AtRescued(const ChatId& chat);

  EngineServices& services_;
  Interactions& interactions_;
};

}  // namespace reprise
