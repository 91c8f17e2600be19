#include "doors/ag_ui/run_translator.h"

#include <algorithm>
#include <utility>

#include "base/terminal_text.h"
#include "domain/codec.h"
#include "domain/transcript/event_visitor.h"

namespace reprise::ag_ui {
namespace {

std::string Data(const Json& event) { return "data: " + DumpJson(event) + "\n\n"; }

Json RunError(const std::string& code, const std::string& message) {
  return {{"type", "RUN_ERROR"}, {"message", message}, {"code", code}};
}

Json RunStarted(const RunTranslator::Options& options, const std::string& parent_run) {
  Json started = {{"type", "RUN_STARTED"}, {"threadId", options.thread_id}, {"runId", options.run_id}};
  if (options.is_current) started["protocolVersion"] = "1.0";
  const std::string& parent = options.parent_run_id.empty() ? parent_run : options.parent_run_id;
  if (!parent.empty()) started["parentRunId"] = parent;
  return started;
}

}  // namespace

std::string RunTranslator::Refusal(const Options& options, const std::string& code, const std::string& message) {
  return Data(RunStarted(options, "")) + Data(RunError(code, message));
}

void RunTranslator::Emit(std::string& out, const Json& event) {
  if (!is_silent_) out += Data(event);
}

// --- the frame of a run ------------------------------------------------------------------------------------------

void RunTranslator::Begin(std::string& out) {
  interaction_ = options_.interaction;
  if (!interaction_.empty()) Start(out);
}

void RunTranslator::Start(std::string& out) {
  if (std::exchange(has_begun_, true)) return;
  Json started = RunStarted(options_, parent_run_);
  if (!interaction_.empty()) started["metadata"] = {{"reprise", {{"interactionId", interaction_}}}};
  out += Data(started);
  if (options_.shown_messages) out += Data({{"type", "MESSAGES_SNAPSHOT"}, {"messages", *options_.shown_messages}});
  out += Data({{"type", "STATE_SNAPSHOT"}, {"snapshot", state_}});
}

Json RunTranslator::Usage() const {
  const TokenUsage used = Used();
  if (used.input_tokens == 0 && used.output_tokens == 0) return nullptr;
  Json usage = Json::object();
  const std::size_t slash = run_.model.find('/');
  if (slash != std::string::npos) usage["provider"] = run_.model.substr(0, slash);
  if (!run_.model.empty()) usage["model"] = slash == std::string::npos ? run_.model : run_.model.substr(slash + 1);
  usage.update({{"inputTokens", used.input_tokens},
                {"outputTokens", used.output_tokens},
                {"totalTokens", used.input_tokens + used.output_tokens}});
  // Zero would mean that the provider counted none, but mostly it did not report this number.
  if (used.cache_read_tokens > 0) usage["cachedInputTokens"] = used.cache_read_tokens;
  if (used.cache_write_tokens > 0) usage["cacheWriteInputTokens"] = used.cache_write_tokens;
  return Json::array({std::move(usage)});
}

// The usage of the model calls since this request.
TokenUsage RunTranslator::Used() const {
  TokenUsage used = usage_;
  if (options_.pending_usage) used += options_.pending_usage();
  const TokenUsage& before = options_.before.pending;
  const auto less = [](std::int64_t all, std::int64_t told) { return std::max<std::int64_t>(all - told, 0); };
  return {.input_tokens = less(used.input_tokens, before.input_tokens),
          .output_tokens = less(used.output_tokens, before.output_tokens),
          .cache_read_tokens = less(used.cache_read_tokens, before.cache_read_tokens),
          .cache_write_tokens = less(used.cache_write_tokens, before.cache_write_tokens)};
}

void RunTranslator::Finish(std::string& out, Json outcome) {
  CloseAll(out);
  Json finished = {{"type", "RUN_FINISHED"},
                   {"threadId", options_.thread_id},
                   {"runId", options_.run_id},
                   {"outcome", std::move(outcome)}};
  if (Json usage = Usage(); !usage.is_null()) finished["usage"] = std::move(usage);
  out += Data(finished);
  is_over_ = true;
}

void RunTranslator::Break(std::string& out, const std::string& code, const std::string& message) {
  CloseAll(out);
  Json error = RunError(code, message);
  if (Json usage = Usage(); !usage.is_null()) error["usage"] = std::move(usage);
  out += Data(error);
  is_over_ = true;
}

void RunTranslator::CloseAll(std::string& out) {
  is_silent_ = false;
  EndThought(out);
  EndText(out);
  for (auto& [call, agent] : sub_agents_) {
    if (!std::exchange(agent.is_open, false)) continue;
    Json finished = {{"type", "SUBAGENT_FINISHED"}, {"subagentRunId", Id("agent-" + call)}};
    if (!interrupts_.empty()) finished["outcome"] = {{"type", "suspended"}};
    Emit(out, finished);
  }
}

// All published events have been taken. Questions asked together are published together, so all of them are here.
void RunTranslator::Rest(std::string& out) {
  if (interrupts_.empty() || is_over_) return;
  is_silent_ = false;
  EndThought(out);
  EndText(out);
  Json messages = options_.shown_messages ? *options_.shown_messages : options_.messages;
  std::set<std::string> known;
  for (const Json& message : messages) known.insert(TextMember(message, "id"));
  for (const Json& message : messages_) {
    if (!known.contains(TextMember(message, "id"))) messages.push_back(message);
  }
  Emit(out, {{"type", "MESSAGES_SNAPSHOT"}, {"messages", std::move(messages)}});
  Emit(out, {{"type", "STATE_SNAPSHOT"}, {"snapshot", state_}});
  Json interrupts = Json::array();
  for (const auto& [id, interrupt] : interrupts_) interrupts.push_back(interrupt);
  Finish(out, {{"type", "interrupt"}, {"interrupts", std::move(interrupts)}});
}

void RunTranslator::End(bool complete, std::string& out) {
  if (is_over_) return;
  is_silent_ = false;
  Start(out);
  if (!complete) {
    Break(out, "stopping", "the server is stopping; the thread goes on when it has started again");
  } else if (run_.status == InteractionStatus::kFailed) {
    const auto& [code, message, is_retryable] = run_.failure;
    Break(out, code.empty() ? "failed" : code, message.empty() ? "the run has failed" : message);
  } else if (run_.status == InteractionStatus::kCancelled) {
    if (!options_.is_current) return Break(out, "cancelled", "the run was cancelled");
    Finish(out, {{"type", "cancelled"}});
  } else {
    Finish(out, {{"type", "success"}});
  }
  if (complete && options_.ended && run_.run) options_.ended(*run_.run, answer_);
}

void RunTranslator::EndWithNothing(std::string& out) {
  Start(out);
  Finish(out, {{"type", "success"}});
}

// --- text ---------------------------------------------------------------------------------------------------------

void RunTranslator::TakePiece(std::uint64_t seq, Piece piece, std::string_view escaped, std::string& out) {
  const bool is_text = piece == Piece::kText;
  is_silent_ = seq <= options_.after_seq;
  is_text ? BeginText(out) : BeginThought(out);
  if (is_silent_) return;
  out += is_text ? R"(data: {"type":"TEXT_MESSAGE_CONTENT","messageId":")"
                 : R"(data: {"type":"REASONING_MESSAGE_CONTENT","messageId":")";
  out += (is_text ? text_ : thought_).id;
  out += R"(","delta":")";
  out += escaped;
  out += "\"}\n\n";
}

