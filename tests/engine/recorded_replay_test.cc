#include "engine/recorded_replay.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agent/history.h"
#include "approval/decision.h"
#include "domain/codec.h"
#include "engine/elastic_pool.h"
#include "support/test.h"

namespace reprise::recorded_replay_test {
namespace {

Message Assistant(std::optional<std::string> text, std::vector<ToolCall> calls = {}) {
  return {.role = Role::kAssistant, .content = std::move(text), .tool_calls = std::move(calls)};
}

Message ResultOf(const std::string& id, const std::string& text, bool is_error = false) {
  Message message{.role = Role::kTool, .content = text, .tool_calls = {}, .tool_call_id = id};
  message.name = "tool";
  message.is_error = is_error;
  return message;
}

class Record {
 public:
  Record() : made{.id = InteractionId::FromNumber(1), .chat_id = ChatId::Parse("c").value()} {
    made.user_message = "hello";
    made.status = InteractionStatus::kCompleted;
    made.completed_at = made.created_at;
    made.final_agent_state = AgentState{.messages = {{.role = Role::kUser, .content = "hello"}}, .grants = {}};
    made.record = RunRecord{.first_message = 1};
  }
  Record& Shows(std::uint32_t round, EventPayload payload) {
    made.events.push_back({.seq = next_seq_ += 2, .round_index = round, .at = {}, .payload = std::move(payload)});
    return *this;
  }
  Record& Says(Message message) {
    made.final_agent_state->messages.push_back(std::move(message));
    return *this;
  }
  ReplayReport Replay() const {
    ElasticPool pool;
    return ReplayRecorded(made, [&pool](std::function<void()> job) { pool.Submit(std::move(job)); }).value();
  }
  Interaction made;

