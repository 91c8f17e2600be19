// Answers to approvals when other servers may answer them too.
#include <algorithm>

#include "reprise/engine.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "store/tenant_files.h"
#include "support/await_log.h"
#include "support/fake_tools.h"
#include "support/memory_file_system.h"
#include "support/memory_question_store.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::answers_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");
const InteractionId kFirst = InteractionId::FromNumber(1);
const ApprovalAnswer kAlways{.approved = true, .scope = ApprovalScope::kAlways};

struct Fixture {
  Fixture() {
    REQUIRE(disk.CreateDirectory("/data"));
    tools.Add("danger", true, [](std::string_view, const ToolContext&) { return ToolOutcome{"boom", false}; });
    model.ThenCall({{"1", "danger", "{}"}});
    model.ThenAnswer("done");
    log = engine.Start(kChat, {.user_message = "go", .on_disconnect = OnDisconnect::kContinue})->log;
    AwaitEvent(log, "approval_required");
    asked = engine.PendingApprovals().at(0);
  }
  Result<void> AnswerElsewhere(const ApprovalAnswer& answer) {
    return questions.Answer({kChat, kFirst}, asked.request.approval_id, answer);
  }

  MemoryInteractionStore store;
  LocalRunStore runs{store};
  ScriptedModel model;
  ScriptedDirectory directory{model};
  FakeTools tools;
  MemoryQuestionStore questions;
  MemoryFileSystem disk;
  FileGrantStore grants{disk, "/data", nullptr};
  Engine engine{Engine::Parts{.store = store,
                              .runs = runs,
                              .fallback_stores = {},
                              .models = directory,
                              .tools = tools,
                              .questions = &questions,
                              .grants = &grants},
                EngineOptions()};
  std::shared_ptr<EventLog> log;
  PendingApproval asked{kChat, kFirst, {}};
};

}  // namespace

TEST_CASE("Answers: a rejection grants nothing, whatever its scope and wherever the call waits", "[engine]") {
  Fixture f;
  const ApprovalAnswer rejected{.approved = false, .scope = ApprovalScope::kAlways};
  SECTION("here") { CHECK(f.engine.AnswerApproval(f.asked.request.approval_id, rejected)); }
  SECTION("at another server") {
    PendingApproval elsewhere{*ChatId::Parse("d"), kFirst, f.asked.request};
    elsewhere.request.approval_id = "approval_elsewhere";
    REQUIRE(f.questions.Open({elsewhere}));
    CHECK(f.engine.AnswerApproval("approval_elsewhere", rejected));
    CHECK(f.engine.AnswerApproval(f.asked.request.approval_id, {.approved = true}));
  }
  CHECK(f.grants.List()->empty());
  AwaitEnd(f.log);
}

TEST_CASE("Answers: an approval for always is the only answer, for other servers too", "[engine]") {
  Fixture f;
  SECTION("it comes first") {
    CHECK(f.engine.AnswerApproval(f.asked.request.approval_id, kAlways));
    CHECK(f.AnswerElsewhere({.approved = false}).error().reason == "already_processed");
    CHECK(f.questions.Waiting()->empty());
    CHECK(f.grants.List()->size() == 1);
    AwaitEnd(f.log);
  }
  SECTION("another server has rejected the call") {
    REQUIRE(f.AnswerElsewhere({.approved = false}));
    CHECK(f.engine.AnswerApproval(f.asked.request.approval_id, kAlways).error().reason == "already_processed");
    CHECK(f.grants.List()->empty());
    f.engine.Cancel(kChat, kFirst);
    AwaitEnd(f.log);
  }
}

}  // namespace reprise::answers_test
