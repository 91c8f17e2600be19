#include "doors/mcp_door/ask_translator.h"

#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "domain/transcript/event_visitor.h"
#include "doors/mcp_door/message.h"
#include "doors/shown_text.h"

namespace reprise::mcp_door {
namespace {

constexpr std::size_t kShownArguments = 300;

std::string Shortened(const std::string& text) {
  const std::string line = VisibleOnOneLine(text);
  const std::string_view begin = Utf8Prefix(line, kShownArguments);
  return begin.size() < line.size() ? std::string(begin) + "..." : line;
}

}  // namespace

Json ToolResult(const std::string& text, Json structured, bool is_error) {
  Json result = {{"content", Json::array({{{"type", "text"}, {"text", text}}})}};
  if (structured.is_object()) result["structuredContent"] = std::move(structured);
  if (is_error) result["isError"] = true;
  return result;
}

std::string RequestIdFor(const std::string& question, int times) {
  return times == 1 ? question : question + "." + std::to_string(times);
}

std::string QuestionOf(const std::string& request_id) { return request_id.substr(0, request_id.find('.')); }

std::string WriteRequestState(const RequestState& state) {
  return EncodeBase64Url(DumpJson({{"chat", state.run.chat_id.str()},
                                   {"interaction", state.run.interaction_id.str()},
                                   {"call", state.call_digest},
                                   {"seq", state.last_question}}));
}

std::optional<RequestState> ReadRequestState(const std::string& text) {
  const auto bytes = DecodeBase64Url(text);
  const auto json = bytes ? ParseJson(*bytes) : Result<Json>(Json());
  if (!json || !json->is_object()) return std::nullopt;
  const auto chat = ChatId::Parse(TextMember(*json, "chat"));
  const auto interaction = InteractionId::Parse(TextMember(*json, "interaction"));
  const Json& seq = MemberOf(*json, "seq");
  if (!chat || !interaction || !seq.is_number_unsigned()) return std::nullopt;
  return RequestState{.run = {*chat, *interaction},
                      .call_digest = TextMember(*json, "call"),
                      .last_question = seq.get<std::uint64_t>()};
}

void AskTranslator::Send(const std::string& message, std::string& out) const {
  if (options_.streams) {
    out += "data: " + message + "\n\n";
  }
}

void AskTranslator::Progress(std::uint64_t seq, const std::string& what, std::string& out) const {
  if (options_.progress_token.is_null() || seq <= options_.after_seq) return;
  Send(NotificationMessage("notifications/progress",
                           {{"progressToken", options_.progress_token}, {"progress", seq}, {"message", what}}),
       out);
}

void AskTranslator::Ask(const std::string& id, const Json& form, std::string& out) {
  const auto again = options_.session ? options_.session->TakeAskAgain(id) : std::nullopt;
  const bool is_asked = asked_.contains(id);
  if (is_asked && !again) return;
  Json request = {
      {"jsonrpc", "2.0"}, {"id", RequestIdFor(id, ++asked_[id])}, {"method", "elicitation/create"}, {"params", form}};
  if (is_asked) {
    request["params"]["message"] = TextMember(form, "message") + "\n\nThe answer before could not be used: " + *again;
  }
  Send(DumpJson(request), out);
}

// The question was answered, here or elsewhere.
void AskTranslator::Settle(const std::string& id, std::string& out) {
  waiting_.erase(id);
  const auto asked = asked_.find(id);
  if (asked == asked_.end()) return;
  if (auto why = options_.session ? options_.session->WhyUnasked(id) : ""; !why.empty()) unasked_ = std::move(why);
  const std::string request = RequestIdFor(id, asked->second);
  if (options_.session && options_.session->HasAnswered(request)) return;
  Send(
      NotificationMessage("notifications/cancelled", {{"requestId", request}, {"reason", "it was answered elsewhere"}}),
      out);
}

void AskTranslator::TakeRetry(std::uint64_t seq, const event::Retry& retry, std::string& out) const {
  const std::string why = "the model is asked again: " + retry.message;
  Progress(seq, why, out);
  if (!options_.session || !options_.session->IsToldWarnings()) return;
  Send(NotificationMessage("notifications/message", {{"level", "warning"}, {"logger", "reprise"}, {"data", why}}), out);
}

void AskTranslator::TakeEvent(const AgentEvent& event, std::string& out) {
  run_.Take(event);
  const auto call = [&](const event::ToolCallStarted& e) {
    Progress(event.seq, e.tool_name + " " + Shortened(e.tool_input), out);
  };
  std::visit(
      Overload{Ignoring<event::InteractionStarted, event::ThinkingDelta, event::TextDelta, event::Thinking,
                        event::MessageText, event::Answer, event::ToolOutputDelta, event::ToolResult,
                        event::TaskUpdated, event::PlanUpdated, event::GrantsUpdated, event::Usage, event::LoopDetected,
                        event::SentBack, event::WebSearch, event::SoundDelta, event::Sound, event::Compacted,
                        event::JobStarted, event::JobEnded, event::FilesChanged, event::Cancelled, event::Failed>(),
               call,
               [&](const event::Nested& e) {
                 if (const auto* const started = std::get_if<event::ToolCallStarted>(&e.step)) call(*started);
               },
               [&](const event::Retry& e) { TakeRetry(event.seq, e, out); },
               [&](const event::ApprovalRequired& e) {
                 waiting_[e.approval_id] = ApprovalForm(e);
                 last_question_ = event.seq;
               },
               [&](const event::InputRequired& e) {
                 waiting_[e.request_id] = InputForm(e, options_.can_open_urls);
                 last_question_ = event.seq;
               },
               [&](const event::Approved& e) { Settle(e.approval_id, out); },
               [&](const event::Rejected& e) { Settle(e.approval_id, out); },
               [&](const event::InputReceived& e) { Settle(e.request_id, out); },
               [&](const event::InteractionComplete&) { waiting_.clear(); }},
      event.payload);
}

// All published events have been taken. Questions asked together are published together, so all of them are here.
void AskTranslator::Rest(std::string& out) {
  if (is_over_) return;
  for (const std::string& id : options_.answered) waiting_.erase(id);
  if (waiting_.empty()) return;
  switch (options_.asking) {
    case Asking::kNowhere:
      return FinishWaiting(out);
    case Asking::kInStream:
      for (const auto& [id, form] : waiting_) Ask(id, form, out);
      return;
    case Asking::kInResult:
      Json requests = Json::object();
      for (const auto& [id, form] : waiting_) requests[id] = {{"method", "elicitation/create"}, {"params", form}};
      return Finish({{"resultType", "input_required"},
                     {"inputRequests", std::move(requests)},
                     {"requestState", WriteRequestState({.run = options_.run,
                                                         .call_digest = options_.call_digest,
                                                         .last_question = last_question_})}},
                    out);
  }
}

void AskTranslator::Finish(Json result, std::string& out) {
  is_over_ = true;
  const std::string message = ResultMessage(options_.id, std::move(result), options_.is_stateless);
  if (options_.streams) return Send(message, out);
  out += message;
}

void AskTranslator::FinishWaiting(std::string& out) {
  std::string text = "The agent waits for a person.";
  for (const auto& [id, form] : waiting_) text += "\n\n" + TextMember(form, "message");
  text += "\n\nThis client cannot ask. A person can answer " + options_.where +
          "; the agent goes on then, and `read_chat` with this chat_id has what came of it.";
  Finish(ToolResult(text, {{"chat_id", options_.run.chat_id.str()},
                           {"interaction_id", options_.run.interaction_id.str()},
                           {"status", "WAITING"},
                           {"answer", ""}}),
         out);
}

void AskTranslator::End(bool complete, std::string& out) {
  if (is_over_) return;
  is_over_ = true;
  const bool is_done = run_.status == InteractionStatus::kCompleted;
  if (options_.call && options_.call->is_cancelled() && !is_done) return;  // no client waits for a response
  const bool failed = !complete || !is_done;
  std::string text = run_.answer.content;
  if (!complete) {
    text =
        "the server is stopping; what waits goes on when it has started again: `approve` with this chat_id follows it";
  } else if (run_.status == InteractionStatus::kCancelled) {
    text = "the run was cancelled";
  } else if (failed) {
    text = run_.failure.message.empty() ? "the run has failed" : run_.failure.message;
  }
  if (options_.is_repeated && complete && failed) text += kRepeatedNote;
  Json result = ToolResult(text,
                           {{"chat_id", options_.run.chat_id.str()},
                            {"interaction_id", options_.run.interaction_id.str()},
                            {"status", complete && run_.status ? ToString(*run_.status) : "STOPPING"},
                            {"answer", run_.answer.content}},
                           failed);
  for (const WebSource& source : SourcesOf(run_.answer.citations)) {
    const std::string& name = source.title.empty() ? source.url : source.title;
    result["content"].push_back({{"type", "resource_link"}, {"uri", source.url}, {"name", name}});
  }
  if (!unasked_.empty()) {
    const std::string note = "The person was not asked: " + unasked_ + ". That counts as a form that was dismissed.";
    result["content"].push_back({{"type", "text"}, {"text", note}});
  }
  Finish(std::move(result), out);
}

}  // namespace reprise::mcp_door
