#include "engine/blamed_files.h"

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "engine/services.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/fake_tools.h"
#include "support/forwarding_store.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::blamed_files_test {
namespace {

class SlowStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::promise<void> asked, go_on;
  bool is_slow = false;

  Result<std::vector<ChatSummary>> ListChats() override {
    if (std::exchange(is_slow, false)) {
      asked.set_value();
      go_on.get_future().wait();
    }
    return ForwardingStore::ListChats();
  }
};

struct Fixture {
  Fixture() { REQUIRE(store.CreateChat(*ChatId::Parse("c"), {})); }

  MemoryInteractionStore memory;
  SlowStore store{memory};
  LocalRunStore runs{store};
  ScriptedModel model;
  ScriptedDirectory directory{model};
  FakeTools tools;
  EngineServices services{
      Engine::Parts{.store = store, .runs = runs, .fallback_stores = {}, .models = directory, .tools = tools},
      EngineOptions{.workspace = "/w"}};

  Result<BlamedFile> Blame(std::chrono::seconds longest = std::chrono::seconds(10)) {
    return BlameFile(services, *services.home, "f.txt", "a line\n", longest);
  }
};

}  // namespace

TEST_CASE("BlameFile: gives up when its time is over, and names the command without a limit", "[engine]") {
  Fixture f;
  CHECK(f.Blame());
  const auto late = f.Blame(std::chrono::seconds(0));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kTooLarge);
  CHECK(late.error().message.find("`reprise blame f.txt`") != std::string::npos);
  CHECK(f.Blame());
}

TEST_CASE("BlameFile: one file at a time", "[engine]") {
  Fixture f;
  f.store.is_slow = true;
  auto first = std::async(std::launch::async, [&] { return f.Blame(); });
  f.store.asked.get_future().wait();
  const auto second = f.Blame();
  f.store.go_on.set_value();
  REQUIRE_FALSE(second);
  CHECK(second.error().Is(Reason::kOverloaded));
  CHECK(first.get());
  CHECK(f.Blame());
}

}  // namespace reprise::blamed_files_test
