// What the list of chats says of a run that ends while the list is made.
#include <functional>
#include <utility>

#include "reprise/engine.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/await_log.h"
#include "support/fake_tools.h"
#include "support/forwarding_store.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::chat_lists_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");

// Calls `meanwhile` once, after it has read a summary that it has not given yet.
class PausedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::function<void()> meanwhile;

  Result<ChatSummary> LoadSummary(const ChatId& c) override { return Paused(ForwardingStore::LoadSummary(c)); }
  Result<ChatPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit,
                            const ChatFilter& wanted) override {
    return Paused(ForwardingStore::ListPage(after, limit, wanted));
  }

 private:
  template <typename T>
  T Paused(T read) {
    if (const auto call = std::exchange(meanwhile, nullptr)) call();
    return read;
  }
};

struct Fixture {
  MemoryInteractionStore memory;
  PausedStore store{memory};
  LocalRunStore runs{store};
  ScriptedModel model;
  ScriptedDirectory directory{model};
  FakeTools tools;
  Engine engine{Engine::Parts{.store = store, .runs = runs, .fallback_stores = {}, .models = directory, .tools = tools},
                EngineOptions()};

  // A run that ends while the next summary is read.
  void StartTheRunThatEnds() {
    model.ThenHang("...");
    const auto started = engine.Start(kChat, {.user_message = "hello", .on_disconnect = OnDisconnect::kContinue});
    REQUIRE(started);
    model.AwaitHanging();
    store.meanwhile = [this, log = started->log, id = *started->interaction_id] {
      REQUIRE(engine.Cancel(kChat, id));
      AwaitEnd(log);
    };
  }
  static void CheckEnded(const ChatListEntry& entry) {
    CHECK(entry.status == InteractionStatus::kCancelled);
    CHECK(entry.summary.title == "hello");
    CHECK(entry.summary.head == InteractionId::FromNumber(1));
  }
};

}  // namespace

TEST_CASE("Engine: a list has the end of a run that ended while it was made", "[engine]") {
  Fixture f;
  REQUIRE(f.engine.CreateChat(kChat, {}));
  f.StartTheRunThatEnds();
  const auto page = f.engine.ListPage(std::nullopt, 10);
  REQUIRE(page);
  REQUIRE(page->chats.size() == 1);
  Fixture::CheckEnded(page->chats.front());
}

TEST_CASE("Engine: an entry of the list has the end of a run that ended while it was made", "[engine]") {
  Fixture f;
  REQUIRE(f.engine.CreateChat(kChat, {}));
  f.StartTheRunThatEnds();
  const auto entry = f.engine.GetListEntry(kChat);
  REQUIRE(entry);
  Fixture::CheckEnded(*entry);
}

}  // namespace reprise::chat_lists_test
