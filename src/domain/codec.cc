#include "domain/codec.h"

#include <nlohmann/json.hpp>

namespace reprise {

namespace {

Json TextOrNull(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }
std::optional<std::string> ReadText(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<std::string>());
}

tl::unexpected<Error> Malformed() {
  return Fail(Reason::kIntegrityAuth, "a stored question or its answer is not valid");
}

}  // namespace

const std::string& QuestionId(const PendingQuestion& question) {
  const auto* const approval = std::get_if<PendingApproval>(&question);
  return approval ? approval->request.approval_id : std::get<PendingInput>(question).request.request_id;
}

InteractionRef QuestionRun(const PendingQuestion& question) {
  return std::visit(
      [](const auto& pending) {
        return InteractionRef{pending.chat_id, pending.interaction_id};
      },
      question);
}

Json ToJson(const std::string& question_id, const GivenAnswer& answer) {
  if (const auto* input = std::get_if<InputAnswer>(&answer)) {
    Json json = {{"request_id", question_id}, {"response", TextOrNull(input->response)}};
    if (!input->answered_by.empty()) json["answered_by"] = input->answered_by;
    return json;
  }
  const auto& approval = std::get<ApprovalAnswer>(answer);
  Json json = {{"approval_id", question_id},
               {"approved", approval.approved},
               {"arguments", TextOrNull(approval.arguments)},
               {"feedback", TextOrNull(approval.feedback)},
               {"scope", ToString(approval.scope)}};
  if (approval.superseded) json["superseded"] = true;
  if (!approval.answered_by.empty()) json["answered_by"] = approval.answered_by;
  if (approval.pattern) json["pattern"] = *approval.pattern;
  if (approval.mode) json["mode"] = ToString(*approval.mode);
  if (approval.outside_sandbox) json["outside_sandbox"] = true;
  if (approval.expires_at) json["expires_at"] = FormatTimestamp(*approval.expires_at);
  return json;
}

Result<std::pair<std::string, GivenAnswer>> AnswerFromJson(const Json& json) {
  try {
    if (const auto id = json.find("request_id"); id != json.end()) {
      InputAnswer answer{.response = ReadText(json.at("response")), .answered_by = TextMember(json, "answered_by")};
      return std::pair(id->get<std::string>(), GivenAnswer(std::move(answer)));
    }
    ApprovalAnswer answer{.approved = json.at("approved").get<bool>(),
                          .arguments = ReadText(json.at("arguments")),
                          .feedback = ReadText(json.at("feedback"))};
    answer.scope = ParseApprovalScope(json.at("scope").get<std::string>()).value_or(ApprovalScope::kOnce);
    answer.superseded = json.contains("superseded");
    answer.answered_by = TextMember(json, "answered_by");
    if (json.contains("pattern")) answer.pattern = json.at("pattern").get<std::string>();
    if (json.contains("mode")) {
      answer.mode = ParseApprovalMode(json.at("mode").get<std::string>());
      if (!answer.mode) return Malformed();
    }
    answer.outside_sandbox = json.value("outside_sandbox", false);
    if (json.contains("expires_at")) {
      const auto expires_at = ParseTimestamp(json.at("expires_at").get<std::string>());
      if (!expires_at) return Malformed();
      answer.expires_at = *expires_at;
    }
    return std::pair(json.at("approval_id").get<std::string>(), GivenAnswer(std::move(answer)));
  } catch (const std::exception&) {
    return Malformed();
  }
}

Json QuestionToJson(const PendingQuestion& question) {
  return std::visit([](const auto& pending) { return ToJson(AgentEvent{.seq = 1, .payload = pending.request}); },
                    question);
}

Result<PendingQuestion> QuestionFromJson(const InteractionRef& run, const Json& json) {
  auto event = AgentEventFromJson(json);
  if (!event) return Malformed();
  if (auto* const asked = std::get_if<event::ApprovalRequired>(&event->payload)) {
    return PendingApproval{run.chat_id, run.interaction_id, std::move(*asked)};
  }
  if (auto* const asked = std::get_if<event::InputRequired>(&event->payload)) {
    return PendingInput{run.chat_id, run.interaction_id, std::move(*asked)};
  }
  return Malformed();
}

TokenUsage ReadUsage(JsonReader& in) {
  TokenUsage usage{.input_tokens = in.Integer("input_tokens"), .output_tokens = in.Integer("output_tokens")};
  if (in.Find("cache_read_tokens") != nullptr) usage.cache_read_tokens = in.Integer("cache_read_tokens");
  if (in.Find("cache_write_tokens") != nullptr) usage.cache_write_tokens = in.Integer("cache_write_tokens");
  if (in.Find("web_searches") != nullptr) usage.web_searches = in.Integer("web_searches");
  return usage;
}