void RunTranslator::BeginText(std::string& out) {
  if (std::exchange(text_.is_open, true)) return;
  EndThought(out);
  text_.id = Id("message-" + std::to_string(text_count_++));
  Emit(out, {{"type", "TEXT_MESSAGE_START"}, {"messageId", text_.id}, {"role", "assistant"}});
}

void RunTranslator::EndText(std::string& out) {
  if (std::exchange(text_.is_open, false)) Emit(out, {{"type", "TEXT_MESSAGE_END"}, {"messageId", text_.id}});
}

void RunTranslator::BeginThought(std::string& out) {
  if (std::exchange(thought_.is_open, true)) return;
  thought_.id = Id("thought-" + std::to_string(thought_count_++));
  Emit(out, {{"type", "REASONING_START"}, {"messageId", thought_.id}});
  Emit(out, {{"type", "REASONING_MESSAGE_START"}, {"messageId", thought_.id}, {"role", "reasoning"}});
}

void RunTranslator::EndThought(std::string& out) {
  if (!std::exchange(thought_.is_open, false)) return;
  Emit(out, {{"type", "REASONING_MESSAGE_END"}, {"messageId", thought_.id}});
  Emit(out, {{"type", "REASONING_END"}, {"messageId", thought_.id}});
}

Json& RunTranslator::MessageFor(const std::string& id) {
  const auto found = std::find_if(messages_.begin(), messages_.end(),
                                  [&](const Json& message) { return TextMember(message, "id") == id; });
  if (found != messages_.end()) return *found;
  messages_.push_back({{"id", id}, {"role", "assistant"}});
  return messages_.back();
}