 private:
  std::uint64_t next_seq_ = 0;
};

event::ApprovalRequired Question(const std::string& id, const std::string& arguments) {
  return {.approval_id = "approval_" + id,
          .call_id = id,
          .tool_name = "tool",
          .tool_input = arguments,
          .arguments_digest = ArgumentsDigest(arguments),
          .terms_digest = "sha256:" + std::string(64, '0'),
          .reason = "because",
          .risk = "odd",
          .allowed_decisions = {"approve"},
          .created_at = Timestamp(std::chrono::milliseconds(5)),
          .expires_at = std::nullopt};
}

// Two calls, the first with changed arguments and feedback, then an answer.
Record WithTools() {
  Record record;
  const std::string changed = R"({"a":2})";
  const std::string output = "(The user changed the arguments to {\"a\":2})\nfine\n(The user adds: good)";
  record.Says(Assistant("I try", {{"t1", "tool", R"({"a":1})"}, {"t2", "tool", "{}"}}))
      .Says(ResultOf("t1", output))
      .Says(ResultOf("t2", "bad", true))
      .Says(Assistant("done"));
  record.Shows(0, event::Retry{.attempt = 1, .delay_ms = 77, .code = "provider_overloaded", .message = "later"})
      .Shows(0, event::Thinking{"hm"})
      .Shows(0, event::MessageText{"I try"})
      .Shows(0, Question("t1", R"({"a":1})"))
      .Shows(0, event::Approved{"approval_t1", "t1", ArgumentsDigest(changed), "once", changed})
      .Shows(0, event::ToolCallStarted{"t1", "tool", changed})
      .Shows(0, event::ToolResult{"t1", "tool", output, false})
      .Shows(0, event::ToolCallStarted{"t2", "tool", "{}"})
      .Shows(0, event::ToolResult{"t2", "tool", "bad", true})
      .Shows(0, event::Usage{{.input_tokens = 3, .output_tokens = 4}})
      .Shows(1, event::Answer{"done"});
  return record;
}

std::uint64_t WhereItDiffers(const Record& record) {
  const auto report = record.Replay();
  return report.divergence ? report.divergence->seq : 0;
}

}  // namespace

TEST_CASE("a record that nobody changed matches, event for event", "[replay]") {
  const auto report = WithTools().Replay();
  CHECK_FALSE(report.divergence);
  CHECK(report.events == 11);
}

TEST_CASE("steps of sub-agents are taken from the record, in whatever order they came", "[replay]") {
  const auto step = [](const std::string& id, std::uint32_t round) {
    return event::Nested{id, round, event::Answer{"found"}};
  };
  Record record;
  record.Says(Assistant(std::nullopt, {{"r1", "tool", "{}"}, {"r2", "tool", R"({"a":1})"}}))
      .Says(ResultOf("r1", "one"))
      .Says(ResultOf("r2", "two"))
      .Says(Assistant("done"));
  record.Shows(0, event::ToolCallStarted{"r1", "tool", "{}"})
      .Shows(0, event::ToolCallStarted{"r2", "tool", R"({"a":1})"})
      .Shows(0, step("r2", 0))
      .Shows(0, step("r1", 0))
      .Shows(0, step("r2", 1))
      .Shows(0, event::ToolResult{"r1", "tool", "one", false})
      .Shows(0, step("r2", 2))
      .Shows(0, event::ToolResult{"r2", "tool", "two", false})
      .Shows(1, event::Answer{"done"});
  const auto report = record.Replay();
  CHECK_FALSE(report.divergence);
  CHECK(report.events == 9);

  std::get<event::Nested>(record.made.events[3].payload).call_id = "of nobody";
  CHECK(WhereItDiffers(record) == record.made.events[3].seq);
}

TEST_CASE("what a hook has changed or denied is as the record says", "[replay]") {
  Record record;
  const std::string changed = R"({"a":2})";
  const std::string output = "(A hook changed the arguments to {\"a\":2})\nfine";
  record.Says(Assistant(std::nullopt, {{"t1", "tool", R"({"a":1})"}, {"t2", "tool", changed}, {"t3", "tool", "{}"}}))
      .Says(ResultOf("t1", output))
      .Says(ResultOf("t2", "plain"))
      .Says(ResultOf("t3", "Not run: a hook denied it: no", true))
      .Says(Assistant("done"));
  record.Shows(0, event::ToolCallStarted{"t1", "tool", changed})
      .Shows(0, event::ToolResult{"t1", "tool", output, false})
      .Shows(0, event::ToolCallStarted{"t2", "tool", changed})
      .Shows(0, event::ToolResult{"t2", "tool", "plain", false})
      .Shows(0, event::ToolCallStarted{"t3", "tool", "{}"})
      .Shows(0, event::ToolResult{"t3", "tool", "Not run: a hook denied it: no", true})
      .Shows(1, event::Answer{"done"});
  CHECK_FALSE(record.Replay().divergence);
  std::get<event::ToolResult>(record.made.events[1].payload).tool_output = "fine";
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
}

TEST_CASE("each change of an event is reported at its seq", "[replay]") {
  const Record record = WithTools();
  for (std::size_t i = 0; i < record.made.events.size(); ++i) {
    Record changed = record;
    EventPayload& payload = changed.made.events[i].payload;
    if (auto* retry = std::get_if<event::Retry>(&payload)) retry->attempt = 2;
    if (auto* text = std::get_if<event::MessageText>(&payload)) text->content += "!";
    if (auto* answer = std::get_if<event::Answer>(&payload)) answer->content += "!";
    if (auto* asked = std::get_if<event::ApprovalRequired>(&payload)) asked->tool_input = "{}";
    if (auto* approved = std::get_if<event::Approved>(&payload)) approved->arguments_digest = "sha256:0";
    if (auto* call = std::get_if<event::ToolCallStarted>(&payload)) call->tool_input = R"({"b":1})";
    if (auto* result = std::get_if<event::ToolResult>(&payload)) result->tool_output += "!";
    if (changed.made.events == record.made.events) continue;  // thinking and usage are known from the events alone
    INFO(i);
    CHECK(WhereItDiffers(changed) == record.made.events[i].seq);
  }
}

TEST_CASE("events that are missing or too many are a divergence", "[replay]") {
  Record shorter = WithTools(), longer = WithTools();
  shorter.made.events.pop_back();
  CHECK(WhereItDiffers(shorter) != 0);
  longer.Shows(2, event::Answer{"more"});
  CHECK(WhereItDiffers(longer) == 24);
  Record mute = WithTools();
  Messages& messages = mute.made.final_agent_state->messages;
  std::vector<Message> rest(messages.begin(), messages.end());
  std::erase_if(rest, [](const Message& each) { return each.tool_call_id == "t2"; });
  messages = std::move(rest);
  const auto report = mute.Replay();
  REQUIRE(report.divergence);
  CHECK_FALSE(report.divergence->actual);  // no tool was run for it
}

TEST_CASE("runs that were stopped are stopped in the same place", "[replay]") {
  // Earlier versions recorded the first one for calls that had not begun.
  const std::string cancelled(GENERATE(kCancelledResult, kNotBegunResult));
  Record record;
  record.made.status = InteractionStatus::kCancelled;
  record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}, {"t2", "tool", "{}"}}));
  SECTION("before any call") {
    record.Says(ResultOf("t1", cancelled, true));
    record.Shows(0, event::ToolResult{"t1", "tool", cancelled, true});
  }
  SECTION("while it asked") {
    record.Says(ResultOf("t1", cancelled, true));
    record.Shows(0, Question("t1", "{}")).Shows(0, event::ToolResult{"t1", "tool", cancelled, true});
  }
  SECTION("between the answer and the call") {
    record.Says(ResultOf("t1", cancelled, true));
    record.Shows(0, Question("t1", "{}"))
        .Shows(0, event::Approved{"approval_t1", "t1", ArgumentsDigest("{}"), "chat", std::nullopt})
        .Shows(0, event::ToolResult{"t1", "tool", cancelled, true});
  }
  SECTION("while it ran") {
    record.Says(ResultOf("t1", "half of it"));
    record.Shows(0, event::ToolCallStarted{"t1", "tool", "{}"})
        .Shows(0, event::ToolResult{"t1", "tool", "half of it", false});
  }
  record.Says(ResultOf("t2", cancelled, true));
  record.Shows(0, event::ToolResult{"t2", "tool", cancelled, true}).Shows(0, event::Cancelled{"requested"});
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  record.made.events.back().payload = event::Failed{"provider_error", "no", false};
  CHECK(WhereItDiffers(record) != 0);  // the status is another
}

