#include "domain/event_codec.h"

#include <nlohmann/json.hpp>

#include "domain/codec.h"
#include "domain/hidden_text.h"
#include "domain/json_reader.h"
#include "domain/members.h"
#include "domain/usage_codec.h"

namespace reprise {
namespace {

Json OrNull(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

// The members of each payload, in wire order. -------------------------------------------------------------------------

void Write(auto& out, const event::InteractionStarted& e) {
  out["interaction_id"] = e.interaction_id;
  out["chat_id"] = e.chat_id;
  out["parent_id"] = OrNull(e.parent_id);
  out["edited_from"] = OrNull(e.edited_from);
  out["model"] = e.model;
}
void Write(auto& out, const event::ThinkingDelta& e) { out["content"] = e.content; }
void Write(auto& out, const event::TextDelta& e) { out["content"] = e.content; }
void Write(auto& out, const event::Thinking& e) { out["content"] = e.content; }
void Write(auto& out, const event::MessageText& e) { out["content"] = e.content; }
void Write(auto& out, const event::Answer& e) {
  out["content"] = e.content;
  if (e.reason.empty()) return;
  out["truncated"] = true;
  out["reason"] = e.reason;
}
void Write(auto& out, const event::ToolCallStarted& e) {
  out["id"] = e.id;
  out["tool_name"] = e.tool_name;
  out["tool_input"] = e.tool_input;
}
void Write(auto& out, const event::ToolOutputDelta& e) {
  out["id"] = e.id;
  out["tool_name"] = e.tool_name;
  out["content"] = e.content;
}
void Write(auto& out, const event::ToolResult& e) {
  out["id"] = e.id;
  out["tool_name"] = e.tool_name;
  out["tool_output"] = e.tool_output;
  out["is_error"] = e.is_error;
}
void Write(auto& out, const event::ApprovalRequired& e) {
  out["approval_id"] = e.approval_id;
  out["call_id"] = e.call_id;
  out["tool_name"] = e.tool_name;
  out["tool_input"] = e.tool_input;
  if (std::string escaped = EscapeHidden(e.tool_input); escaped != e.tool_input) {
    out["tool_input_escaped"] = std::move(escaped);
  }
  out["arguments_digest"] = e.arguments_digest;
  if (!e.terms_digest.empty()) out["terms_digest"] = e.terms_digest;
  out["reason"] = e.reason;
  out["risk"] = e.risk;
  out["allowed_decisions"] = e.allowed_decisions;
  out["created_at"] = FormatTimestamp(e.created_at);
  out["expires_at"] = e.expires_at ? Json(FormatTimestamp(*e.expires_at)) : Json(nullptr);
}
void Write(auto& out, const event::Approved& e) {
  out["approval_id"] = e.approval_id;
  out["call_id"] = e.call_id;
  out["arguments_digest"] = e.arguments_digest;
  out["scope"] = e.scope;
  if (e.tool_input) out["tool_input"] = *e.tool_input;
  if (e.feedback) out["feedback"] = *e.feedback;
}
void Write(auto& out, const event::Rejected& e) {
  out["approval_id"] = e.approval_id;
  out["call_id"] = e.call_id;
  if (e.feedback) out["feedback"] = *e.feedback;
  if (e.expired) out["expired"] = true;
  if (e.superseded) out["superseded"] = true;
}
void Write(auto& out, const event::InputRequired& e) {
  out["request_id"] = e.request_id;
  out["call_id"] = e.call_id;
  out["question"] = e.question;
  out["options"] = e.options;
  if (e.schema) out["schema"] = *e.schema;
  if (e.url) out["url"] = *e.url;
}
void Write(auto& out, const event::InputReceived& e) {
  out["request_id"] = e.request_id;
  out["call_id"] = e.call_id;
  out["response"] = OrNull(e.response);
}
void Write(auto& out, const event::TaskUpdated& e) {
  if (e.call_id) out["call_id"] = *e.call_id;
  WriteList(out, "tasks", e.tasks);
}
void Write(auto& out, const event::PlanUpdated& e) {
  if (e.call_id) out["call_id"] = *e.call_id;
  out["steps"] = e.steps;
}
void Write(auto& out, const event::GrantsUpdated& e) { WriteList(out, "grants", e.grants); }
void Write(auto& out, const event::Usage& e) { WriteUsage(out, e.tokens); }
void Write(auto& out, const event::Retry& e) {
  out["attempt"] = e.attempt;
  out["delay_ms"] = e.delay_ms;
  out["code"] = e.code;
  out["message"] = e.message;
}
void Write(auto& out, const event::LoopDetected& e) {
  out["tool_name"] = e.tool_name;
  out["count"] = e.count;
}
void Write(auto& out, const event::Compacted& e) {
  out["messages"] = e.messages;
  out["tokens_before"] = e.tokens_before;
  out["tokens_after"] = e.tokens_after;
  out["budget"] = e.budget;
  out["summary"] = e.summary;
}
void Write(auto& out, const event::Failed& e) {
  out["code"] = e.code;
  out["message"] = e.message;
  out["retryable"] = e.retryable;
}
void Write(auto& out, const event::Nested& e) {
  out["call_id"] = e.call_id;
  WriteObject(out, "event", [&e](auto& step) {
    std::visit(
        [&](const auto& inner) {
          step["type"] = std::remove_cvref_t<decltype(inner)>::kType;
          step["round_index"] = e.round_index;
          Write(step, inner);
        },
        e.step);
  });
}
void Write(auto& out, const event::Cancelled& e) { out["reason"] = e.reason; }
void Write(auto& out, const event::InteractionComplete& e) {
  out["interaction_id"] = e.interaction_id;
  out["status"] = ToString(e.status);
}

void Write(auto& out, const AgentEvent& event) {
  out["type"] = EventType(event.payload);
  out["seq"] = event.seq;
  out["round_index"] = event.round_index;
  // A delta is not kept, so nobody will ask when it was; there is one for each token.
  if (!IsDelta(event.payload)) out["at"] = FormatTimestamp(event.at);
  std::visit([&out](const auto& payload) { Write(out, payload); }, event.payload);
}

// Reading the durable ones back; frames and deltas are not stored.
// -----------------------------------------------------

std::optional<EventPayload> ReadPayload(JsonReader& in, std::string_view type);

event::Nested ReadNested(JsonReader& in) {
  event::Nested nested{.call_id = in.String("call_id"), .round_index = 0, .step = {}};
  const Json* json = in.Find("event");
  if (json == nullptr) return in.Reject("event"), nested;
  JsonReader inner(*json, "nested event");
  nested.round_index = static_cast<std::uint32_t>(inner.Integer("round_index"));
  const std::string type = inner.String("type");
  // Sub-agents have none of their own.
  if (type == event::Nested::kType) return in.Reject("event"), nested;
  if (auto payload = ReadPayload(inner, type)) {
    std::visit(
        [&]<typename T>(T& step) {
          if constexpr (std::is_constructible_v<event::Nested::Step, T&&>) {
            nested.step = std::move(step);
          } else {
            in.Reject("event");
          }
        },
        *payload);
  }
  if (inner.error()) in.Reject("event");
  return nested;
}

std::optional<EventPayload> ReadPayload(JsonReader& in, std::string_view type) {
  if (type == event::Thinking::kType) return event::Thinking{in.String("content")};
  if (type == event::MessageText::kType) return event::MessageText{in.String("content")};
  if (type == event::Answer::kType) {
    return event::Answer{in.String("content"), in.OptionalString("reason").value_or("")};
  }
  if (type == event::ToolCallStarted::kType) {
    return event::ToolCallStarted{in.String("id"), in.String("tool_name"), in.String("tool_input")};
  }
  if (type == event::ToolResult::kType) {
    return event::ToolResult{in.String("id"), in.String("tool_name"), in.String("tool_output"),
                             in.Bool("is_error", false)};
  }
  if (type == event::ApprovalRequired::kType) {
    event::ApprovalRequired e{.approval_id = in.String("approval_id"),
                              .call_id = in.String("call_id"),
                              .tool_name = in.String("tool_name"),
                              .tool_input = in.String("tool_input"),
                              .arguments_digest = in.String("arguments_digest"),
                              .terms_digest = in.OptionalString("terms_digest").value_or(""),
                              .reason = in.String("reason"),
                              .risk = in.String("risk"),
                              .allowed_decisions = {},
                              .created_at = in.Time("created_at"),
                              .expires_at = in.OptionalTime("expires_at")};
    e.allowed_decisions = in.Strings("allowed_decisions");
    return e;
  }
  if (type == event::Approved::kType) {
    return event::Approved{in.String("approval_id"),        in.String("call_id"),
                           in.String("arguments_digest"),   in.String("scope"),
                           in.OptionalString("tool_input"), in.OptionalString("feedback")};
  }
  if (type == event::Rejected::kType) {
    return event::Rejected{in.String("approval_id"), in.String("call_id"), in.OptionalString("feedback"),
                           in.Bool("expired", false), in.Bool("superseded", false)};
  }
  if (type == event::InputRequired::kType) {
    return event::InputRequired{.request_id = in.String("request_id"),
                                .call_id = in.String("call_id"),
                                .question = in.String("question"),
                                .options = in.Strings("options"),
                                .schema = in.OptionalString("schema"),
                                .url = in.OptionalString("url")};
  }
  if (type == event::InputReceived::kType) {
    return event::InputReceived{in.String("request_id"), in.String("call_id"), in.OptionalString("response")};
  }
  if (type == event::TaskUpdated::kType) {
    event::TaskUpdated e{.call_id = in.OptionalString("call_id"), .tasks = {}};
    if (const Json* tasks = in.Array("tasks")) e.tasks = in.Take(TasksFromJson(*tasks), std::vector<Task>());
    return e;
  }
  if (type == event::PlanUpdated::kType) {
    return event::PlanUpdated{in.OptionalString("call_id"), in.Strings("steps")};
  }
  if (type == event::GrantsUpdated::kType) {
    event::GrantsUpdated e;
    if (const Json* grants = in.Array("grants")) {
      for (const Json& grant : *grants) {
        JsonReader inner(grant, "grant");
        e.grants.push_back({inner.String("tool_name"), inner.String("arguments_digest"),
                            inner.OptionalString("terms_digest").value_or("")});
        if (inner.error()) in.Reject("grants");
      }
    }
    return e;
  }
  if (type == event::Usage::kType) {
    return event::Usage{ReadUsage(in)};
  }
  if (type == event::Retry::kType) {
    return event::Retry{static_cast<int>(in.Integer("attempt")), in.Integer("delay_ms"), in.String("code"),
                        in.String("message")};
  }
  if (type == event::LoopDetected::kType) {
    return event::LoopDetected{in.String("tool_name"), static_cast<int>(in.Integer("count"))};
  }
  if (type == event::Compacted::kType) {
    return event::Compacted{in.Integer("messages"), in.Integer("tokens_before"), in.Integer("tokens_after"),
                            in.Integer("budget"), in.String("summary")};
  }
  if (type == event::Nested::kType) return ReadNested(in);
  if (type == event::Cancelled::kType) return event::Cancelled{in.String("reason")};
  if (type == event::Failed::kType) {
    return event::Failed{in.String("code"), in.String("message"), in.Bool("retryable", false)};
  }
  in.Reject("type");
  return std::nullopt;
}

}  // namespace

std::string_view EventName(const EventPayload& payload) {
  return std::visit([](const auto& e) { return std::remove_cvref_t<decltype(e)>::kName; }, payload);
}

std::string_view EventType(const EventPayload& payload) {
  return std::visit([](const auto& e) { return std::remove_cvref_t<decltype(e)>::kType; }, payload);
}

Json ToJson(const AgentEvent& event) {
  Json json = Json::object();
  Write(json, event);
  return json;
}

void AppendJson(std::string& out, const AgentEvent& event) {
  AppendJsonObject(out, [&](auto& object) { Write(object, event); });
}

Json ToJson(const PendingInput& input) {
  Json json = {{"chat_id", input.chat_id.str()}, {"interaction_id", input.interaction_id.str()}};
  Write(json, input.request);
  return json;
}

std::string EventData(const AgentEvent& event) {
  std::string data;
  AppendJson(data, event);
  return data;
}

Result<AgentEvent> AgentEventFromJson(const Json& json) {
  JsonReader reader(json, "event");
  const std::string type = reader.String("type");
  AgentEvent event;
  event.seq = static_cast<std::uint64_t>(reader.Integer("seq"));
  event.round_index = static_cast<std::uint32_t>(reader.Integer("round_index"));
  event.at = reader.Time("at");
  if (auto payload = ReadPayload(reader, type)) event.payload = *std::move(payload);
  if (reader.error()) return Fail(*reader.error());
  return event;
}

}  // namespace reprise
