#include "support/schema_validator.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <vector>

#include "app/embedded.h"
#include "base/json.h"
#include "domain/codec.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test {

namespace {

using PlainJson = nlohmann::json;

const std::string kSchemas = SourceDirectory() + "/schemas/";

Timestamp Sometime() { return *ParseTimestamp("2025-01-15T10:00:00.123Z"); }

event::ApprovalRequired SomeApproval() {
  return {.approval_id = "approval_0123456789abcdef0123456789abcdef",
          .call_id = "call_1",
          .tool_name = "run_shell",
          .tool_input = "{}",
          .arguments_digest = ArgumentsDigest("{}"),
          .terms_digest = ArgumentsDigest("terms"),
          .reason = "runs a shell command",
          .risk = "high",
          .allowed_decisions = {"approve", "reject"},
          .created_at = Sometime(),
          .expires_at = std::nullopt};
}

// One of each kind, in the order of EventPayload.
std::vector<EventPayload> OneOfEach() {
  const auto approval = SomeApproval();
  return {
      event::InteractionStarted{"int_002", "c1", "int_001", std::nullopt, "offline"},
      event::ThinkingDelta{"a"},
      event::TextDelta{"b"},
      event::SoundDelta{"AAA="},
      event::Sound{{{FileId::Parse("file_0123456789abcdef0123456789abcdef").value(), "spoken.wav", "audio/wav", 44}}},
      event::Thinking{"c"},
      event::MessageText{"d"},
      event::Answer{"e", "length"},
      event::WebSearch{"cats", {{"https://a.example/", "A"}, {"https://b.example/", ""}}, 4, "unavailable"},
      event::ToolCallStarted{"call_1", "echo", "{}"},
      event::ToolOutputDelta{"call_1", "echo", "x"},
      event::ToolResult{"call_1", "echo", "x", true},
      approval,
      event::Approved{approval.approval_id, "call_1", approval.arguments_digest, "always", "{\"a\":1}", "so"},
      event::Rejected{approval.approval_id, "call_1", std::nullopt, true, true},
      event::InputRequired{
          "request_0123456789abcdef0123456789abcdef", "call_1", "which?", {"a", "b"}, std::nullopt, std::nullopt},
      event::InputReceived{"request_0123456789abcdef0123456789abcdef", "call_1", "a"},
      event::TaskUpdated{"call_1", {{.id = "1", .title = "task", .status = "todo"}}},
      event::PlanUpdated{std::nullopt, {"first", "then"}},
      event::GrantsUpdated{{{"echo", approval.arguments_digest, approval.terms_digest}}},
      event::Usage{{1, 2, 3, 4}},
      event::Retry{1, 1000, "provider_overloaded", "busy"},
      event::LoopDetected{"echo", 3},
      event::SentBack{"the tests fail", 1},
      event::Compacted{12, 9000, 4000, 6000, "what was said", 3},
      event::Nested{"call_1", 2, event::ToolResult{"call_1", "echo", "x", true}},
      event::FilesChanged{
          "call_1",
          {{.path = "d/\xff",
            .before = std::nullopt,
            .after = FileVersion{.mode = 0755, .size = 1, .digest = approval.arguments_digest}},
           {.path = "l",
            .before = FileVersion{.kind = FileVersion::Kind::kLink, .size = 2, .digest = approval.arguments_digest},
            .after = FileVersion{.kind = FileVersion::Kind::kDirectory, .mode = 0700}},
           {.path = "x", .before = FileVersion{.mode = 0644, .size = 9, .modified_ns = 5}, .after = std::nullopt}},
          3},
      event::JobStarted{"call_1", "job_0123456789abcdef", "npm run dev"},
      event::JobEnded{"job_0123456789abcdef", "npm run dev", "exited", 1},
      event::Cancelled{"requested"},
      event::Failed{"provider_auth", "no", false},
      event::InteractionComplete{"int_002", InteractionStatus::kCompleted}};
}

Interaction FullInteraction() {
  Interaction interaction{.id = InteractionId::FromNumber(2), .chat_id = *ChatId::Parse("c1")};
  interaction.parent_id = InteractionId::FromNumber(1);
  interaction.status = InteractionStatus::kFailed;
  interaction.user_message = "hi";
  std::uint64_t seq = 0;
  for (EventPayload& payload : OneOfEach()) {
    if (IsDelta(payload) || IsFrame(payload)) continue;
    AgentEvent stored;
    stored.seq = ++seq;
    stored.at = Sometime();
    stored.payload = std::move(payload);
    interaction.events.push_back(std::move(stored));
  }
  AgentState state;
  state.messages = {{.role = Role::kUser, .content = "hi"},
                    {.role = Role::kAssistant,
                     .tool_calls = {{"call_1", "echo", "{}"}},
                     .extras = R"({"thinking":[{"signature":"x"}]})"},
                    {.role = Role::kTool, .content = "x", .tool_call_id = "call_1", .name = "echo"}};
  state.grants = {{"echo", ArgumentsDigest("{}")}, {"echo", ArgumentsDigest("{}"), ArgumentsDigest("terms")}};
  interaction.final_agent_state = std::move(state);
  interaction.model = "offline";
  interaction.error = InteractionError{"provider_auth", "no", false};
  interaction.created_at = Sometime();
  interaction.completed_at = Sometime();
  return interaction;
}

std::vector<std::string> SchemaNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSchemas)) {
    const std::string file = entry.path().filename().string();
    const std::size_t end = file.find(".schema.json");
    if (end != std::string::npos) names.push_back(file.substr(0, end));
  }
  return names;
}

}  // namespace

