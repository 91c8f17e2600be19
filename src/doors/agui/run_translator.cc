#include "doors/agui/run_translator.h"

#include <algorithm>
#include <utility>

#include "reprise/event.h"

namespace reprise::agui {
namespace {

constexpr int kDepth = 2 * kMaxJsonDepth;

std::string Data(const Json& event) { return "data: " + DumpJson(event) + "\n\n"; }

std::int64_t Number(const Json& data, const char* name) {
  const Json& value = MemberOf(data, name);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

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
  const std::size_t slash = model_.find('/');
  if (slash != std::string::npos) usage["provider"] = model_.substr(0, slash);
  if (!model_.empty()) usage["model"] = slash == std::string::npos ? model_ : model_.substr(slash + 1);
  usage.update({{"inputTokens", used.input_tokens},
                {"outputTokens", used.output_tokens},
                {"totalTokens", used.input_tokens + used.output_tokens}});
  // Zero would say that the provider has counted none; mostly it has not said.
  if (used.cache_read_tokens > 0) usage["cachedInputTokens"] = used.cache_read_tokens;
  if (used.cache_write_tokens > 0) usage["cacheWriteInputTokens"] = used.cache_write_tokens;
  return Json::array({std::move(usage)});
}

// By the calls of the model since the request came.
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

// All that was published has been taken. What is asked together is published together.
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
  } else if (status_ == "FAILED") {
    const std::string code = TextMember(failure_, "code"), message = TextMember(failure_, "message");
    Break(out, code.empty() ? "failed" : code, message.empty() ? "the run has failed" : message);
  } else if (status_ == "CANCELLED") {
    if (!options_.is_current) return Break(out, "cancelled", "the run was cancelled");
    Finish(out, {{"type", "cancelled"}});
  } else {
    Finish(out, {{"type", "success"}});
  }
  const auto chat = ChatId::Parse(chat_);
  const auto interaction = InteractionId::Parse(interaction_);
  if (complete && options_.ended && chat && interaction) options_.ended({*chat, *interaction}, answer_);
}

void RunTranslator::EndWithNothing(std::string& out) {
  Start(out);
  Finish(out, {{"type", "success"}});
}

// --- what is said ------------------------------------------------------------------------------------------------

void RunTranslator::Take(const EventFrame& event, std::string& out) {
  seq_ = event.seq;
  is_silent_ = seq_ <= options_.after_seq;
  if (event.name == event::TextDelta::kName) return TakeDelta(event, /*is_text=*/true, out);
  if (event.name == event::ThinkingDelta::kName) return TakeDelta(event, /*is_text=*/false, out);
  if (const auto data = ParseJson(event.data, kDepth)) TakeWhole(event, *data, out);
}

void RunTranslator::TakeDelta(const EventFrame& event, bool is_text, std::string& out) {
  const std::string_view literal = event.ContentLiteral();
  if (literal.size() <= 2) return;  // an empty text says nothing
  is_text ? BeginText(out) : BeginThought(out);
  if (is_silent_) return;
  out += is_text ? R"(data: {"type":"TEXT_MESSAGE_CONTENT","messageId":")"
                 : R"(data: {"type":"REASONING_MESSAGE_CONTENT","messageId":")";
  out += (is_text ? text_ : thought_).id;
  out += R"(","delta":)";
  out += literal;
  out += "}\n\n";
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

// --- calls -------------------------------------------------------------------------------------------------------

void RunTranslator::Announce(const Json& data, const std::string& call, std::string& out) {
  if (!announced_.insert(call).second) return;
  EndThought(out);
  EndText(out);
  const auto round = static_cast<std::uint32_t>(Number(data, "round_index"));
  if (parent_.empty() || parent_round_ != round) parent_ = Id("message-" + std::to_string(text_count_++));
  parent_round_ = round;
  const std::string id = Id(call), name = TextMember(data, "tool_name"), input = TextMember(data, "tool_input");
  Emit(out, {{"type", "TOOL_CALL_START"}, {"toolCallId", id}, {"toolCallName", name}, {"parentMessageId", parent_}});
  Emit(out, {{"type", "TOOL_CALL_ARGS"}, {"toolCallId", id}, {"delta", input.empty() ? "{}" : input}});
  Emit(out, {{"type", "TOOL_CALL_END"}, {"toolCallId", id}});
  MessageFor(parent_)["toolCalls"].push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", input.empty() ? "{}" : input}}}});
}