TEST_CASE("failures replay", "[replay]") {
  Record record;
  record.made.status = InteractionStatus::kFailed;
  SECTION("in the middle of a response") {
    record.Says(Assistant("half"));
    record.Shows(0, event::Thinking{"t"}).Shows(0, event::MessageText{"half"});
    record.Shows(0, event::Failed{"provider_protocol", "cut", true});
  }
  SECTION("after repetitions") {
    record.Shows(0, event::Retry{.attempt = 1, .delay_ms = 1000, .code = "a", .message = "b"})
        .Shows(0, event::Retry{.attempt = 2, .delay_ms = 2000, .code = "a", .message = "c"})
        .Shows(0, event::Failed{"provider_overloaded", "d", true});
  }
  SECTION("of the disk, after the answer") {
    record.Says(Assistant("all said"));
    record.Shows(0, event::Answer{"all said"}).Shows(0, event::Failed{"storage_full", "no space", true});
  }
  SECTION("too many rounds") {
    record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}})).Says(ResultOf("t1", "again"));
    record.Shows(0, event::ToolCallStarted{"t1", "tool", "{}"})
        .Shows(0, event::ToolResult{"t1", "tool", "again", false})
        .Shows(0, event::Failed{"max_rounds", "the agent did not finish within 1 rounds", false});
  }
  SECTION("the process ended between two calls") {
    record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}, {"t2", "tool", "{}"}}))
        .Says(ResultOf("t1", "fine"))
        .Says(ResultOf("t2", "The server ended before this call was run.", true));
    record.Shows(0, event::ToolCallStarted{"t1", "tool", "{}"})
        .Shows(0, event::ToolResult{"t1", "tool", "fine", false})
        .Shows(0, event::Failed{"interrupted", "the server ended", true});
  }
  SECTION("calls were refused") {
    const std::string refused = "This server refuses calls that need approval.";
    record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}})).Says(ResultOf("t1", refused, true));
    record.Shows(0, event::ToolResult{"t1", "tool", refused, true}).Shows(1, event::Failed{"x", "y", false});
  }
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == record.made.events.size());
}

