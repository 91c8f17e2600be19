#include "engine/run_guard.h"
#include "store/memory_interaction_store.h"
#include "support/forwarding_store.h"
#include "support/test.h"

namespace reprise::usage_limits_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");

Interaction Finished(InteractionStore& store, std::optional<InteractionId> parent, TokenUsage usage,
                     std::string model = "p/m") {
  Interaction interaction{.id = *store.ReserveInteraction(kChat), .chat_id = kChat};
  interaction.parent_id = parent;
  interaction.status = InteractionStatus::kCompleted;
  interaction.model = std::move(model);
  interaction.usage = usage;
  interaction.final_agent_state = AgentState{};
  interaction.completed_at = Timestamp{};
  REQUIRE(store.SaveInteraction(interaction));
  return interaction;
}

// Counts how often a chat is read as a whole.
class CountingStore : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<Chat> LoadChat(const ChatId& chat) override {
    ++reads;
    return ForwardingStore::LoadChat(chat);
  }
  int reads = 0;
};

}  // namespace

TEST_CASE("CostOf: what the cache knew has a price of its own", "[engine]") {
  const TokenUsage usage{
      .input_tokens = 1'000'000, .output_tokens = 500'000, .cache_read_tokens = 400'000, .cache_write_tokens = 100'000};
  CHECK(CostOf(usage, {.input = 2, .output = 8}) == Approx(6));
  CHECK(CostOf(usage, {.input = 2, .output = 8, .cache_read = 0.5, .cache_write = 3}) == Approx(1 + 0.2 + 0.3 + 4));
  CHECK(CostOf({.web_searches = 3}, {.input = 2, .output = 8, .searches = 10}) == Approx(0.03));
  CHECK(CostOf({.web_searches = 3}, {.input = 2, .output = 8}) == 0);
}

TEST_CASE("UsageLimits: without a budget nothing is asked and nothing is read", "[engine]") {
  MemoryInteractionStore memory;
  CountingStore store(memory);
  UsageLimits limits(store, {}, {});
  CHECK_FALSE(*limits.ForRun(kChat, "p/m", {}));
  UsageLimits of_one(store, {.max_tokens_per_interaction = 10}, {});
  const auto check = of_one.ForRun(kChat, "p/m", {.input_tokens = 4});
  REQUIRE(check);
  CHECK_FALSE((*check)({.input_tokens = 3, .output_tokens = 2}));
  CHECK((*check)({.input_tokens = 3, .output_tokens = 3}) == "this interaction has used 10 tokens, and may use 10");
  CHECK(store.reads == 0);
}

TEST_CASE("UsageLimits: a chat's use is read once and then counted, superseded branches included", "[engine]") {
  MemoryInteractionStore memory;
  CountingStore store(memory);
  const auto first = Finished(store, std::nullopt, {.input_tokens = 30, .output_tokens = 10});
  Finished(store, std::nullopt, {.input_tokens = 20});  // beside it
  UsageLimits limits(store, {.max_tokens_per_chat = 100}, {});
  const auto check = limits.ForRun(kChat, "p/m", {});
  CHECK_FALSE((*check)({.input_tokens = 39}));
  CHECK((*check)({.input_tokens = 40}) == "this chat has used 100 tokens, and may use 100");
  limits.Add(Finished(store, first.id, {.input_tokens = 40}));
  CHECK((*limits.ForRun(kChat, "p/m", {}))({}));
  CHECK(store.reads == 1);
  limits.Forget(kChat);
  CHECK((*limits.ForRun(kChat, "p/m", {}))({}));
  CHECK(store.reads == 2);
}

TEST_CASE("UsageLimits: cost by each model's price", "[engine]") {
  MemoryInteractionStore store;
  Finished(store, std::nullopt, {.output_tokens = 1'000'000}, "p/dear");
  Finished(store, std::nullopt, {.output_tokens = 1'000'000}, "p/free");
  UsageLimits limits(store, {.max_cost_per_chat = 12.5}, {{"p/dear", {.input = 1, .output = 10}}});
  const auto dear = limits.ForRun(kChat, "p/dear", {}), other = limits.ForRun(kChat, "p/free", {});
  CHECK_FALSE((*dear)({.input_tokens = 2'400'000}));
  CHECK((*dear)({.input_tokens = 2'500'000}) == "this chat has cost 12.5, and may cost 12.5");
  CHECK_FALSE((*other)({.input_tokens = 90'000'000}));
}

TEST_CASE("UsageOf: by branch and model, a running interaction so far", "[engine]") {
  Interaction done{.id = *InteractionId::Parse("int_001"), .chat_id = kChat};
  done.status = InteractionStatus::kCompleted;
  done.model = "a";
  done.usage = {.input_tokens = 5, .output_tokens = 1};
  Interaction runs = done;
  runs.status = InteractionStatus::kRunning;
  runs.model = "b";
  runs.usage = {};
  runs.events = {{.seq = 2, .payload = event::Usage{{.input_tokens = 7}}},
                 {.seq = 3, .payload = event::Usage{{.output_tokens = 2}}}};
  const ChatUsage usage =
      UsageOf({.summary = {.id = kChat}, .entries = {{done, true}, {done, false}, {runs, false}}, .damaged = {}});
  CHECK(usage.branch ==
        UsageByModel{{"a", {.input_tokens = 5, .output_tokens = 1}}, {"b", {.input_tokens = 7, .output_tokens = 2}}});
  CHECK(usage.all.at("a") == TokenUsage{.input_tokens = 10, .output_tokens = 2});
}

TEST_CASE("UsageLimits: a day's tokens are those of all chats, running ones too", "[engine]") {
  class Day final : public DailyUsage {
   public:
    std::int64_t Today() override { return tokens; }
    Result<void> Add(std::int64_t more) override { return tokens += more, Result<void>(); }
    std::int64_t tokens = 0;
  };
  MemoryInteractionStore memory;
  CountingStore store(memory);
  Day day;
  day.tokens = 50;
  UsageLimits limits(store, {.max_tokens_per_day = 100}, {}, &day);
  const ChatId other = *ChatId::Parse("other");
  const auto here = limits.ForRun(kChat, "p/m", {}), there = limits.ForRun(other, "p/m", {});
  REQUIRE(here);
  REQUIRE(there);
  CHECK_FALSE((*here)({.input_tokens = 20, .output_tokens = 10}));
  CHECK_FALSE((*there)({.input_tokens = 19}));
  CHECK((*there)({.input_tokens = 20}) == "this user, today, has used 100 tokens, and may use 100");
  limits.Add(Finished(store, std::nullopt, {.input_tokens = 20, .output_tokens = 10}));
  CHECK(day.tokens == 80);
  CHECK_FALSE((*there)({.input_tokens = 19}));
  day.tokens = 0;  // the next one
  CHECK_FALSE((*there)({.input_tokens = 99}));
  CHECK(store.reads == 0);
}

}  // namespace reprise::usage_limits_test
