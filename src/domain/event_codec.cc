#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/terminal_text.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

// Writes members in the order given. `Out` is a Json or a JsonObjectWriter.
template <typename Out>
class Writer {
 public:
  explicit Writer(Out& out) : out_(out) {}

  Writer& operator()(const char* name, const auto& value) { return out_[name] = value, *this; }
  Writer& operator()(const char* name, Timestamp value) { return (*this)(name, FormatTimestamp(value)); }
  Writer& operator()(const char* name, InteractionStatus value) { return (*this)(name, ToString(value)); }
  // Writes null if it is not set.
  template <typename T>
  Writer& OrNull(const char* name, const std::optional<T>& value) {
    return value ? (*this)(name, *value) : (*this)(name, nullptr);
  }
  // Writes no member if the value is not set, empty or false.
  Writer& IfSet(const char* name, const std::optional<std::string>& value) {
    return value ? (*this)(name, *value) : *this;
  }
  Writer& IfSet(const char* name, const std::string& value) { return value.empty() ? *this : (*this)(name, value); }
  Writer& IfSet(const char* name, std::int64_t value) { return value != 0 ? (*this)(name, value) : *this; }
  Writer& IfSet(const char* name, std::optional<std::int64_t> value) { return value ? (*this)(name, *value) : *this; }
  Writer& IfSet(const char* name, bool value) { return value ? (*this)(name, value) : *this; }
  // Computed from other members, so it is not read back.
  Writer& Derived(const char* name, auto compute) { return IfSet(name, compute()); }
  Writer& IfSet(const char* name, const std::optional<Timestamp>& value) {
    return value ? (*this)(name, *value) : *this;
  }
  void List(const char* name, const auto& list) { WriteList(out_, name, list); }
  void ListIfAny(const char* name, const auto& list) {
    if (!list.empty()) WriteList(out_, name, list);
  }
  void ListIfAny(const char* name, const std::vector<std::string>& list) {
    if (!list.empty()) (*this)(name, list);
  }
  // Computed from the changes.
  Writer& Paths(const char* name, const std::vector<WorkspaceChange>& changes) {
    return (*this)(name, ShownPaths(changes));
  }
  void Usage(const TokenUsage& usage) { WriteUsage(out_, usage); }
  void Step(const event::Nested& nested);

 private:
  Out& out_;
};

// Reads members in the order given.
class Reader {
 public:
  explicit Reader(JsonReader& in) : in_(in) {}