TEST_CASE("what tools asked and what was answered replays", "[replay]") {
  Record record;
  const event::InputRequired asked{.request_id = "request_1",
                                   .call_id = "t1",
                                   .question = "Which?",
                                   .options = {"a", "b"},
                                   .schema = R"({"type":"object"})",
                                   .url = std::nullopt};
  record.Shows(0, event::ToolCallStarted{"t1", "tool", "{}"}).Shows(0, asked);
  bool answered = true;
  std::string output = "fine";
  SECTION("once") { record.Shows(0, event::InputReceived{"request_1", "t1", "a"}); }
  SECTION("declined") { record.Shows(0, event::InputReceived{"request_1", "t1", std::nullopt}); }
  SECTION("several times, one of them in vain") {
    event::InputRequired again = asked;
    again.request_id = "request_2";
    record.Shows(0, again).Shows(0, event::InputReceived{"request_2", "t1", "{}"});
    again.request_id = "request_3";
    record.Shows(0, again).Shows(0, event::InputReceived{"request_3", "t1", "{}"});
  }
  SECTION("stopped while it waited") {
    output = kCancelledResult;
    answered = false;
  }
  record.Shows(0, event::ToolResult{"t1", "tool", output, !answered});
  record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}})).Says(ResultOf("t1", output, !answered));
  if (answered) {
    record.Says(Assistant("done")).Shows(1, event::Answer{"done"});
  } else {
    record.made.status = InteractionStatus::kCancelled;
    record.Shows(0, event::Cancelled{"requested"});
  }
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == record.made.events.size());
  if (!answered) return;
  auto& events = record.made.events;
  const auto answer = std::find_if(events.begin(), events.end(), [](const AgentEvent& event) {
    return std::holds_alternative<event::InputReceived>(event.payload);
  });
  const std::uint64_t seq = answer->seq;
  events.erase(answer - 1);  // now nobody asked for it
  CHECK(WhereItDiffers(record) == seq);
}

// Two calls at once that both ask, the second one first.
TEST_CASE("questions of calls that ran together replay in their order", "[replay]") {
  const auto asked = [](const std::string& id) {
    event::InputRequired request;
    request.request_id = "request_" + id;
    request.call_id = id;
    request.question = "Which?";
    return request;
  };
  Record record;
  record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}, {"t2", "tool", "{}"}}))
      .Says(ResultOf("t1", "one"))
      .Says(ResultOf("t2", "two"))
      .Says(Assistant("done"));
  record.Shows(0, event::ToolCallStarted{"t1", "tool", "{}"})
      .Shows(0, event::ToolCallStarted{"t2", "tool", "{}"})
      .Shows(0, asked("t2"))
      .Shows(0, asked("t1"))
      .Shows(0, event::InputReceived{"request_t2", "t2", "b"})
      .Shows(0, event::InputReceived{"request_t1", "t1", "a"})
      .Shows(0, event::ToolResult{"t1", "tool", "one", false})
      .Shows(0, event::ToolResult{"t2", "tool", "two", false})
      .Shows(1, event::Answer{"done"});
  for (int i = 0; i < 20; ++i) {
    const auto report = record.Replay();
    if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
    CHECK(report.events == 9);
  }
}

