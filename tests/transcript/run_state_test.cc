#include "domain/transcript/transcript.h"
#include "support/test.h"

namespace reprise::test::run_state_test {
namespace {

RunState After(const std::vector<EventPayload>& events) {
  RunState state;
  std::uint64_t seq = 0;
  for (const EventPayload& each : events) state.Take({.seq = ++seq, .payload = each});
  return state;
}

event::ApprovalRequired Approval(const std::string& id) {
  event::ApprovalRequired asked;
  asked.approval_id = id;
  return asked;
}

const event::InteractionStarted kStarted{"int_002", "chat", std::nullopt, std::nullopt, "offline"};

}  // namespace

TEST_CASE("RunState: a question is open until it is answered, or the run ends", "[transcript]") {
  const event::InputRequired input{"request_1", "call_1", "Which?", {}, std::nullopt, std::nullopt};
  CHECK(After({kStarted, Approval("a"), input}).open.size() == 2);
  const RunState answered =
      After({kStarted, Approval("a"), input, event::Approved{"a", "call_1", "", "once", std::nullopt}});
  REQUIRE(answered.open.size() == 1);
  CHECK(QuestionId(answered.open.front()) == "request_1");
  CHECK(QuestionRun(answered.open.front()).interaction_id.str() == "int_002");
  CHECK(After({kStarted, Approval("a"), event::Rejected{"a", "call_1", std::nullopt}}).open.empty());
  CHECK(After({kStarted, input, event::InputReceived{"request_1", "call_1", "b"}}).open.empty());
  CHECK(After({kStarted, Approval("a"), event::Cancelled{"requested"}}).open.empty());
  CHECK(After({kStarted, Approval("a"), event::InteractionComplete{"int_002"}}).open.empty());
}

TEST_CASE("RunState: how a run has ended", "[transcript]") {
  CHECK_FALSE(After({kStarted}).status);
  const RunState state = After({kStarted, event::Answer{"half", "length"}, event::Failed{"max_rounds", "too many"},
                                event::InteractionComplete{"int_002", InteractionStatus::kFailed}});
  CHECK(state.status == InteractionStatus::kFailed);
  CHECK(state.model == "offline");
  CHECK(state.answer.reason == "length");
  CHECK(state.failure.code == "max_rounds");
}

}  // namespace reprise::test::run_state_test