  Reader& operator()(const char* name, std::string& value) { return value = in_.String(name), *this; }
  Reader& operator()(const char* name, InteractionStatus& value) {
    const auto status = ParseInteractionStatus(in_.String(name));
    status ? void(value = *status) : in_.Reject(name);
    return *this;
  }
  Reader& operator()(const char* name, bool& value) { return value = in_.Bool(name, false), *this; }
  Reader& operator()(const char* name, Timestamp& value) { return value = in_.Time(name), *this; }
  Reader& operator()(const char* name, std::vector<std::string>& value) { return value = in_.Strings(name), *this; }
  template <std::integral T>
  Reader& operator()(const char* name, T& value) {
    return value = static_cast<T>(in_.Integer(name)), *this;
  }
  Reader& OrNull(const char* name, std::optional<std::string>& value) { return IfSet(name, value); }
  Reader& OrNull(const char* name, std::optional<Timestamp>& value) { return value = in_.OptionalTime(name), *this; }
  Reader& IfSet(const char* name, std::optional<std::string>& value) { return value = in_.OptionalString(name), *this; }
  Reader& IfSet(const char* name, std::string& value) { return value = in_.OptionalString(name).value_or(""), *this; }
  Reader& IfSet(const char* name, std::int64_t& value) {
    if (in_.Find(name) != nullptr) value = in_.Integer(name);
    return *this;
  }
  Reader& IfSet(const char* name, std::optional<std::int64_t>& value) {
    if (in_.Find(name) != nullptr) value = in_.Integer(name);
    return *this;
  }
  Reader& IfSet(const char* name, bool& value) { return (*this)(name, value); }
  Reader& IfSet(const char* name, std::optional<Timestamp>& value) { return OrNull(name, value); }
  Reader& Derived(const char*, const auto&) { return *this; }
  void List(const char* name, std::vector<Task>& tasks) {
    if (const Json* json = in_.Array(name)) tasks = in_.Take(TasksFromJson(*json), std::vector<Task>());
  }
  void ListIfAny(const char* name, std::vector<Attachment>& files) {
    if (const Json* json = in_.Find(name)) files = in_.Take(AttachmentsFromJson(*json), std::vector<Attachment>());
  }
  void ListIfAny(const char* name, std::vector<std::string>& list) {
    if (in_.Find(name) != nullptr) list = in_.Strings(name);
  }
  void ListIfAny(const char* name, std::vector<CallPattern>& patterns) {
    if (in_.Find(name) == nullptr) return;
    const Json* json = in_.Array(name);
    if (json == nullptr) return;
    for (const Json& each : *json) {
      JsonReader inner(each, "pattern");
      patterns.push_back({inner.String("pattern"), inner.String("means")});
      if (inner.error()) in_.Reject(name);
    }
  }
  void ListIfAny(const char* name, std::vector<Citation>& citations) {
    if (in_.Find(name) == nullptr) return;
    const Json* json = in_.Array(name);
    if (json == nullptr) return;
    for (const Json& each : *json) {
      JsonReader inner(each, "citation");
      citations.push_back({ReadSource(inner), inner.Integer("start"), inner.Integer("end")});
      if (inner.error()) in_.Reject(name);
    }
  }
  void List(const char* name, std::vector<WebSource>& sources) {
    const Json* json = in_.Array(name);
    if (json == nullptr) return;
    for (const Json& each : *json) {
      JsonReader inner(each, "source");
      sources.push_back(ReadSource(inner));
      if (inner.error()) in_.Reject(name);
    }
  }
  void List(const char* name, std::vector<Grant>& grants) {
    const Json* json = in_.Array(name);
    if (json == nullptr) return;
    for (const Json& each : *json) {
      JsonReader inner(each, "grant");
      grants.push_back(ReadGrant(inner));
      if (inner.error()) in_.Reject(name);
    }
  }
  Reader& Paths(const char*, const std::vector<WorkspaceChange>&) { return *this; }
  void List(const char* name, std::vector<WorkspaceChange>& changes) {
    const Json* json = in_.Array(name);
    if (json == nullptr) return;
    for (const Json& each : *json) changes.push_back(in_.Take(WorkspaceChangeFromJson(each), WorkspaceChange{}));
  }
  void Usage(TokenUsage& usage) { usage = ReadUsage(in_); }
  void Step(event::Nested& nested);

 private:
  static WebSource ReadSource(JsonReader& in) { return {in.String("url"), in.OptionalString("title").value_or("")}; }

  JsonReader& in_;
};

// nullopt if the text hides nothing.
std::optional<std::string> Escaped(const std::string& text) {
  std::string escaped = EscapeHidden(text);
  return escaped == text ? std::nullopt : std::optional(std::move(escaped));
}

template <typename T, typename... Events>
concept Is = (std::same_as<std::remove_const_t<T>, Events> || ...);

// The members of each payload, in wire order. `m` is a Writer or a Reader. --------------------------------------------