TEST_CASE("changes of the agenda replay", "[replay]") {
  const std::vector<Task> one{{.id = "1", .title = "x"}}, none{};
  Record record;
  record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}, {"t2", "tool", "{}"}}))
      .Says(ResultOf("t1", "kept"))
      .Says(ResultOf("t2", "kept"))
      .Says(Assistant("done"));
  record.Shows(0, event::ToolCallStarted{"t1", "tool", "{}"});
  record.made.record->agenda_before = Agenda{};
  SECTION("the last task is removed, then there is one") {
    record.made.record->agenda_before->tasks = one;
    record.Shows(0, event::TaskUpdated{"t1", none})
        .Shows(0, event::TaskUpdated{"t1", one})
        .Shows(0, event::PlanUpdated{"t1", {"a", "b"}});
  }
  SECTION("the plan is given up") {
    record.Shows(0, event::TaskUpdated{"t1", one}).Shows(0, event::PlanUpdated{"t1", {"a", "b"}});
    record.Shows(0, event::ToolResult{"t1", "tool", "kept", false})
        .Shows(0, event::ToolCallStarted{"t2", "tool", "{}"});
    record.Shows(0, event::PlanUpdated{"t2", {}}).Shows(0, event::ToolResult{"t2", "tool", "kept", false});
  }
  if (record.made.events.size() == 4) {
    record.Shows(0, event::ToolResult{"t1", "tool", "kept", false})
        .Shows(0, event::ToolCallStarted{"t2", "tool", "{}"});
    record.Shows(0, event::ToolResult{"t2", "tool", "kept", false});
  }
  record.Shows(1, event::Answer{"done"});
  Agenda& agenda = record.made.final_agent_state->agenda;
  agenda.tasks = one;
  if (std::holds_alternative<event::ToolResult>(record.made.events[4].payload)) agenda.plan = {"a", "b"};
  if (std::holds_alternative<event::PlanUpdated>(record.made.events[5].payload)) agenda.plan = {};
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == record.made.events.size());
  agenda.tasks = none;
  CHECK(WhereItDiffers(record) == record.made.events.back().seq + 1);
  agenda.tasks = one;
  std::get<event::TaskUpdated>(record.made.events[1].payload).call_id = "t9";
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
}

TEST_CASE("a change by hand is compared with the state", "[replay]") {
  Record record;
  record.made.user_message.clear();
  record.made.final_agent_state->agenda = {.tasks = {{.id = "1", .title = "x"}}, .plan = {"a"}};
  record.Shows(0, event::TaskUpdated{std::nullopt, {{.id = "1", .title = "x"}}})
      .Shows(0, event::PlanUpdated{{}, {"a"}});
  CHECK_FALSE(record.Replay().divergence);
  CHECK(record.Replay().events == 2);
  std::get<event::PlanUpdated>(record.made.events[1].payload).steps.push_back("b");
  const auto report = record.Replay();
  REQUIRE(report.divergence);
  CHECK(report.divergence->seq == record.made.events[1].seq);
  CHECK(report.divergence->actual->payload == EventPayload(event::PlanUpdated{std::nullopt, {"a"}}));
  record.made.events.pop_back();
  record.Shows(0, event::Answer{"who says so?"});
  CHECK_FALSE(record.Replay().divergence->actual);
}

TEST_CASE("loops of calls are detected again", "[replay]") {
  Record record;
  const auto call = [](int round) { return ToolCall{"t" + std::to_string(round), "tool", R"({"a":1})"}; };
  const std::string told =
      "Not run: this is call number 3 of tool with the same arguments, and nothing has changed in between. Do not make "
      "it again: use the results you have, try something else, or answer and say what is missing.";
  for (std::uint32_t round = 0; round < 2; ++round) {
    const std::string id = call(static_cast<int>(round)).id;
    record.Says(Assistant(std::nullopt, {call(static_cast<int>(round))})).Says(ResultOf(id, "again"));
    record.Shows(round, Question(id, R"({"a":1})"))
        .Shows(round, event::Approved{"approval_" + id, id, ArgumentsDigest(R"({"a":1})"), "once", std::nullopt})
        .Shows(round, event::ToolCallStarted{id, "tool", R"({"a":1})"})
        .Shows(round, event::ToolResult{id, "tool", "again", false});
  }
  record.Says(Assistant(std::nullopt, {call(2)})).Says(ResultOf("t2", told, true)).Says(Assistant("I see"));
  record.Shows(2, event::LoopDetected{"tool", 3})
      .Shows(2, event::ToolResult{"t2", "tool", told, true})
      .Shows(3, event::Answer{"I see"});
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  std::get<event::LoopDetected>(record.made.events[8].payload).count = 4;
  CHECK(WhereItDiffers(record) == record.made.events[8].seq);
}

