#include "engine/recovery.h"

#include "support/fake_tools.h"
#include "support/test.h"

namespace reprise::recovery_test {
namespace {

Message Says(std::optional<std::string> text, std::vector<ToolCall> calls = {}) {
  return {.role = Role::kAssistant, .content = std::move(text), .tool_calls = std::move(calls)};
}
Message ResultOf(const std::string& id, std::string_view text) {
  Message message{.role = Role::kTool, .content = std::string(text), .tool_calls = {}, .tool_call_id = id};
  message.is_error = text == kOutcomeUnknown;
  return message;
}

// Ended in the middle of three calls, two of which had begun and not ended.
AgentState Interrupted() {
  return {.messages = {{.role = Role::kUser, .content = "go"},
                       Says("on it", {{"a", "reads", "{}"}, {"b", "reads", "{}"}, {"c", "writes", "{}"}}),
                       ResultOf("a", kOutcomeUnknown),
                       ResultOf("b", "fine"),
                       ResultOf("c", kOutcomeUnknown)}};
}

}  // namespace

TEST_CASE("Recovery: only what may be repeated is run again on resume", "[engine]") {
  FakeTools tools;
  const auto nothing = [](std::string_view, const ToolContext&) { return ToolOutcome{}; };
  tools.Add({.spec = {"reads", "a fake", "{}"}, .idempotent = true, .approval_reason = ""}, nothing);
  tools.Add({.spec = {"writes", "a fake", "{}"}, .idempotent = false, .approval_reason = ""}, nothing);
  AgentState state = Interrupted();
  SECTION("as it is") {}
  SECTION("with half an answer behind it") { state.messages.push_back(Says("so I th")); }
  const auto where = WhereToResume(state, *tools.Current());
  REQUIRE(where.calls.size() == 1);
  CHECK(where.calls[0].call.id == "a");
  PrepareToResume(state, {"a"});
  REQUIRE(state.messages.size() == 4);
  CHECK(state.messages[2].tool_call_id == "b");
  CHECK(state.messages[3].tool_call_id == "c");
}

TEST_CASE("Recovery: a resumed run that was killed again has all that it had come to", "[engine]") {
  const ChatId chat = *ChatId::Parse("c");
  InterruptedRun run{.interaction = {.id = InteractionId::FromNumber(2), .chat_id = chat}};
  run.interaction.user_message = "go";
  run.interaction.events.push_back({.seq = 2, .payload = event::ToolCallStarted{"a", "reads", "{}"}});
  run.last_seq = 2;
  run.record.resumed_from = ResumedFrom{.interaction = InteractionId::FromNumber(1), .call_ids = {"a"}};
  AgentState state = Interrupted();
  SECTION("while the call is repeated") {
    RestoreState(run, state);
    CHECK(state.messages.size() == 4);  // the user's message is not there twice
    const Interaction ended = EndInterrupted(run, state);
    const auto& messages = ended.final_agent_state->messages;
    REQUIRE(messages.size() == 5);
    CHECK(messages[4].tool_call_id == "a");
    CHECK(messages[4].content == kOutcomeUnknown);
  }
  SECTION("after that") {
    run.messages.push_back(ResultOf("a", "again"));
    RestoreState(run, state);
    const Interaction ended = EndInterrupted(run, state);
    const auto& messages = ended.final_agent_state->messages;
    REQUIRE(messages.size() == 5);
    CHECK(messages[4].content == "again");
    CHECK(messages[2].content == "fine");
  }
}

TEST_CASE("Recovery: answers that were taken are read back, shown or not", "[engine]") {
  JournalContent content;
  const ChatId chat = *ChatId::Parse("c");
  const auto id = InteractionId::FromNumber(1);
  {
    RunJournal journal({}, {});
    journal.AddBegin({.id = id, .chat_id = chat, .user_message = "go", .model = "m"}, OnDisconnect::kCancel);
    journal.AddAnswer("approval_1", ApprovalAnswer{.approved = true, .arguments = "{}", .scope = ApprovalScope::kChat});
    journal.AddAnswer("approval_2", ApprovalAnswer{.approved = false, .feedback = "no \u202e"});
    journal.AddAnswer("request_1", InputAnswer{.response = "this"});
    journal.AddAnswer("request_2", InputAnswer{});
    content.records.push_back(journal.TakeFirst());
  }
  const auto run = ReadRun({chat, id}, content);
  REQUIRE(run.value());
  const auto& answers = (*run)->answers;
  REQUIRE(answers.size() == 4);
  const auto& first = std::get<ApprovalAnswer>(answers.at("approval_1"));
  CHECK((first.approved && first.arguments == "{}" && first.scope == ApprovalScope::kChat && !first.feedback));
  const auto& second = std::get<ApprovalAnswer>(answers.at("approval_2"));
  CHECK((!second.approved && second.feedback == "no \u202e" && second.scope == ApprovalScope::kOnce));
  CHECK(std::get<InputAnswer>(answers.at("request_1")).response == "this");
  CHECK_FALSE(std::get<InputAnswer>(answers.at("request_2")).response);
  CHECK(JournalRecordAsJson(content.records.at(0))->find(R"({"answer":)") != std::string::npos);
}

TEST_CASE("Recovery: what a round has used goes on with its calls until an event shows it", "[engine]") {
  const ChatId chat = *ChatId::Parse("c");
  const auto id = InteractionId::FromNumber(1);
  const TokenUsage used{.input_tokens = 11, .output_tokens = 7};
  const bool is_shown = GENERATE(false, true);
  RunJournal journal({}, {});
  journal.AddBegin({.id = id, .chat_id = chat, .user_message = "go", .model = "m"}, OnDisconnect::kCancel);
  journal.AddUsage(0, used);
  if (is_shown) journal.AddEvent({.seq = 2, .payload = event::Usage{used}});
  JournalContent content;
  content.records.push_back(journal.TakeFirst());
  const auto run = ReadRun({chat, id}, content);
  REQUIRE(run.value());
  CHECK((*run)->interaction.usage == used);
  CHECK((*run)->unshown_usage == (is_shown ? TokenUsage{} : used));
}

}  // namespace reprise::recovery_test