void Members(auto& m, Is<event::InteractionStarted> auto& e) {
  m("interaction_id", e.interaction_id)("chat_id", e.chat_id);
  m.OrNull("parent_id", e.parent_id).OrNull("edited_from", e.edited_from)("model", e.model);
  m.ListIfAny("attachments", e.attachments);
}
void Members(auto& m, Is<event::ThinkingDelta, event::TextDelta, event::SoundDelta, event::Thinking> auto& e) {
  m("content", e.content);
}
void Members(auto& m, Is<event::Sound> auto& e) { m.ListIfAny("files", e.files); }
void Members(auto& m, Is<event::MessageText> auto& e) {
  m("content", e.content);
  m.ListIfAny("citations", e.citations);
}
void Members(auto& m, Is<event::Answer> auto& e) {
  m("content", e.content).Derived("truncated", [&e] { return !e.reason.empty(); }).IfSet("reason", e.reason);
  m.ListIfAny("citations", e.citations);
}
void Members(auto& m, Is<event::WebSearch> auto& e) {
  m("query", e.query).List("results", e.results);
  m.IfSet("omitted", e.omitted).IfSet("error", e.error);
}
void Members(auto& m, Is<event::ToolCallStarted> auto& e) {
  m("id", e.id)("tool_name", e.tool_name)("tool_input", e.tool_input);
}
void Members(auto& m, Is<event::ToolOutputDelta> auto& e) {
  m("id", e.id)("tool_name", e.tool_name)("content", e.content);
}
void Members(auto& m, Is<event::ToolResult> auto& e) {
  m("id", e.id)("tool_name", e.tool_name)("tool_output", e.tool_output)("is_error", e.is_error);
  m.ListIfAny("files", e.files);
}
void Members(auto& m, Is<event::ApprovalRequired> auto& e) {
  m("approval_id", e.approval_id)("call_id", e.call_id)("tool_name", e.tool_name)("tool_input", e.tool_input);
  m.Derived("tool_input_escaped", [&e] { return Escaped(e.tool_input); });
  m("arguments_digest", e.arguments_digest).IfSet("terms_digest", e.terms_digest);
  m("reason", e.reason)("risk", e.risk)("allowed_decisions", e.allowed_decisions);
  m.ListIfAny("patterns", e.patterns);
  m.IfSet("agent", e.agent);
  m.ListIfAny("modes", e.modes);
  m("created_at", e.created_at).OrNull("expires_at", e.expires_at);
}
void Members(auto& m, Is<event::Approved> auto& e) {
  m("approval_id", e.approval_id)("call_id", e.call_id)("arguments_digest", e.arguments_digest)("scope", e.scope);
  m.IfSet("tool_input", e.tool_input).IfSet("feedback", e.feedback).IfSet("answered_by", e.answered_by);
  m.IfSet("pattern", e.pattern).IfSet("grant_expires_at", e.grant_expires_at).IfSet("mode", e.mode);
  m.IfSet("outside_sandbox", e.outside_sandbox);
}
void Members(auto& m, Is<event::Rejected> auto& e) {
  m("approval_id", e.approval_id)("call_id", e.call_id);
  m.IfSet("feedback", e.feedback).IfSet("expired", e.expired).IfSet("superseded", e.superseded);
  m.IfSet("answered_by", e.answered_by);
}
void Members(auto& m, Is<event::InputRequired> auto& e) {
  m("request_id", e.request_id)("call_id", e.call_id)("question", e.question)("options", e.options);
  m.IfSet("schema", e.schema).IfSet("url", e.url);
}
void Members(auto& m, Is<event::InputReceived> auto& e) {
  m("request_id", e.request_id)("call_id", e.call_id).OrNull("response", e.response);
  m.IfSet("answered_by", e.answered_by);
}
void Members(auto& m, Is<event::TaskUpdated> auto& e) { m.IfSet("call_id", e.call_id).List("tasks", e.tasks); }
void Members(auto& m, Is<event::PlanUpdated> auto& e) { m.IfSet("call_id", e.call_id)("steps", e.steps); }
void Members(auto& m, Is<event::GrantsUpdated> auto& e) { m.List("grants", e.grants); }
void Members(auto& m, Is<event::Usage> auto& e) {
  m.Usage(e.tokens);
  m.IfSet("context_tokens", e.context_tokens).IfSet("context_window", e.context_window);
  m.IfSet("context_limit", e.context_limit);
}
void Members(auto& m, Is<event::Retry> auto& e) {
  m("attempt", e.attempt)("delay_ms", e.delay_ms)("code", e.code)("message", e.message);
}
void Members(auto& m, Is<event::LoopDetected> auto& e) {
  m("tool_name", e.tool_name)("count", e.count).IfSet("pattern", e.pattern);
}
void Members(auto& m, Is<event::Compacted> auto& e) {
  m("messages", e.messages)("tokens_before", e.tokens_before)("tokens_after", e.tokens_after)("budget", e.budget);
  m("summary", e.summary).IfSet("results", e.results);
}
void Members(auto& m, Is<event::SentBack> auto& e) { m("content", e.content)("count", e.count); }
void Members(auto& m, Is<event::FilesChanged> auto& e) {
  m.IfSet("call_id", e.call_id).Paths("paths", e.changes);
  m.List("changes", e.changes);
  m.IfSet("omitted", e.omitted).IfSet("unseen", e.unseen);
}
void Members(auto& m, Is<event::JobStarted> auto& e) {
  m("call_id", e.call_id)("job_id", e.job_id)("command", e.command);
}
void Members(auto& m, Is<event::JobEnded> auto& e) {
  m("job_id", e.job_id)("command", e.command)("reason", e.reason).IfSet("status", e.status);
}
void Members(auto& m, Is<event::Nested> auto& e) { m("call_id", e.call_id).Step(e); }
void Members(auto& m, Is<event::Cancelled> auto& e) { m("reason", e.reason); }
void Members(auto& m, Is<event::Failed> auto& e) { m("code", e.code)("message", e.message)("retryable", e.retryable); }
void Members(auto& m, Is<event::InteractionComplete> auto& e) {
  m("interaction_id", e.interaction_id)("status", e.status);
}