TEST_CASE("compactions are compared with what the state keeps of them", "[replay]") {
  Record record;
  record.made.final_agent_state->messages.Insert(
      0, {{.role = Role::kUser, .content = "first"}, Assistant("a"), Assistant("b")});
  record.made.record->first_message = 4;
  record.made.final_agent_state->compaction = Compaction{.first = 1, .end = 3, .summary = "in short"};
  const auto compacted = [](std::int64_t messages, const std::string& summary) {
    return event::Compacted{
        .messages = messages, .tokens_before = 9, .tokens_after = 5, .budget = 6, .summary = summary};
  };
  record.Shows(0, event::Usage{{.input_tokens = 7, .output_tokens = 1}})
      .Shows(0, compacted(1, "shorter"))
      .Shows(0, compacted(2, "in short"));
  SECTION("before the answer") {
    record.Says(Assistant("done"));
    record.Shows(0, event::Usage{{.input_tokens = 1, .output_tokens = 2}}).Shows(0, event::Answer{"done"});
    std::swap(record.made.events[3].payload, record.made.events[4].payload);
  }
  SECTION("before a request that failed") {
    record.made.status = InteractionStatus::kFailed;
    record.Shows(0, event::Retry{.attempt = 1, .delay_ms = 77, .code = "provider_overloaded", .message = "later"});
    record.Shows(0, event::Failed{"provider_error", "no", false});
  }
  SECTION("and the run was stopped while another was made") {
    record.made.status = InteractionStatus::kCancelled;
    record.Shows(0, event::Usage{{.input_tokens = 7, .output_tokens = 1}}).Shows(0, event::Cancelled{"requested"});
  }
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == record.made.events.size());
  auto& last = std::get<event::Compacted>(record.made.events[2].payload);
  const auto differs = [&] { return WhereItDiffers(record) == record.made.events[2].seq; };
  last.summary += "!";
  CHECK(differs());
  last = compacted(3, "in short");
  CHECK(differs());
  last = compacted(2, "in short");
  std::get<event::Compacted>(record.made.events[1].payload).messages = 400;
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
  record.made.final_agent_state->compaction.reset();
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
}

TEST_CASE("a summary after the answer is compared with the final state", "[replay]") {
  Record record;
  record.Says(Assistant("done")).Shows(0, event::Answer{"done"});
  record.Shows(1, event::Compacted{.messages = 2, .summary = "in short"});
  record.made.final_agent_state->compaction =
      Compaction{.first = 0, .end = 2, .summary = "in short", .requested = true};
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == 2);
  record.made.final_agent_state->compaction->summary += "!";
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
  record.made.final_agent_state->compaction.reset();
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
}

TEST_CASE("cleared results are taken from the record", "[replay]") {
  Record record;
  record.made.final_agent_state->cleared = 1;
  record.Shows(0, event::Compacted{.tokens_before = 9, .tokens_after = 5, .budget = 6, .results = 2});
  record.Says(Assistant("done"));
  record.Shows(0, event::Answer{"done"});
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == 2);
  record.made.final_agent_state->cleared = 0;
  CHECK(WhereItDiffers(record) == record.made.events[0].seq);
}

TEST_CASE("an answer that a check sent back replays, and a changed reason is found", "[replay]") {
  Record record;
  record.Says(Assistant("bad"))
      .Says({.role = Role::kUser, .content = std::string(kSentBackIntro) + "not good"})
      .Says(Assistant("good"));
  record.Shows(0, event::MessageText{"bad"})
      .Shows(0, event::SentBack{"not good", 1})
      .Shows(0, event::Usage{{.input_tokens = 3, .output_tokens = 4}})
      .Shows(1, event::Answer{"good"});
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == 4);
  std::get<event::SentBack>(record.made.events[1].payload).content = "very good";
  CHECK(WhereItDiffers(record) == record.made.events[1].seq);
}

TEST_CASE("web searches, citations and pauses replay, and a changed result is found", "[replay]") {
  const std::vector<Citation> cited{{{"https://a.example/", "A"}, 0, 4}};
  Record record;
  record.Says(Assistant("half")).Says(Assistant("")).Says(Assistant("good"));
  record.Shows(0, event::MessageText{"half", cited})
      .Shows(0, event::WebSearch{"cats", {{"https://a.example/", "A"}}})
      .Shows(1, event::WebSearch{"dogs", {}, 0, "unavailable"})
      .Shows(2, event::Answer{"good", "", cited});
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == 4);
  SECTION("the last one never went on") {
    record.made.status = InteractionStatus::kFailed;
    record.made.final_agent_state->messages.pop_back();
    record.made.events.pop_back();
    record.Shows(2, event::Failed{"provider_error", "bad", true});
    const auto failed = record.Replay();
    if (failed.divergence) FAIL(failed.divergence->seq << " " << failed.divergence->reason);
  }
  SECTION("changed") {
    std::get<event::MessageText>(record.made.events[0].payload).content = "other";
    CHECK(WhereItDiffers(record) == record.made.events[0].seq);
  }
}