TEST_CASE("schemas: every file is a schema the validator can compile", "[schemas]") {
  const auto names = SchemaNames();
  REQUIRE(names.size() >= 25);
  for (const std::string& name : names) {
    INFO(name);
    CHECK_NOTHROW(SchemaValidator(name));
    CHECK(PlainJson::parse(ReadText(kSchemas + name + ".schema.json"))["$schema"] ==
          "http://json-schema.org/draft-07/schema#");
  }
}

TEST_CASE("schemas: every event the program can send satisfies event.schema.json", "[schemas]") {
  const SchemaValidator schema("event");
  const auto payloads = OneOfEach();
  REQUIRE(payloads.size() == std::variant_size_v<AnyEvent>);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    REQUIRE(payloads[i].index() == i);  // none is missing
    AgentEvent sent;
    sent.seq = i + 1;
    sent.at = Sometime();
    sent.payload = payloads[i];
    const std::string data = EventData(sent);
    INFO(data);
    CHECK(schema.Complaint(data).empty());

    Json extended = *ParseJson(data);
    extended["surprise"] = 1;
    CHECK_FALSE(schema.Complaint(DumpJson(extended)).empty());
    Json reduced = *ParseJson(data);
    reduced.erase("seq");
    CHECK_FALSE(schema.Complaint(DumpJson(reduced)).empty());
  }
  CHECK(
      schema.Complaint(R"({"status":"RUNNING","first_seq":1,"last_seq":4,"pending_approvals":[],"pending_inputs":[]})")
          .empty());
  CHECK(schema.Complaint("{}").empty());
  CHECK_FALSE(schema.Complaint(R"({"type":"NEWS","seq":1,"round_index":0,"at":"2025-01-15T10:00:00.000Z"})").empty());
}

TEST_CASE("schemas: a full interaction satisfies interaction.schema.json, and no reduced one does", "[schemas]") {
  const SchemaValidator schema("interaction");
  const Json full = ToJson(FullInteraction());
  INFO(DumpJson(full));
  CHECK(schema.Complaint(DumpJson(full)).empty());
  for (const auto& [key, value] : full.items()) {
    Json reduced = full;
    reduced.erase(key);
    INFO("without " << key);
    CHECK_FALSE(schema.Complaint(DumpJson(reduced)).empty());
  }
  Json extended = full;
  extended["superseded"] = true;
  CHECK_FALSE(schema.Complaint(DumpJson(extended)).empty());
  Json with_delta = full;
  with_delta["agent_events"].push_back(
      *ParseJson(R"({"type":"TEXT_DELTA","seq":99,"round_index":0,"at":"2025-01-15T10:00:00.000Z","content":"x"})"));
  CHECK_FALSE(schema.Complaint(DumpJson(with_delta)).empty());
}

TEST_CASE("schemas: a history entry is an interaction that may be superseded", "[schemas]") {
  const SchemaValidator schema("chat_history");
  Json entry = ToJson(FullInteraction());
  entry["superseded"] = true;
  Json chat = ToJson(ChatSummary{.id = *ChatId::Parse("c1")});
  chat["interactions"] = Json::array({entry});
  INFO(DumpJson(chat));
  CHECK(schema.Complaint(DumpJson(chat)).empty());
}

TEST_CASE("schemas: a pending approval satisfies approvals.schema.json", "[schemas]") {
  const SchemaValidator schema("approvals");
  const PendingApproval pending{*ChatId::Parse("c1"), InteractionId::FromNumber(1), SomeApproval()};
  const std::string body = DumpJson(Json{{"approvals", Json::array({ToJson(pending)})}, {"inputs", Json::array()}});
  INFO(body);
  CHECK(schema.Complaint(body).empty());
}

