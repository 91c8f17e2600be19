// What the engine does with chats whose records cannot be read.
#include <optional>
#include <vector>

#include "reprise/engine.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/await_log.h"
#include "support/fake_tools.h"
#include "support/forwarding_store.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::unreadable_chats_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");

class DamagedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::optional<ErrorCode> summary, chat;  // how reading them fails
  bool has_unreadable = false;

  Result<ChatSummary> LoadSummary(const ChatId& c) override {
    if (summary) return Fail(*summary, "the summary is damaged");
    return ForwardingStore::LoadSummary(c);
  }
  Result<Chat> LoadChat(const ChatId& c) override {
    if (chat) return Fail(*chat, "the chat is damaged");
    return ForwardingStore::LoadChat(c);
  }
  Result<std::vector<UnreadableChat>> ListUnreadableChats() override {
    std::vector<UnreadableChat> all;
    if (has_unreadable) all.push_back({*ChatId::Parse("d"), MakeError(ErrorCode::kCorruption, "it is damaged")});
    return all;
  }
};

struct Fixture {
  MemoryInteractionStore memory;
  DamagedStore store{memory};
  LocalRunStore runs{store};
  ScriptedModel model;
  ScriptedDirectory directory{model};
  FakeTools tools;
  Engine engine{Engine::Parts{.store = store, .runs = runs, .fallback_stores = {}, .models = directory, .tools = tools},
                EngineOptions()};

  Result<EventSubscription> Start() { return engine.Start(kChat, {.user_message = "hi"}); }
};

// Runs of other servers, of which nothing can be read now.
class AbsentRuns final : public RunStore {
 public:
  Result<std::unique_ptr<RunHold>> Begin(const RunBeginning&) override { return Away(); }
  Result<std::vector<AbandonedRun>> ClaimAbandoned(std::size_t) override { return Away(); }
  Result<std::shared_ptr<void>> Follow(const InteractionRef&, HeardNews) override { return Away(); }

 private:
  static tl::unexpected<Error> Away() { return Fail(ErrorCode::kUnavailable, "the database does not respond"); }
};

}  // namespace

TEST_CASE("Engine: a run that cannot be read now is not an unknown one", "[engine]") {
  Fixture f;
  AbsentRuns runs;
  Engine engine({.store = f.memory, .runs = runs, .fallback_stores = {}, .models = f.directory, .tools = f.tools}, {});
  CHECK(engine.Attach(kChat, InteractionId::FromNumber(1), 0).error().code == ErrorCode::kUnavailable);
}

TEST_CASE("Engine: a run does not begin without the instructions and the effort of its chat", "[engine]") {
  Fixture f;
  f.model.ThenAnswer("first");
  AwaitEnd(f.Start()->log);
  for (const ErrorCode code : {ErrorCode::kCorruption, ErrorCode::kIo, ErrorCode::kUnavailable}) {
    f.store.summary = code;
    const auto started = f.Start();
    REQUIRE_FALSE(started);
    CHECK(started.error().code == code);
  }
  f.store.summary.reset();
  f.model.ThenAnswer("second");
  AwaitEnd(f.Start()->log);
  CHECK(f.model.requests().size() == 2);
}

TEST_CASE("Engine: usage is complete only if all chats could be read", "[engine]") {
  Fixture f;
  f.model.ThenAnswer("first");
  AwaitEnd(f.Start()->log);
  const auto is_complete = [&] { return f.engine.GetUsageSince(Timestamp())->complete; };
  CHECK(is_complete());
  f.store.chat = ErrorCode::kCorruption;
  CHECK_FALSE(is_complete());
  f.store.chat = ErrorCode::kNotFound;  // deleted meanwhile
  CHECK(is_complete());
  f.store.chat.reset();
  f.store.has_unreadable = true;
  CHECK_FALSE(is_complete());
}

}  // namespace reprise::unreadable_chats_test