TEST_CASE("what goes on with the calls of another interaction replays from there", "[replay]") {
  const std::string unknown = "The server ended while this call ran. What it did is not known.";
  Record record;
  const auto before = InteractionId::FromNumber(7);
  record.made.edited_from = before;
  record.Says(Assistant(std::nullopt, {{"t1", "tool", "{}"}, {"t2", "tool", "{}"}})).Says(ResultOf("t1", "before"));
  record.made.record = {.first_message = 3, .resumed_from = ResumedFrom{.interaction = before, .call_ids = {"t2"}}};
  record.Shows(0, event::ToolCallStarted{"t2", "tool", "{}"});
  SECTION("to its end") {
    record.Says(ResultOf("t2", "now")).Says(Assistant("done"));
    record.Shows(0, event::ToolResult{"t2", "tool", "now", false}).Shows(1, event::Answer{"done"});
  }
  SECTION("and is cut off again") {
    record.made.status = InteractionStatus::kFailed;
    record.Says(ResultOf("t2", unknown, true));
    record.Shows(0, event::ToolResult{"t2", "tool", unknown, true})
        .Shows(0, event::Failed{"interrupted", "the server ended", true});
  }
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == record.made.events.size());
  // Version 0.1 did not store which calls these were.
  record.made.record.reset();
  const auto never = [](const std::function<void()>&) { FAIL("nothing runs"); };
  const bool was_cut_off = record.made.status == InteractionStatus::kFailed;
  if (!was_cut_off) CHECK(ReplayRecorded(record.made, never).error().reason == "not_replayable");
}

TEST_CASE("what version 0.1 or another program stored replays as far as it tells where it began", "[replay]") {
  Record record;
  record.made.record.reset();
  record.Says(Assistant("on it", {{"t1", "tool", "{}"}})).Says(ResultOf("t1", "there")).Says(Assistant("done"));
  record.Shows(0, event::MessageText{"on it"}).Shows(0, event::ToolCallStarted{"t1", "tool", "{}"});
  record.Shows(0, event::TaskUpdated{"t1", {}}).Shows(0, event::ToolResult{"t1", "tool", "there", false});
  record.Shows(1, event::Answer{"done"});
  SECTION("a message") {}
  SECTION("an edit") { record.made.edited_from = InteractionId::FromNumber(7); }
  SECTION("what went on behind an answer that broke off") {
    auto& messages = record.made.final_agent_state->messages;
    record.made.edited_from = InteractionId::FromNumber(7);
    messages.Insert(1, {Assistant(std::nullopt, {{"t0", "tool", "{}"}}), ResultOf("t0", "before")});
  }
  const auto report = record.Replay();
  if (report.divergence) FAIL(report.divergence->seq << " " << report.divergence->reason);
  CHECK(report.events == record.made.events.size());
}

TEST_CASE("what is no record cannot be replayed", "[replay]") {
  const auto never = [](const std::function<void()>&) { FAIL("nothing runs"); };
  Record record;
  CHECK(ReplayRecorded(record.made, never).error().reason == "not_replayable");  // nothing was shown
  record.Shows(0, event::Answer{"x"});
  record.made.status = InteractionStatus::kRunning;
  CHECK(ReplayRecorded(record.made, never).error().reason == "not_replayable");
  record.made.status = InteractionStatus::kCompleted;
  record.made.record->first_message = 17;  // there are not so many
  CHECK(ReplayRecorded(record.made, never).error().reason == "not_replayable");
  record.made.record.reset();
  record.made.user_message = "another";
  CHECK(ReplayRecorded(record.made, never).error().reason == "not_replayable");
  record.made.final_agent_state.reset();
  CHECK(ReplayRecorded(record.made, never).error().code == ErrorCode::kConflict);
}

}  // namespace reprise::recorded_replay_test