namespace {

Json ToJson(const std::optional<AgentEvent>& event) { return event ? ToJson(*event) : Json(nullptr); }

}  // namespace

std::string_view ToString(Drift::Cause cause) {
  static constexpr std::string_view kNames[] = {"module", "tool",       "parameter", "model", "instructions",
                                                "skill",  "compaction", "program",   "rule"};
  return kNames[static_cast<int>(cause)];
}

Json ToJson(const Drift& drift) {
  Json json = {{"request", drift.request}, {"cause", ToString(drift.cause)}, {"name", drift.name},
               {"path", drift.path},       {"before", drift.before},         {"after", drift.after}};
  if (!drift.digest.empty()) json["digest"] = drift.digest;
  return json;
}

Json ToJson(const ReplayReport& report) {
  Json json = {{"match", !report.divergence}, {"events", report.events}, {"divergence", nullptr}};
  if (const auto& found = report.divergence) {
    json["divergence"] = {{"seq", found->seq},
                          {"expected", ToJson(found->expected)},
                          {"actual", ToJson(found->actual)},
                          {"reason", found->reason}};
  }
  if (const auto& drift = report.drift) {
    json["requests"] = drift->requests;
    if (!drift->not_compared.empty()) json["not_compared"] = drift->not_compared;
    json["drift"] = Json::array();
    for (const Drift& each : drift->found) json["drift"].push_back(ToJson(each));
  }
  return json;
}

Json ToJson(const QueuedMessage& message) {
  Json json = {{"id", message.id},
               {"user_message", message.user_message},
               {"model", message.model.empty() ? Json(nullptr) : Json(message.model)},
               {"on_disconnect", message.on_disconnect == OnDisconnect::kContinue ? "continue" : "cancel"},
               {"created_at", FormatTimestamp(message.created_at)}};
  if (message.request) json["request"] = ToJson(*message.request);
  if (message.approval_mode) json["approval_mode"] = ToString(*message.approval_mode);
  return json;
}

Result<QueuedMessage> QueuedMessageFromJson(const Json& json) {
  JsonReader reader(json, "message");
  QueuedMessage message{.id = reader.String("id"), .user_message = reader.String("user_message")};
  message.model = reader.OptionalString("model").value_or("");
  const std::string on_disconnect = reader.String("on_disconnect");
  if (on_disconnect == "continue") {
    message.on_disconnect = OnDisconnect::kContinue;
  } else if (on_disconnect != "cancel") {
    reader.Reject("on_disconnect");
  }
  message.created_at = reader.Time("created_at");
  if (const Json* request = reader.Find("request")) message.request = reader.Take(ClientRequestFromJson(*request), {});
  if (reader.Find("approval_mode")) {
    message.approval_mode = ParseApprovalMode(reader.String("approval_mode"));
    if (!message.approval_mode) reader.Reject("approval_mode");
  }
  if (reader.error()) return Fail(*reader.error());
  return message;
}

namespace {

void Write(auto& out, const Task& task) {
  out["id"] = task.id;
  out["title"] = task.title;
  out["status"] = task.status;
}

}  // namespace

Json ToJson(const Task& task) {
  Json json = Json::object();
  Write(json, task);
  return json;
}

void AppendJson(std::string& out, const Task& task) {
  AppendJsonObject(out, [&](auto& object) { Write(object, task); });
}

Json ToJson(const std::vector<Task>& tasks) {
  Json json = Json::array();
  for (const Task& task : tasks) json.push_back(ToJson(task));
  return json;
}

Result<std::vector<Task>> TasksFromJson(const Json& json) {
  std::vector<Task> tasks;
  for (const Json& each : json) {
    JsonReader reader(each, "task");
    tasks.push_back({reader.String("id"), reader.String("title"), reader.String("status")});
    if (reader.error()) return Fail(*reader.error());
  }
  return tasks;
}

Json ToJson(const Agenda& agenda) { return {{"tasks", ToJson(agenda.tasks)}, {"plan", agenda.plan}}; }

Result<Agenda> AgendaFromJson(const Json& json) {
  JsonReader reader(json, "agenda");
  Agenda agenda;
  if (reader.Find("tasks") != nullptr) {
    if (const Json* tasks = reader.Array("tasks")) {
      agenda.tasks = reader.Take(TasksFromJson(*tasks), std::vector<Task>());
    }
  }
  if (reader.Find("plan") != nullptr) agenda.plan = reader.Strings("plan");
  if (reader.error()) return Fail(*reader.error());
  return agenda;
}

}  // namespace reprise