void RunTranslator::TakeThought(const std::string& content, std::string& out) {
  if (!thought_.is_open && thought_.id.empty() && !content.empty()) {
    BeginThought(out);
    Emit(out, {{"type", "REASONING_MESSAGE_CONTENT"}, {"messageId", thought_.id}, {"delta", content}});
  }
  EndThought(out);
  const std::string id = std::exchange(thought_.id, {});
  if (!id.empty()) messages_.push_back({{"id", id}, {"role", "reasoning"}, {"content", content}});
}

void RunTranslator::TakeText(const std::string& content, std::uint32_t round, std::string& out) {
  answer_ += content;
  if (!text_.is_open && !content.empty()) {
    BeginText(out);
    Emit(out, {{"type", "TEXT_MESSAGE_CONTENT"}, {"messageId", text_.id}, {"delta", content}});
  }
  if (text_.is_open) {
    MessageFor(text_.id)["content"] = content;
    parent_ = text_.id;
    parent_round_ = round;
  }
  EndText(out);
}

// --- calls -------------------------------------------------------------------------------------------------------

void RunTranslator::Announce(const std::string& call, const std::string& name, const std::string& input,
                             std::uint32_t round, std::string& out) {
  if (!announced_.insert(call).second) return;
  EndThought(out);
  EndText(out);
  if (parent_.empty() || parent_round_ != round) parent_ = Id("message-" + std::to_string(text_count_++));
  parent_round_ = round;
  const std::string id = Id(call), arguments = input.empty() ? "{}" : input;
  Emit(out, {{"type", "TOOL_CALL_START"}, {"toolCallId", id}, {"toolCallName", name}, {"parentMessageId", parent_}});
  Emit(out, {{"type", "TOOL_CALL_ARGS"}, {"toolCallId", id}, {"delta", arguments}});
  Emit(out, {{"type", "TOOL_CALL_END"}, {"toolCallId", id}});
  MessageFor(parent_)["toolCalls"].push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}});
}

void RunTranslator::TakeResult(const event::ToolResult& result, std::uint32_t round, std::string& out) {
  const std::string &call = result.id, &output = result.tool_output;
  Announce(call, result.tool_name, "", round, out);  // a call that never ran has a result too
  if (const auto agent = sub_agents_.find(call); agent != sub_agents_.end() && agent->second.is_open) {
    agent->second.is_open = false;
    const std::string id = Id("agent-" + call);
    Emit(out, result.is_error ? Json{{"type", "SUBAGENT_ERROR"}, {"subagentRunId", id}, {"message", output}}
                              : Json{{"type", "SUBAGENT_FINISHED"}, {"subagentRunId", id}});
  }
  const std::string id = Id("result-" + call);
  Emit(out, {{"type", "TOOL_CALL_RESULT"},
             {"messageId", id},
             {"toolCallId", Id(call)},
             {"content", output},
             {"role", "tool"}});
  Json message = {{"id", id}, {"role", "tool"}, {"content", output}, {"toolCallId", Id(call)}};
  if (result.is_error) message["error"] = output;
  messages_.push_back(std::move(message));
}

// The output of a running command: an activity to which each piece is added.
void RunTranslator::TakeOutput(const event::ToolOutputDelta& output, std::string& out) {
  const std::string &call = output.id, &piece = output.content;
  const std::string id = Id("output-" + call);
  if (outputs_[call]++ == 0) {
    Emit(out, {{"type", "ACTIVITY_SNAPSHOT"},
               {"messageId", id},
               {"activityType", "TOOL_OUTPUT"},
               {"content", {{"toolCallId", Id(call)}, {"output", Json::array({piece})}}}});
    return;
  }
  Emit(out, {{"type", "ACTIVITY_DELTA"},
             {"messageId", id},
             {"activityType", "TOOL_OUTPUT"},
             {"patch", Json::array({{{"op", "add"}, {"path", "/output/-"}, {"value", piece}}})}});
}

