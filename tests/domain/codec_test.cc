#include "domain/codec.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "support/test.h"

namespace reprise::codec_test {
namespace {

const Timestamp kTime = *ParseTimestamp("2025-01-15T10:00:00.123Z");

Interaction FullInteraction() {
  Interaction interaction{.id = InteractionId::FromNumber(3), .chat_id = *ChatId::Parse("chat")};
  interaction.parent_id = InteractionId::FromNumber(1);
  interaction.edited_from = InteractionId::FromNumber(2);
  interaction.status = InteractionStatus::kFailed;
  interaction.user_message = "h\xC3\xA4llo \"x\"\n";
  std::uint64_t seq = 2;
  const auto add = [&](EventPayload payload) { interaction.events.push_back({seq++, 1, kTime, std::move(payload)}); };
  add(event::Thinking{"hm"});
  add(event::MessageText{"let me"});
  add(event::ApprovalRequired{"approval_1",
                              "call_1",
                              "run_shell",
                              R"({"command":"ls"})",
                              "sha256:00",
                              "sha256:01",
                              "runs",
                              "high",
                              {"approve", "reject"},
                              {{"ls *", "ls with anything behind it"}},
                              "docs",
                              {"ask", "auto"},
                              kTime,
                              kTime});
  add(event::Approved{"approval_1", "call_1", "sha256:00", "chat", R"({"command":"ls -l"})"});
  event::Approved plan{"approval_1", "call_1", "sha256:00", "once", std::nullopt};
  plan.mode = "auto";
  add(std::move(plan));
  event::Approved outside{"approval_1", "call_1", "sha256:00", "once", std::nullopt};
  outside.outside_sandbox = true;
  add(std::move(outside));
  add(event::ToolCallStarted{"call_1", "run_shell", R"({"command":"ls -l"})"});
  add(event::ToolResult{"call_1", "run_shell", "out", true});
  add(event::Rejected{"approval_2", "call_2", "no"});
  add(event::Usage{{3, 4}});
  add(event::Retry{2, 2000, "provider_overloaded", "busy"});
  add(event::InputRequired{
      "request_x", "call_1", "Which?", {"a", "b"}, R"({"type":"object"})", "https://example.org/"});
  add(event::InputReceived{"request_x", "call_1", "a"});
  add(event::InputRequired{"request_y", "call_1", "Which?", {}, std::nullopt, std::nullopt});
  add(event::InputReceived{"request_y", "call_1", std::nullopt});
  add(event::TaskUpdated{"call_1", {{"1", "Pack", "doing"}}});
  add(event::TaskUpdated{std::nullopt, {}});
  add(event::PlanUpdated{"call_1", {"a", "b"}});
  add(event::LoopDetected{"run_shell", 3});
  add(event::Sound{{{FileId::Parse("file_0123456789abcdef0123456789abcdef").value(), "spoken.wav", "audio/wav", 44}}});
  add(event::JobStarted{"call_1", "job_0123456789abcdef", "npm run dev"});
  add(event::JobEnded{"job_0123456789abcdef", "npm run dev", "exited", 3});
  add(event::Compacted{90, 7000, 3000, 6144, "they spoke"});
  add(event::Compacted{0, 7000, 3000, 6144, "", 12});
  add(event::SentBack{"the tests fail", 2});
  add(event::Usage{{9, 4, 5, 1}});
  add(event::Nested{"call_1", 2, event::ToolCallStarted{"call_9", "read_file", "{}"}});
  add(event::Nested{"call_1", 3, event::Usage{{9, 4, 5, 1}}});
  add(event::Nested{"call_1", 4, event::Failed{"provider_error", "bad", true}});
  add(event::Answer{"done"});
  add(event::Answer{"half", "length"});
  add(event::Answer{"cited", "", {{{"https://a.example/", "A"}, 0, 5}, {{"https://b.example/", ""}, 2, 3}}});
  add(event::MessageText{"cited", {{{"https://a.example/", "A"}, 0, 5}}});
  add(event::WebSearch{"cats", {{"https://a.example/", "A"}, {"https://b.example/", ""}}, 4});
  add(event::WebSearch{"", {}, 0, "unavailable"});
  add(event::Nested{"call_1", 5, event::WebSearch{"cats", {{"https://a.example/", "A"}}}});
  add(event::Usage{{9, 4, 5, 1, 2}});
  add(event::Cancelled{"requested"});
  add(event::Failed{"provider_error", "bad", true});
  AgentState state;
  state.messages = {
      {.role = Role::kUser, .content = "hi"},
      {.role = Role::kAssistant,
       .content = std::nullopt,
       .tool_calls = {{"call_1", "run_shell", "{}"}},
       .extras = R"({"thinking_blocks":[{"signature":"s"}]})"},
      {.role = Role::kTool, .content = "out", .tool_call_id = "call_1", .name = "run_shell", .is_error = true}};
  state.grants = {{"run_shell", "sha256:00"}, {"run_shell", "sha256:00", "sha256:01"}};
  state.agenda = {.tasks = {{"1", "Pack", "done"}, {"x", "Drive", "todo"}}, .plan = {"a", "b"}};
  state.compaction = Compaction{.first = 1, .end = 3, .summary = "they spoke", .requested = true};
  state.memory = {{"page", "page-1", "About"}, {"file", "a.txt"}};
  interaction.final_agent_state = state;
  interaction.model = "openai/x";
  interaction.usage = {12, 8, 5, 1};
  interaction.error = InteractionError{"provider_error", "bad", true};
  interaction.created_at = interaction.completed_at.emplace(kTime);
  return interaction;
}

}  // namespace

TEST_CASE("Interaction: every member survives a round trip", "[domain]") {
  const Interaction interaction = FullInteraction();
  const auto parsed = ParseJson(DumpJson(ToJson(interaction)), 128);
  REQUIRE(parsed);
  const auto read = InteractionFromJson(*parsed);
  REQUIRE(read);
  CHECK(*read == interaction);
}

TEST_CASE("Interaction: written at once or built first, it is the same text", "[domain]") {
  const auto check = [](const Interaction& interaction) {
    std::string text = "before";
    AppendJson(text, interaction);
    CHECK(text == "before" + DumpJson(ToJson(interaction)));
  };
  Interaction interaction = FullInteraction();
  interaction.attachments = {
      {*FileId::Parse("file_0123456789abcdef0123456789abcdef"), "a \"b\".txt", "text/plain", 1ULL << 40},
      {*FileId::Parse("file_00000000000000000000000000000000"), "c", "image/png", 0}};
  check(interaction);
  interaction.parent_id = interaction.edited_from = std::nullopt;
  interaction.error.reset();
  interaction.completed_at.reset();
  interaction.final_agent_state.reset();
  interaction.attachments.clear();
  interaction.events.clear();
  check(interaction);
  for (int c = 0; c < 0x7f; ++c) interaction.user_message += static_cast<char>(c);
  for (const std::string_view broken : {"\xff", "a\xc3", "\xe2\x82 b", "\xed\xa0\x80", "\xf0\x9f\x98", "\xc0\x80"}) {
    interaction.user_message += broken;
    interaction.user_message += "\xF0\x9F\x98\x80\xe2\x80\xa8";
  }
  interaction.final_agent_state = AgentState{.messages = {{.role = Role::kAssistant}}};
  check(interaction);
}

TEST_CASE("Event data: written at once or built first, it is the same text", "[domain]") {
  const auto check = [](EventPayload payload) {
    const AgentEvent event{std::numeric_limits<std::uint64_t>::max(), 4'294'967'295, kTime, std::move(payload)};
    CHECK(EventData(event) == DumpJson(ToJson(event)));
  };
  for (const AgentEvent& event : FullInteraction().events) check(event.payload);
  check(event::InteractionStarted{"int_002", "chat", "int_001", std::nullopt, "offline"});
  check(event::InteractionComplete{"int_002", InteractionStatus::kCancelled});
  check(event::TextDelta{"a\n\xF0\x9F\x98\x80"});
  check(event::ThinkingDelta{""});
  check(event::SoundDelta{"AAA="});
  check(event::ToolOutputDelta{"call_1", "run_shell", "\xff"});
  check(event::GrantsUpdated{{{"run_shell", "sha256:00"}, {"write_file", "sha256:01", "sha256:02"}}});
  check(event::GrantsUpdated{});
  check(event::Rejected{"approval_1", "call_1", std::nullopt, true});
  check(event::Rejected{"approval_1", "call_1", std::nullopt, false, true});
  check(event::ApprovalRequired{.approval_id = "approval_1",
                                .call_id = "call_1",
                                .tool_name = "run_shell",
                                .tool_input = "{\"command\":\"a\xE2\x80\xAE\"}",  // a right-to-left override
                                .arguments_digest = {},
                                .terms_digest = {},
                                .reason = {},
                                .risk = {},
                                .allowed_decisions = {},
                                .created_at = kTime,
                                .expires_at = std::nullopt});
  check(event::Usage{{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), -1, 0}});
  // Only U+007F differs as text, with the same value.
  const AgentEvent deleted{1, 0, kTime, event::Answer{"\x7f"}};
  CHECK(*ParseJson(EventData(deleted)) == ToJson(deleted));
}

TEST_CASE("ReceivedEvent: any event comes back as it was sent", "[domain]") {
  std::vector<AgentEvent> sent = FullInteraction().events;
  const auto add = [&](EventPayload payload) { sent.push_back({sent.size(), 1, kTime, std::move(payload)}); };
  add(event::InteractionStarted{"int_002", "chat", "int_001", std::nullopt, "offline"});
  add(event::InteractionComplete{"int_002", InteractionStatus::kCancelled});
  add(event::GrantsUpdated{{{"run_shell", "sha256:00"}}});
  for (const AgentEvent& event : sent) {
    INFO(EventData(event));
    CHECK(ReceivedEvent(*ParseJson(EventData(event))) == event);
  }
  for (const EventPayload& delta :
       {EventPayload(event::TextDelta{"a"}), EventPayload(event::ThinkingDelta{"b"}),
        EventPayload(event::SoundDelta{"AAA="}), EventPayload(event::ToolOutputDelta{"call_1", "run_shell", "c"})}) {
    CHECK(ReceivedEvent(*ParseJson(EventData({.seq = 3, .payload = delta}))) == AgentEvent{.seq = 3, .payload = delta});
  }
}

TEST_CASE("ReceivedEvent: reads the known part of a newer server's events", "[domain]") {
  CHECK(ReceivedEvent(*ParseJson(R"({"type":"ANSWER","content":"x","mood":["new"]})")) ==
        AgentEvent{.payload = event::Answer{"x"}});
  for (const char* unknown : {R"({"type":"DREAMT","seq":1})", R"({"type":"ANSWER"})",
                              R"({"type":"ANSWER","content":1})", R"({"type":7})", "{}", "1"}) {
    INFO(unknown);
    CHECK_FALSE(ReceivedEvent(*ParseJson(unknown)));
  }
}

TEST_CASE("Interaction: a missing or mistyped member is named as corruption", "[domain]") {
  const Json good = ToJson(FullInteraction());
  for (const char* key : {"id", "chat_id", "status", "user_message", "agent_events", "created_at", "schema"}) {
    Json bad = good;
    bad.erase(key);
    const auto missing = InteractionFromJson(bad);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == ErrorCode::kCorruption);
    bad[key] = Json::array({1});
    if (std::string_view(key) != "agent_events") CHECK_FALSE(InteractionFromJson(bad));
  }
  Json newer = good;
  newer["schema"] = 2;
  CHECK(InteractionFromJson(newer).error().reason == "integrity_version");
  CHECK_FALSE(InteractionFromJson(Json::array()));
  Json event = good;
  event["agent_events"][0]["type"] = "UNHEARD_OF";
  CHECK_FALSE(InteractionFromJson(event));
}