TEST_CASE("schemas: the sample chat satisfies them", "[schemas]") {
  const std::string sample = SourceDirectory() + "/chats/sample/trip/";
  CHECK(SchemaValidator("chat").Complaint(ReadText(sample + "chat.json")).empty());
  for (const char* name : {"int_001", "int_002"}) {
    const std::string text = ReadText(sample + "interactions/" + name + ".json");
    CHECK(SchemaValidator("interaction").Complaint(text).empty());
    const auto interaction = InteractionFromJson(*ParseJson(text));
    REQUIRE(interaction.has_value());
    CHECK(ToJson(*interaction) == *ParseJson(text));
  }
}

// --- openapi.json
// -----------------------------------------------------------------------------------------------------

namespace {

void CollectRefs(const PlainJson& node, std::vector<std::string>& refs) {
  if (node.is_object() && node.contains("$ref") && node["$ref"].is_string()) refs.push_back(node["$ref"]);
  if (!node.is_structured()) return;
  for (const auto& child : node) CollectRefs(child, refs);
}

// The reference as schema files write it.
PlainJson WithLocalRefs(PlainJson node) {
  if (node.is_object() && node.contains("$ref") && node["$ref"].is_string()) {
    node["$ref"] =
        std::regex_replace(node["$ref"].get<std::string>(), std::regex("#/components/schemas/"), "#/definitions/");
  }
  if (node.is_structured()) {
    for (auto& child : node) child = WithLocalRefs(child);
  }
  return node;
}

PlainJson OpenApi() { return PlainJson::parse(OpenApiDocument()); }

// Every "application/json" with an example, wherever it stands.
void CollectExamples(const PlainJson& node, std::vector<PlainJson>& media) {
  if (!node.is_structured()) return;
  if (node.is_object() && node.contains("application/json") && node["application/json"].contains("example")) {
    media.push_back(node["application/json"]);
  }
  for (const auto& child : node) CollectExamples(child, media);
}

}  // namespace

TEST_CASE("openapi.json: what is served is the file", "[openapi]") {
  CHECK(OpenApiDocument() == ReadText(kSchemas + "openapi.json"));
}

TEST_CASE("openapi.json: every reference leads somewhere", "[openapi]") {
  const PlainJson document = OpenApi();
  std::vector<std::string> refs;
  CollectRefs(document, refs);
  REQUIRE(refs.size() > 100);
  for (const std::string& ref : refs) {
    INFO(ref);
    REQUIRE(ref.substr(0, 2) == "#/");
    CHECK(document.contains(PlainJson::json_pointer(ref.substr(1))));
  }
}

TEST_CASE("openapi.json: its components are the schema files (else run scripts/openapi)", "[openapi]") {
  const PlainJson components = WithLocalRefs(OpenApi()["components"]["schemas"]);
  for (const std::string& name : SchemaNames()) {
    if (!components.contains(name)) {
      INFO(name << " is missing");
      const std::set<std::string> on_disk = {
          "api_tokens",     "bisect_report", "blame",         "blob",           "chat",     "checks",        "config",
          "file_record",    "hook_input",    "hook_output",   "import_report",  "jwe",      "jwe_protected", "keys",
          "protected_keys", "queue_file",    "rules_report",  "suggested_rule", "terminal", "test_report",   "trusted",
          "proof",          "proof_report",  "verify_report", "what_if_report"};
      CHECK(on_disk.contains(name));
      continue;
    }
    PlainJson schema = PlainJson::parse(ReadText(kSchemas + name + ".schema.json"));
    const PlainJson parts = schema.value("definitions", PlainJson::object());
    for (const auto& [part, text] : parts.items()) {
      INFO(name << " " << part);
      CHECK(components.at(part) == text);
    }
    schema.erase("definitions");
    schema.erase("$schema");
    INFO(name);
    CHECK(components.at(name) == schema);
  }
}

TEST_CASE("openapi.json: every example satisfies its schema", "[openapi][long]") {
  const PlainJson document = OpenApi();
  const PlainJson definitions = WithLocalRefs(document["components"]["schemas"]);
  std::vector<PlainJson> media;
  CollectExamples(document, media);
  REQUIRE(media.size() > 40);
  for (const PlainJson& entry : media) {
    PlainJson schema = {{"allOf", PlainJson::array({WithLocalRefs(entry["schema"])})}, {"definitions", definitions}};
    INFO(entry["example"].dump());
    CHECK(SchemaValidator::FromText(schema.dump()).Complaint(entry["example"].dump()).empty());
  }
}

}  // namespace reprise::test
