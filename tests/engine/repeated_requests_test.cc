#include "reprise/engine.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/await_log.h"
#include "support/fake_tools.h"
#include "support/forwarding_store.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::repeated_requests_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");
const ClientRequest kRequest{.key = "k", .digest = "sha256:1"};

Error Away() { return MakeError(ErrorCode::kUnavailable, "the database does not respond"); }

// A store that some reads do not reach.
class AbsentStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool lacks_interactions = false;
  bool& lacks_queues() { return queues_.is_away; }

  Result<Interaction> LoadInteraction(const ChatId& c, InteractionId i) override {
    return lacks_interactions ? Fail(Away()) : base_.LoadInteraction(c, i);
  }
  QueueStore& queues() override { return queues_; }

 private:
  struct AbsentQueues final : ForwardingQueues {
    using ForwardingQueues::ForwardingQueues;
    Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& c) override {
      return is_away ? Fail(Away()) : base_.LoadQueue(c);
    }
    bool is_away = false;
  };
  AbsentQueues queues_{base_.queues()};
};

}  // namespace

TEST_CASE("RepeatedRequests: a store that does not respond is no proof that a request is new", "[engine]") {
  MemoryInteractionStore memory;
  AbsentStore store(memory);
  LocalRunStore runs(store);
  ScriptedModel model;
  ScriptedDirectory directory(model);
  FakeTools tools;
  Engine engine({.store = store, .runs = runs, .fallback_stores = {}, .models = directory, .tools = tools}, {});
  model.ThenAnswer("done");
  AwaitEnd(engine.Start(kChat, {.user_message = "go", .request = kRequest})->log);
  bool& is_away = GENERATE(false, true) ? store.lacks_interactions : store.lacks_queues();
  is_away = true;
  const auto unknown = engine.FollowRepeated(kChat, kRequest);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::kUnavailable);
  is_away = false;
  const auto known = engine.FollowRepeated(kChat, kRequest);
  REQUIRE(known);
  CHECK(known->has_value());
}

}  // namespace reprise::repeated_requests_test