void RunTranslator::TakeResult(const Json& data, std::string& out) {
  const std::string call = TextMember(data, "id"), output = TextMember(data, "tool_output");
  const bool failed = MemberOf(data, "is_error") == Json(true);
  Announce(data, call, out);  // one that never ran has a result too
  if (const auto agent = sub_agents_.find(call); agent != sub_agents_.end() && agent->second.is_open) {
    agent->second.is_open = false;
    const std::string id = Id("agent-" + call);
    Emit(out, failed ? Json{{"type", "SUBAGENT_ERROR"}, {"subagentRunId", id}, {"message", output}}
                     : Json{{"type", "SUBAGENT_FINISHED"}, {"subagentRunId", id}});
  }
  const std::string id = Id("result-" + call);
  Emit(out, {{"type", "TOOL_CALL_RESULT"},
             {"messageId", id},
             {"toolCallId", Id(call)},
             {"content", output},
             {"role", "tool"}});
  Json message = {{"id", id}, {"role", "tool"}, {"content", output}, {"toolCallId", Id(call)}};
  if (failed) message["error"] = output;
  messages_.push_back(std::move(message));
}

// A command that runs: an activity, to which each piece is added.
void RunTranslator::TakeOutput(const Json& data, std::string& out) {
  const std::string call = TextMember(data, "id"), piece = TextMember(data, "content");
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

void RunTranslator::TakeNested(const Json& data, std::string& out) {
  const Json& step = MemberOf(data, "event");
  const std::string type = TextMember(step, "type"), call = TextMember(data, "call_id");
  if (type == event::Usage::kType) AddUsage(step);
  if (!options_.is_current) return;  // older clients break on sub-agents
  const std::string agent = Id("agent-" + call);
  SubAgent& sub = sub_agents_[call];
  if (!std::exchange(sub.is_open, true)) {
    Emit(
        out,
        {{"type", "SUBAGENT_STARTED"}, {"subagentRunId", agent}, {"name", "research"}, {"parentToolCallId", Id(call)}});
  }
  const auto emit = [&](Json event) {
    event["subagentRunId"] = agent;
    Emit(out, event);
  };
  if (type == event::MessageText::kType || type == event::Answer::kType) {
    const std::string id = agent + "-message-" + std::to_string(sub.messages++), said = TextMember(step, "content");
    if (said.empty()) return;
    emit({{"type", "TEXT_MESSAGE_START"}, {"messageId", id}, {"role", "assistant"}});
    emit({{"type", "TEXT_MESSAGE_CONTENT"}, {"messageId", id}, {"delta", said}});
    emit({{"type", "TEXT_MESSAGE_END"}, {"messageId", id}});
    messages_.push_back({{"id", id}, {"role", "assistant"}, {"content", said}, {"subagentRunId", agent}});
  } else if (type == event::ToolCallStarted::kType) {
    const std::string id = agent + "-" + TextMember(step, "id"), input = TextMember(step, "tool_input");
    emit({{"type", "TOOL_CALL_START"}, {"toolCallId", id}, {"toolCallName", TextMember(step, "tool_name")}});
    emit({{"type", "TOOL_CALL_ARGS"}, {"toolCallId", id}, {"delta", input.empty() ? "{}" : input}});
    emit({{"type", "TOOL_CALL_END"}, {"toolCallId", id}});
  } else if (type == event::ToolResult::kType) {
    const std::string id = agent + "-" + TextMember(step, "id");
    emit({{"type", "TOOL_CALL_RESULT"},
          {"messageId", id + "-result"},
          {"toolCallId", id},
          {"content", TextMember(step, "tool_output")},
          {"role", "tool"}});
  }
}

// --- what is asked -----------------------------------------------------------------------------------------------

void RunTranslator::AskApproval(const Json& data) {
  const std::string id = TextMember(data, "approval_id");
  if (options_.answered.contains(id)) return;
  Json schema = {{"type", "object"},
                 {"properties",
                  {{"approved", {{"type", "boolean"}}},
                   {"editedArgs", {{"type", "object"}, {"description", "Replaces the arguments as a whole"}}},
                   {"feedback", {{"type", "string"}, {"description", "Words for the model"}}},
                   {"scope", {{"type", "string"}, {"enum", {"once", "chat", "always"}}}}}},
                 {"required", Json::array({"approved"})}};
  Json ours = {{"risk", TextMember(data, "risk")},
               {"argumentsDigest", TextMember(data, "arguments_digest")},
               {"allowedDecisions", MemberOf(data, "allowed_decisions")}};
  if (data.contains("patterns")) ours["patterns"] = data["patterns"];
  const std::string escaped = TextMember(data, "tool_input_escaped");
  Json interrupt = {
      {"id", id},
      {"reason", "tool_call"},
      {"message", TextMember(data, "tool_name") + " " + (escaped.empty() ? TextMember(data, "tool_input") : escaped) +
                      "\n" + TextMember(data, "reason")},
      {"toolCallId", Id(TextMember(data, "call_id"))},
      {"responseSchema", std::move(schema)},
      {"metadata", {{"reprise", std::move(ours)}}}};
  if (const std::string expires = TextMember(data, "expires_at"); !expires.empty()) interrupt["expiresAt"] = expires;
  interrupts_.emplace_back(id, std::move(interrupt));
}

void RunTranslator::AskInput(const Json& data) {
  const std::string id = TextMember(data, "request_id");
  if (options_.answered.contains(id)) return;
  const auto form = ParseJson(TextMember(data, "schema"));
  Json schema = {{"type", "string"}};
  if (form && form->is_object()) schema = *form;
  Json interrupt = {{"id", id},
                    {"reason", "input_required"},
                    {"message", TextMember(data, "question")},
                    {"toolCallId", Id(TextMember(data, "call_id"))},
                    {"responseSchema", std::move(schema)}};
  Json ours = Json::object();
  if (const Json& options = MemberOf(data, "options"); options.is_array() && !options.empty())
    ours["options"] = options;
  if (const std::string url = TextMember(data, "url"); !url.empty()) ours["url"] = url;
  if (!ours.empty()) interrupt["metadata"] = {{"reprise", std::move(ours)}};
  interrupts_.emplace_back(id, std::move(interrupt));
}

// --- all the rest ------------------------------------------------------------------------------------------------

void RunTranslator::AddUsage(const Json& data) {
  if (seq_ <= options_.before.last_seq) return;  // was told with the run before
  usage_ += TokenUsage{.input_tokens = Number(data, "input_tokens"),
                       .output_tokens = Number(data, "output_tokens"),
                       .cache_read_tokens = Number(data, "cache_read_tokens"),
                       .cache_write_tokens = Number(data, "cache_write_tokens")};
}

void RunTranslator::SetState(const char* member, const Json& value, std::string& out) {
  state_[member] = value;
  Emit(out, {{"type", "STATE_DELTA"},
             {"delta", Json::array({{{"op", "replace"}, {"path", std::string("/") + member}, {"value", value}}})}});
}

void RunTranslator::TakeWhole(const EventFrame& event, const Json& data, std::string& out) {
  const std::string_view name = event.name;
  const auto settle = [&](const char* member) {
    std::erase_if(interrupts_, [&](const auto& each) { return each.first == TextMember(data, member); });
  };
  if (name == event::InteractionStarted::kName) {
    chat_ = TextMember(data, "chat_id");
    interaction_ = TextMember(data, "interaction_id");
    model_ = TextMember(data, "model");
    parent_run_ = TextMember(data, "edited_from");
    const auto chat = ChatId::Parse(chat_);
    const auto interaction = InteractionId::Parse(interaction_);
    if (options_.began && chat && interaction) options_.began({*chat, *interaction});
    Start(out);
  } else if (name == event::Thinking::kName) {
    const std::string content = TextMember(data, "content");
    if (!thought_.is_open && thought_.id.empty() && !content.empty()) {
      BeginThought(out);
      Emit(out, {{"type", "REASONING_MESSAGE_CONTENT"}, {"messageId", thought_.id}, {"delta", content}});
    }
    const std::string id = thought_.id;
    EndThought(out);
    thought_.id.clear();
    if (!id.empty()) messages_.push_back({{"id", id}, {"role", "reasoning"}, {"content", content}});
  } else if (name == event::MessageText::kName || name == event::Answer::kName) {
    const std::string content = TextMember(data, "content");
    answer_ += content;
    if (!text_.is_open && !content.empty()) {
      BeginText(out);
      Emit(out, {{"type", "TEXT_MESSAGE_CONTENT"}, {"messageId", text_.id}, {"delta", content}});
    }
    if (text_.is_open) {
      MessageFor(text_.id)["content"] = content;
      parent_ = text_.id;
      parent_round_ = static_cast<std::uint32_t>(Number(data, "round_index"));
    }
    EndText(out);
  } else if (name == event::ToolCallStarted::kName) {
    Announce(data, TextMember(data, "id"), out);
  } else if (name == event::ToolOutputDelta::kName) {
    TakeOutput(data, out);
  } else if (name == event::ToolResult::kName) {
    TakeResult(data, out);
  } else if (name == event::ApprovalRequired::kName) {
    Announce(data, TextMember(data, "call_id"), out);
    AskApproval(data);
  } else if (name == event::Approved::kName || name == event::Rejected::kName) {
    settle("approval_id");
  } else if (name == event::InputRequired::kName) {
    AskInput(data);
  } else if (name == event::InputReceived::kName) {
    settle("request_id");
  } else if (name == event::Nested::kName) {
    TakeNested(data, out);
  } else if (name == event::TaskUpdated::kName) {
    SetState("tasks", MemberOf(data, "tasks"), out);
  } else if (name == event::PlanUpdated::kName) {
    SetState("plan", MemberOf(data, "steps"), out);
  } else if (name == event::Usage::kName) {
    AddUsage(data);
  } else if (name == event::Retry::kName || name == event::LoopDetected::kName || name == event::Compacted::kName) {
    Emit(out, {{"type", "CUSTOM"}, {"name", "reprise." + std::string(name)}, {"value", data}});
  } else if (name == event::Failed::kName) {
    failure_ = data;
  } else if (name == event::InteractionComplete::kName) {
    status_ = MemberOf(data, "status");
    interrupts_.clear();
  }
}

}  // namespace reprise::agui