void RunTranslator::TakeNested(const event::Nested& nested, std::string& out) {
  if (const auto* const usage = std::get_if<event::Usage>(&nested.step)) AddUsage(usage->tokens);
  if (const auto* const ended = std::get_if<event::ToolResult>(&nested.step)) {
    event::ToolResult own = *ended;  // of a call that a person was asked about, which is shown as one of the run
    own.id = event::NestedCallId(nested.call_id, own.id);
    if (announced_.contains(own.id)) TakeResult(own, parent_round_, out);
  }
  if (!options_.is_current) return;  // older clients break on sub-agents
  const std::string agent = Id("agent-" + nested.call_id);
  SubAgent& sub = sub_agents_[nested.call_id];
  if (!std::exchange(sub.is_open, true)) {
    Emit(out, {{"type", "SUBAGENT_STARTED"},
               {"subagentRunId", agent},
               {"name", "research"},
               {"parentToolCallId", Id(nested.call_id)}});
  }
  const auto emit = [&](Json event) {
    event["subagentRunId"] = agent;
    Emit(out, event);
  };
  const auto say = [&](const std::string& said) {
    const std::string id = agent + "-message-" + std::to_string(sub.messages++);
    if (said.empty()) return;
    emit({{"type", "TEXT_MESSAGE_START"}, {"messageId", id}, {"role", "assistant"}});
    emit({{"type", "TEXT_MESSAGE_CONTENT"}, {"messageId", id}, {"delta", said}});
    emit({{"type", "TEXT_MESSAGE_END"}, {"messageId", id}});
    messages_.push_back({{"id", id}, {"role", "assistant"}, {"content", said}, {"subagentRunId", agent}});
  };
  std::visit(
      Overload{Ignoring<event::Thinking, event::WebSearch, event::Usage, event::Retry, event::LoopDetected,
                        event::Compacted, event::Failed>(),
               [&](const event::MessageText& e) { say(e.content); }, [&](const event::Answer& e) { say(e.content); },
               [&](const event::ToolCallStarted& e) {
                 const std::string id = agent + "-" + e.id;
                 emit({{"type", "TOOL_CALL_START"}, {"toolCallId", id}, {"toolCallName", e.tool_name}});
                 emit({{"type", "TOOL_CALL_ARGS"},
                       {"toolCallId", id},
                       {"delta", e.tool_input.empty() ? "{}" : e.tool_input}});
                 emit({{"type", "TOOL_CALL_END"}, {"toolCallId", id}});
               },
               [&](const event::ToolResult& e) {
                 const std::string id = agent + "-" + e.id;
                 emit({{"type", "TOOL_CALL_RESULT"},
                       {"messageId", id + "-result"},
                       {"toolCallId", id},
                       {"content", e.tool_output},
                       {"role", "tool"}});
               }},
      nested.step);
}

// --- questions ----------------------------------------------------------------------------------------------------

void RunTranslator::AskApproval(const event::ApprovalRequired& asked) {
  if (options_.answered.contains(asked.approval_id)) return;
  Json schema = {{"type", "object"},
                 {"properties",
                  {{"approved", {{"type", "boolean"}}},
                   {"editedArgs", {{"type", "object"}, {"description", "Replaces the arguments as a whole"}}},
                   {"feedback", {{"type", "string"}, {"description", "Words for the model"}}},
                   {"scope", {{"type", "string"}, {"enum", {"once", "chat", "always"}}}}}},
                 {"required", Json::array({"approved"})}};
  if (asked.allows(kApproveOutside)) {
    schema["properties"]["outsideSandbox"] = {
        {"type", "boolean"},
        {"description", "Lets this one call run outside the sandbox: all files, the network and secrets"}};
  }
  Json ours = {
      {"risk", asked.risk}, {"argumentsDigest", asked.arguments_digest}, {"allowedDecisions", asked.allowed_decisions}};
  for (const CallPattern& pattern : asked.patterns) ours["patterns"].push_back(ToJson(pattern));
  Json interrupt = {{"id", asked.approval_id},
                    {"reason", "tool_call"},
                    {"message", asked.tool_name + " " + EscapeHidden(asked.tool_input) + "\n" + asked.reason},
                    {"toolCallId", Id(asked.call_id)},
                    {"responseSchema", std::move(schema)},
                    {"metadata", {{"reprise", std::move(ours)}}}};
  if (asked.expires_at) interrupt["expiresAt"] = FormatTimestamp(*asked.expires_at);
  interrupts_.emplace_back(asked.approval_id, std::move(interrupt));
}