TEST_CASE("Interaction: the specification's own example can be read", "[domain]") {
  const auto json = ParseJson(R"({"schema":1,"id":"int_001","chat_id":"c","status":"COMPLETED","user_message":"Hello",
    "agent_events":[],"final_agent_state":{"messages":[]},"created_at":"2025-01-15T10:00:00Z",
    "completed_at":"2025-01-15T10:00:05Z"})");
  REQUIRE(json);
  CHECK(InteractionFromJson(*json));
}

TEST_CASE("Message: provider extras and content in parts come back as they were", "[domain]") {
  const std::string text =
      R"({"role":"assistant","content":[{"type":"text","text":"a"}],"thinking_blocks":[{"signature":"x=="}]})";
  const auto message = MessageFromJson(*ParseJson(text));
  REQUIRE(message);
  CHECK(ToJson(*message) == *ParseJson(text));
}

TEST_CASE("Message: files of the chat are parts of its content", "[domain]") {
  const FileId id = FileId::Random();
  Message message{.role = Role::kUser, .content = "look"};
  message.parts = {{MessagePart::Kind::kImage, id, "image/png", "a.png", 12, 100},
                   {MessagePart::Kind::kDocument, id, "application/pdf", "b.pdf", 13, 2000},
                   {MessagePart::Kind::kAudio, id, "audio/wav", "c.wav", 14, 1}};
  const Json json = ToJson(message);
  CHECK(json["content"][0] == Json{{"type", "text"}, {"text", "look"}});
  CHECK(json["content"][1]["file_id"] == id.str());
  CHECK(MessageFromJson(json).value() == message);
  std::string text;
  AppendJson(text, message);
  CHECK(*ParseJson(text) == json);
  message.content.reset();
  CHECK(MessageFromJson(ToJson(message)).value() == message);
  // Foreign parts stay unchanged.
  const Json foreign = {{"role", "user"}, {"content", {{{"type", "file"}, {"file", {{"file_id", "x"}}}}}}};
  const Message kept = MessageFromJson(foreign).value();
  CHECK((kept.parts.empty() && ToJson(kept) == foreign));
  Json wrong = json;
  wrong["content"][1]["file_id"] = "../x";
  CHECK(!MessageFromJson(wrong));
  wrong = json;
  wrong["content"][1]["tokens"] = -1;
  CHECK(!MessageFromJson(wrong));
}

TEST_CASE("Event data: type, seq and round_index come first, on one line", "[domain]") {
  const AgentEvent event{7, 0, kTime, event::ToolCallStarted{"call_123", "search", "{\"query\":\n\"weather\"}"}};
  CHECK(
      EventData(event) ==
      R"({"type":"TOOL_CALL","seq":7,"round_index":0,"at":"2025-01-15T10:00:00.123Z","id":"call_123","tool_name":"search","tool_input":"{\"query\":\n\"weather\"}"})");
  CHECK(EventName(event.payload) == "tool_call");
}

TEST_CASE("TitleFromMessage: 50 whole characters on one line", "[domain]") {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "\xC3\xA4";
  CHECK(TitleFromMessage(text).size() == 100);
  CHECK(TitleFromMessage("\n a\r\n\tb") == " a b");
}

TEST_CASE("ArgumentsDigest: SHA-256 (FIPS 180-4, \"abc\")", "[domain]") {
  CHECK(ArgumentsDigest("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace reprise::codec_test
