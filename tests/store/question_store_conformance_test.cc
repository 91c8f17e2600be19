// The facts that hold for every QuestionStore.
#include <atomic>
#include <thread>

#include "store/conformance/store_under_test.h"
#include "store/sample.h"
#include "support/memory_question_store.h"
#include "support/test.h"

namespace reprise::question_store_conformance_test {
namespace {

PendingApproval Approval(char last, std::optional<Timestamp> expires_at = std::nullopt) {
  PendingApproval pending{Chat1(), Id(1), {}};
  pending.request.approval_id = std::string("approval_") + std::string(31, '0') + last;
  pending.request.call_id = "call";
  pending.request.tool_name = "danger";
  pending.request.tool_input = R"({"text":"caf\u00e9"})";
  pending.request.arguments_digest = "sha256:" + std::string(64, 'a');
  pending.request.created_at = *ParseTimestamp("2026-11-21T10:00:00.000Z");
  pending.request.expires_at = expires_at;
  return pending;
}

PendingInput Input(char last) {
  PendingInput pending{Chat1(), Id(1), {}};
  pending.request.request_id = std::string("request_") + std::string(31, '0') + last;
  pending.request.call_id = "other";
  pending.request.question = "which?";
  return pending;
}

std::vector<std::string> IdsOf(const Result<std::vector<PendingQuestion>>& questions) {
  REQUIRE(questions);
  std::vector<std::string> ids;
  for (const PendingQuestion& each : *questions) ids.push_back(QuestionId(each));
  return ids;
}

std::unique_ptr<RunHold> Begun(PostgresUnderTest& under_test) {
  auto run = under_test.runs().Begin({.chat = Chat1(), .record = "{}", .reach = Journal::Reach::kPowerLoss});
  REQUIRE(run);
  return *std::move(run);
}

// Runs the facts on each kind, empty at first.
template <typename Facts>
void OnEachQuestionStore(Facts facts) {
  {
    CAPTURE("memory");
    MemoryQuestionStore memory;
    facts(memory);
  }
  if (test::PostgresServer::Get() == nullptr) return;
  CAPTURE("postgres");
  PostgresUnderTest under_test(std::make_shared<const KeySet>(KeySet::Generate()));
  const auto run = Begun(under_test);  // only the holder of a run may ask
  facts(under_test.questions());
}

}  // namespace

TEST_CASE("QuestionStore: a run that this process does not hold cannot ask", "[store][postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  PostgresUnderTest under_test(std::make_shared<const KeySet>(KeySet::Generate()));
  CHECK(under_test.questions().Open({Approval('1')}).error().reason == "fenced");
  {
    const auto run = Begun(under_test);
    CHECK(under_test.questions().Open({Approval('1')}));
    REQUIRE(run->Discard());
  }
  CHECK(under_test.questions().Open({Approval('2')}).error().reason == "fenced");
  CHECK(under_test.questions().Find(Approval('2').request.approval_id).error().code == ErrorCode::kNotFound);
}

TEST_CASE("QuestionStore: a question waits unchanged until its first answer", "[store]") {
  OnEachQuestionStore([](QuestionStore& store) {
    const PendingApproval approval = Approval('1');
    const PendingInput input = Input('2');
    REQUIRE(store.Open({approval}));
    REQUIRE(store.Open({input, approval}));  // the same again changes nothing
    const std::string first = approval.request.approval_id, second = input.request.request_id;
    CHECK(IdsOf(store.Waiting()) == std::vector{first, second});
    const auto found = store.Find(first);
    REQUIRE(found);
    CHECK(std::get<PendingApproval>(*found).request.tool_input == approval.request.tool_input);
    CHECK(QuestionRun(*found) == InteractionRef{Chat1(), Id(1)});
    REQUIRE(store.Answer({Chat1(), Id(1)}, first,
                         ApprovalAnswer{.approved = true, .arguments = "{}", .feedback = "go \u202e"}));
    CHECK(IdsOf(store.Waiting()) == std::vector{second});
    REQUIRE(store.Answer({Chat1(), Id(1)}, second, InputAnswer{.response = "this"}));
    const auto answered = store.Answered({Chat1(), Id(1)});
    REQUIRE(answered);
    REQUIRE(answered->size() == 2);
    for (const auto& [id, answer] : *answered) {
      if (id == second) {
        CHECK(std::get<InputAnswer>(answer).response == "this");
        continue;
      }
      const auto& given = std::get<ApprovalAnswer>(answer);
      CHECK((given.approved && given.arguments == "{}" && given.feedback == "go \u202e"));
    }
    CHECK(store.Answered({Chat1(), Id(2)})->empty());
  });
}

TEST_CASE("QuestionStore: a second answer, and one to no question, are refused with their own errors", "[store]") {
  OnEachQuestionStore([](QuestionStore& store) {
    const std::string id = Approval('1').request.approval_id;
    REQUIRE(store.Open({Approval('1')}));
    REQUIRE(store.Answer({Chat1(), Id(1)}, id, ApprovalAnswer{.approved = false}));
    const auto again = store.Answer({Chat1(), Id(1)}, id, ApprovalAnswer{.approved = true});
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::kInvalidArgument);
    CHECK(again.error().reason == "already_processed");
    CHECK(store.Find(id).error().reason == "already_processed");
    CHECK(store.Answer({Chat1(), Id(1)}, "approval_none", ApprovalAnswer{}).error().code == ErrorCode::kNotFound);
    CHECK(store.Find("approval_none").error().code == ErrorCode::kNotFound);
    CHECK_FALSE(std::get<ApprovalAnswer>(store.Answered({Chat1(), Id(1)})->front().second).approved);
  });
}

TEST_CASE("QuestionStore: an answer after the expiry does not count", "[store]") {
  OnEachQuestionStore([](QuestionStore& store) {
    REQUIRE(store.Open({Approval('1', *ParseTimestamp("2020-01-01T00:00:00.000Z")), Approval('2', At(0))}));
    const std::string late = Approval('1').request.approval_id, open = Approval('2').request.approval_id;
    CHECK(store.Answer({Chat1(), Id(1)}, late, ApprovalAnswer{.approved = true}).error().reason == "expired");
    CHECK(store.Find(late).error().reason == "expired");
    CHECK(IdsOf(store.Waiting()) == std::vector{open});
    CHECK(store.Answer({Chat1(), Id(1)}, open, ApprovalAnswer{.approved = true}));
  });
}

TEST_CASE("QuestionStore: one of many concurrent answers counts", "[store]") {
  OnEachQuestionStore([](QuestionStore& store) {
    for (const char last : {'1', '2', '3', '4', '5'}) {
      const std::string id = Approval(last).request.approval_id;
      REQUIRE(store.Open({Approval(last)}));
      std::atomic<int> counted = 0, refused = 0;
      {
        std::vector<std::jthread> people;
        for (int person = 0; person < 6; ++person) {
          people.emplace_back([&] {
            const auto given = store.Answer({Chat1(), Id(1)}, id, ApprovalAnswer{.approved = true});
            ++(given ? counted : refused);
          });
        }
      }
      CHECK(counted == 1);
      CHECK(refused == 5);
    }
  });
}

}  // namespace reprise::question_store_conformance_test