void RunTranslator::AskInput(const event::InputRequired& asked) {
  if (options_.answered.contains(asked.request_id)) return;
  const auto form = ParseJson(asked.schema.value_or(""));
  Json interrupt = {{"id", asked.request_id},
                    {"reason", "input_required"},
                    {"message", asked.question},
                    {"toolCallId", Id(asked.call_id)},
                    {"responseSchema", form && form->is_object() ? *form : Json{{"type", "string"}}}};
  Json ours = Json::object();
  if (!asked.options.empty()) ours["options"] = asked.options;
  if (asked.url) ours["url"] = *asked.url;
  if (!ours.empty()) interrupt["metadata"] = {{"reprise", std::move(ours)}};
  interrupts_.emplace_back(asked.request_id, std::move(interrupt));
}

// --- all other events ---------------------------------------------------------------------------------------------

void RunTranslator::AddUsage(const TokenUsage& usage) {
  if (seq_ > options_.before.last_seq) usage_ += usage;  // the response before has reported earlier usage
}

void RunTranslator::SetState(const char* member, Json value, std::string& out) {
  state_[member] = value;
  Emit(out, {{"type", "STATE_DELTA"},
             {"delta", Json::array({{{"op", "replace"}, {"path", std::string("/") + member}, {"value", value}}})}});
}

void RunTranslator::TakeStarted(const event::InteractionStarted& started, std::string& out) {
  interaction_ = started.interaction_id;
  parent_run_ = started.edited_from.value_or("");
  if (options_.began && run_.run) options_.began(*run_.run);
  Start(out);
}

void RunTranslator::TakeEvent(const AgentEvent& event, std::string& out) {
  seq_ = event.seq;
  is_silent_ = seq_ <= options_.after_seq;
  run_.Take(event);
  const std::uint32_t round = event.round_index;
  const auto settle = [&](const std::string& id) {
    std::erase_if(interrupts_, [&](const auto& each) { return each.first == id; });
  };
  const auto tell = [&](const auto& e) {
    Emit(out, {{"type", "CUSTOM"}, {"name", "reprise." + std::string(e.kName)}, {"value", ToJson(event)}});
  };
  const auto tell_citations = [&](const std::vector<Citation>& citations) {
    Json list = Json::array();
    for (const Citation& each : citations) list.push_back(ToJson(each));
    if (!list.empty()) Emit(out, {{"type", "CUSTOM"}, {"name", "reprise.citations"}, {"value", std::move(list)}});
  };
  std::visit(Overload{Ignoring<event::ThinkingDelta, event::TextDelta, event::SoundDelta, event::GrantsUpdated,
                               event::FilesChanged, event::Cancelled, event::Failed>(),
                      [&](const event::InteractionStarted& e) { TakeStarted(e, out); },
                      [&](const event::Thinking& e) { TakeThought(e.content, out); },
                      [&](const event::MessageText& e) {
                        TakeText(e.content, round, out);
                        tell_citations(e.citations);
                      },
                      [&](const event::Answer& e) {
                        TakeText(e.content, round, out);
                        tell_citations(e.citations);
                      },
                      [&](const event::Sound& e) { tell(e); },
                      [&](const event::WebSearch& e) { tell(e); },
                      [&](const event::ToolCallStarted& e) { Announce(e.id, e.tool_name, e.tool_input, round, out); },
                      [&](const event::ToolOutputDelta& e) { TakeOutput(e, out); },
                      [&](const event::ToolResult& e) { TakeResult(e, round, out); },
                      [&](const event::ApprovalRequired& e) {
                        Announce(e.call_id, e.tool_name, e.tool_input, round, out);
                        AskApproval(e);
                      },
                      [&](const event::Approved& e) { settle(e.approval_id); },
                      [&](const event::Rejected& e) { settle(e.approval_id); },
                      [&](const event::InputRequired& e) { AskInput(e); },
                      [&](const event::InputReceived& e) { settle(e.request_id); },
                      [&](const event::Nested& e) { TakeNested(e, out); },
                      [&](const event::TaskUpdated& e) { SetState("tasks", ToJson(e.tasks), out); },
                      [&](const event::PlanUpdated& e) { SetState("plan", e.steps, out); },
                      [&](const event::Usage& e) { AddUsage(e.tokens); },
                      [&](const event::Retry& e) { tell(e); },
                      [&](const event::LoopDetected& e) { tell(e); },
                      [&](const event::SentBack& e) { tell(e); },
                      [&](const event::Compacted& e) { tell(e); },
                      [&](const event::JobStarted& e) { tell(e); },
                      [&](const event::JobEnded& e) { tell(e); },
                      [&](const event::InteractionComplete&) { interrupts_.clear(); }},
             event.payload);
}

}  // namespace reprise::ag_ui