// Writing. ------------------------------------------------------------------------------------------------------------

template <typename Out>
void Write(Out& out, const auto& payload) {
  Writer<Out> writer(out);
  Members(writer, payload);
}

template <typename Out>
void Writer<Out>::Step(const event::Nested& nested) {
  WriteObject(out_, "event", [&nested](auto& out) {
    std::visit(
        [&](const auto& step) {
          out["type"] = step.kType;
          out["round_index"] = nested.round_index;
          Write(out, step);
        },
        nested.step);
  });
}

void Write(auto& out, const AgentEvent& event) {
  out["type"] = EventType(event.payload);
  out["seq"] = event.seq;
  out["round_index"] = event.round_index;
  // Deltas have no time because they are not stored, and there is one per token.
  if (!IsDelta(event.payload)) out["at"] = FormatTimestamp(event.at);
  std::visit([&out](const auto& payload) { Write(out, payload); }, event.payload);
}

// Reading. ------------------------------------------------------------------------------------------------------------

// Reads one of the `Events`; nullopt for another type.
template <typename... Events>
std::optional<std::variant<Events...>> ReadPayload(JsonReader& in, std::type_identity<std::variant<Events...>>) {
  const std::string type = in.String("type");
  std::optional<std::variant<Events...>> payload;
  const auto read_if = [&]<typename Event>(std::type_identity<Event>) {
    if (type != Event::kType) return false;
    Event event;
    Reader reader(in);
    Members(reader, event);
    payload = std::move(event);
    return true;
  };
  if (!(read_if(std::type_identity<Events>()) || ...)) in.Reject("type");
  return payload;
}

// Sub-agents have no sub-agents and report only some events, so anything but a `Step` is refused.
void Reader::Step(event::Nested& nested) {
  const Json* json = in_.Find("event");
  if (json == nullptr) return in_.Reject("event");
  JsonReader inner(*json, "nested event");
  nested.round_index = static_cast<std::uint32_t>(inner.Integer("round_index"));
  if (auto step = ReadPayload(inner, std::type_identity<event::Nested::Step>())) nested.step = *std::move(step);
  if (inner.error()) in_.Reject("event");
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
  AgentEvent event;
  event.seq = static_cast<std::uint64_t>(reader.Integer("seq"));
  event.round_index = static_cast<std::uint32_t>(reader.Integer("round_index"));
  event.at = reader.Time("at");
  if (auto payload = ReadPayload(reader, std::type_identity<AnyEvent>()))
    event.payload = EventPayload(*std::move(payload));
  // These are never stored.
  if (IsDelta(event.payload) || IsFrame(event.payload)) reader.Reject("type");
  if (reader.error()) return Fail(*reader.error());
  return event;
}

std::optional<AgentEvent> ReceivedEvent(const Json& json) {
  JsonReader reader(json, "event");
  AgentEvent event;
  if (reader.Find("seq") != nullptr) event.seq = static_cast<std::uint64_t>(reader.Integer("seq"));
  if (reader.Find("round_index") != nullptr) {
    event.round_index = static_cast<std::uint32_t>(reader.Integer("round_index"));
  }
  event.at = reader.OptionalTime("at").value_or(Timestamp{});
  auto payload = ReadPayload(reader, std::type_identity<AnyEvent>());
  if (!payload || reader.error()) return std::nullopt;
  event.payload = EventPayload(*std::move(payload));
  return event;
}

}  // namespace reprise
