#include "engine/start_point.h"

#include <utility>

#include "base/try.h"
#include "engine/recovery.h"
#include "engine/run_journal.h"

namespace reprise {

// The model of the request, else the one chosen for the chat, else `otherwise`.
std::string StartPoints::ModelFor(const ChatId& chat, const StartRequest& request, const std::string& otherwise) const {
  if (!request.model.empty()) return request.model;
  const auto summary = services_.parts.store.LoadSummary(chat);
  return summary && !summary->chosen_model.empty() ? summary->chosen_model : otherwise;
}

PartRecipient StartPoints::RecipientOf(const ChatId& chat, const std::string& model) const {
  const auto workspace = services_.WorkspaceOf(chat).value_or(services_.home);
  PartRecipient recipient{.limits = services_.OptionsOf(*workspace).parts};
  if (const auto resolved = services_.ModelsOf(*workspace).Resolve(model)) {  // otherwise the run cannot begin
    recipient.abilities = resolved->abilities;
    recipient.window = resolved->context_window;
  }
  return recipient;
}

AttachmentServices StartPoints::AttachmentParts() const {
  return {services_.parts.files, services_.parts.documents, services_.parts.audio};
}

Result<Beginning> StartPoints::Load(const ChatId& chat, const StartPoint& from, const StartRequest& request,
                                    Head which) {
  if (from.kind == StartPoint::Kind::kResume) return WhereItStopped(chat, from, request);
  if (from.kind == StartPoint::Kind::kCompact) {
    auto beginning = AtHead(chat, which);
    if (beginning && !beginning->parent) return Fail(ErrorCode::kNotFound, "there is nothing in this chat to sum up");
    if (beginning && !request.model.empty()) beginning->model = request.model;
    return beginning;
  }
  if (from.kind != StartPoint::Kind::kHead) return BesideEdited(chat, from, request);
  Attached attached;
  if (request.attachments && !request.attachments->empty()) {
    auto files =
        TRY(AttachFiles(AttachmentParts(), chat, *request.attachments, RecipientOf(chat, ModelFor(chat, request, {}))));
    attached = std::move(files);
  }
  auto beginning = AtHead(chat, which);
  if (!beginning) return beginning;
  if (request.follows && *request.follows != beginning->parent) {
    Error stale = Refused(Reason::kStale, "the chat has changed meanwhile");
    stale.retryable = true;  // what follows the new head is another request
    return Fail(std::move(stale));
  }
  beginning->attached = std::move(attached);
  beginning->user_message = request.user_message;
  if (!request.model.empty()) beginning->model = request.model;
  return beginning;
}

// With the model chosen for the chat.
Result<Beginning> StartPoints::AtHead(const ChatId& chat, Head which) {
  if (interactions_.HasRescued(chat)) {
    auto rescued = TRY(AtRescued(chat));
    if (rescued) return *std::move(rescued);
  }
  InteractionStore& store = services_.parts.store;
  auto head = which == Head::kKnown ? store.LoadKnownHead(chat) : store.LoadHead(chat);
  if (!head && !IsNotFound(head.error())) return Fail(std::move(head.error()));
  if (!head) return Beginning{.makes_chat = true, .expected_head = std::optional<InteractionId>()};
  return Beginning{.parent = head->summary.head,
                   .state = std::move(head->state).value_or(AgentState{}),
                   .model = head->summary.chosen_model,
                   .chat = head->summary,
                   .expected_head = head->summary.head,
                   .expected_version = head->version};
}

// nullopt if all rescued interactions could be saved, so that the last one is now the head.
Result<std::optional<Beginning>> StartPoints::AtRescued(const ChatId& chat) {
  const auto summary = services_.parts.store.LoadSummary(chat);
  if (!summary && !IsNotFound(summary.error())) return Fail(summary.error());
  auto rescued = interactions_.RescuedAfter(chat, summary ? summary->head : std::nullopt);
  if (rescued.empty()) return std::optional<Beginning>();
  return std::optional(Beginning{.parent = rescued.back().id,
                                 .state = std::move(rescued.back().final_agent_state).value_or(AgentState{}),
                                 .model = summary ? summary->chosen_model : std::string(),
                                 .chat = summary ? std::optional(*summary) : std::nullopt});
}

Result<Beginning> StartPoints::BesideEdited(const ChatId& chat, const StartPoint& from, const StartRequest& request) {
  // Its state continues the one before it; in this order, that is put together only once.
  auto before = TRY(services_.parts.store.LoadPreviousState(chat, *from.interaction));
  auto edited = TRY(services_.parts.store.LoadInteraction(chat, *from.interaction));
  const bool again = from.kind == StartPoint::Kind::kRegenerate;
  if (again && edited.user_message.empty()) {
    return Fail(Reason::kNoMessage, "the interaction has no message that could be sent again");
  }
  std::string model = ModelFor(chat, request, edited.model);
  const PartRecipient recipient = RecipientOf(chat, model);
  Result<Attached> attached = AttachedTo(edited);
  if (request.attachments) {
    attached = AttachFiles(AttachmentParts(), chat, *request.attachments, recipient);
  } else {
    NoteFor(AttachmentParts(), chat, recipient, *attached);
  }
  if (!attached) return Fail(std::move(attached.error()));
  auto summary = TRY(services_.parts.store.LoadSummary(chat));
  return Beginning{.parent = edited.parent_id,
                   .edited_from = edited.id,
                   .state = (std::move(before)).value_or(AgentState{}),
                   .user_message = again ? edited.user_message : request.user_message,
                   .model = std::move(model),
                   .attached = *std::move(attached),
                   .chat = std::move(summary)};
}

Result<Beginning> StartPoints::WhereItStopped(const ChatId& chat, const StartPoint& from, const StartRequest& request) {
  auto ended = TRY(services_.parts.store.LoadInteraction(chat, *from.interaction));
  if (ended.status == InteractionStatus::kCompleted || !ended.final_agent_state) {
    return Fail(Reason::kNotResumable, "the interaction came to its end; there is nothing to resume");
  }
  if (ended.user_message.empty()) {
    return Fail(Reason::kNotResumable, "the interaction has no message; what it was for can be asked for again");
  }
  auto summary = TRY(services_.parts.store.LoadSummary(chat));
  Beginning beginning{.parent = ended.parent_id,
                      .edited_from = ended.id,
                      .state = *std::move(ended.final_agent_state),
                      .user_message = ended.user_message,
                      .model = ModelFor(chat, request, ended.model),
                      .attached = AttachedTo(ended),
                      .chat = std::move(summary)};
  const auto workspace = TRY(services_.WorkspaceAt(beginning.workspace()));
  beginning.interrupted = WhereToResume(beginning.state, *workspace->tools.Current());
  beginning.resumed_from = ResumedFrom{.interaction = ended.id};
  if (ended.record) beginning.resumed_span = ParseTraceparent(ended.record->traceparent).value_or(TraceContext{});
  for (const OpenCall& open : beginning.interrupted->calls) {
    beginning.resumed_from->call_ids.push_back(open.call.id);
  }
  PrepareToResume(beginning.state, beginning.resumed_from->call_ids);
  return beginning;
}

Result<void> StartPoints::Check(const ChatId& chat, const StartPoint& from, const StartRequest& request) const {
  const bool has_attachments = request.attachments && !request.attachments->empty();
  if (from.interaction) {
    if (request.if_running != IfRunning::kCancel) return {};
    TRY(interactions_.Find(chat, *from.interaction));
  }
  if (request.if_running == IfRunning::kQueue && (has_attachments || request.compact)) {
    return Fail(Reason::kInvalidMember, std::string(has_attachments ? "\"attachments\" do" : "\"compact\" does") +
                                            " not go with \"if_running\": \"queue\"");
  }
  if (!has_attachments || request.if_running == IfRunning::kReject) return {};
  return FindFiles(services_.parts.files, chat, *request.attachments);
}

}  // namespace reprise
