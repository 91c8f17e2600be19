#include "agent/context.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/text.h"
#include "support/test.h"

namespace reprise::context_test {
namespace {

constexpr std::int64_t kWindow = 8192, kBudget = 6144;

Message User(std::string text) { return {.role = Role::kUser, .content = std::move(text)}; }
Message Assistant(std::string text) { return {.role = Role::kAssistant, .content = std::move(text)}; }
Message Calling(std::string id) {
  return {.role = Role::kAssistant, .content = std::nullopt, .tool_calls = {{std::move(id), "read", "{}"}}};
}
Message ResultOf(std::string id, std::string text) {
  return {.role = Role::kTool, .content = std::move(text), .tool_calls = {}, .tool_call_id = std::move(id)};
}

std::int64_t Total(const Messages& messages) {
  return std::accumulate(messages.begin(), messages.end(), std::int64_t{0},
                         [](std::int64_t sum, const Message& message) { return sum + EstimateTokens(message); });
}

// As the agent does before a request; true if it had to sum up anew.
bool Compact(const Context& context, AgentState& state) {
  if (context.Fits(state, {})) return false;
  Compaction next = context.NextExtent(state, {});
  if (next.end <= next.first || (state.compaction && state.compaction->end == next.end)) return false;
  next.summary = Outline(state.messages, next.first, next.end, context.max_summary_bytes());
  state.compaction = next;
  return true;
}

bool HasPairs(const Messages& messages) {
  std::vector<std::string> open;
  for (const Message& message : messages) {
    if (message.role == Role::kTool) {
      if (std::erase(open, message.tool_call_id) != 1) return false;
      continue;
    }
    if (!open.empty()) return false;
    for (const ToolCall& call : message.tool_calls) open.push_back(call.id);
  }
  return open.empty();
}

}  // namespace

TEST_CASE("Context: a long chat never exceeds the budget and keeps its beginning and end", "[agent]") {
  const Context context(kWindow);
  CHECK(context.budget() == kBudget);
  AgentState state;
  state.messages.push_back({.role = Role::kSystem, .content = "be kind"});
  int compactions = 0;
  for (int turn = 0; turn < 400; ++turn) {
    state.messages.push_back(User("question " + std::to_string(turn) + std::string(200, 'q')));
    if (turn % 7 == 3) {
      const std::string id = "c" + std::to_string(turn);
      state.messages.push_back(Calling(id));
      state.messages.push_back(ResultOf(id, std::string(500, 'r')));
    }
    compactions += Compact(context, state);
    const auto view = context.View(state, {});
    REQUIRE(view);
    REQUIRE(Total(*view) <= kBudget);
    REQUIRE(HasPairs(*view));
    REQUIRE((*view)[0] == state.messages[0]);
    REQUIRE((*view)[1] == state.messages[1]);
    const auto last = std::min<std::ptrdiff_t>(5, static_cast<std::ptrdiff_t>(state.messages.size()));
    REQUIRE(std::equal(view->end() - last, view->end(), state.messages.end() - last));
    state.messages.push_back(Assistant("answer " + std::to_string(turn) + std::string(200, 'a')));
  }
  CHECK(state.messages.size() > 800);
  CHECK(compactions > 5);
  CHECK(compactions < 40);  // not with every turn
  CHECK(static_cast<std::int64_t>(state.compaction->summary.size()) <= kBudget / 10 * 3);
  CHECK(state.compaction->summary.find("User: question") != std::string::npos);
}

TEST_CASE("Context: messages that fit are sent whole, even if a smaller window needed a summary", "[agent]") {
  AgentState state{.messages = {User("a"), Assistant("b"), User("c")}};
  state.compaction = Compaction{.first = 1, .end = 2, .summary = "s"};
  for (const std::int64_t window : {std::int64_t{0}, kWindow}) {
    const Context context(window);
    CHECK(context.FitsWhole(state, {}));
    CHECK(context.Fits(state, {}));
    CHECK(context.View(state, {}).value() == state.messages);
  }
}

TEST_CASE("Context: long tool results are shortened, and the turn's own question stays", "[agent]") {
  const Context context(kWindow);
  AgentState state{.messages = {User("first"), Assistant("hello"), User("read it all")}};
  for (int i = 0; i < 12; ++i) {
    const std::string id = std::to_string(i);
    state.messages.push_back(Calling(id));
    std::string text;
    while (text.size() < 30'000) text += "\xe2\x82\xac";
    state.messages.push_back(ResultOf(id, text));
  }
  CHECK(Compact(context, state));
  CHECK_FALSE(Compact(context, state));
  const auto view = context.View(state, {});
  REQUIRE(view);
  CHECK(Total(*view) <= kBudget);
  CHECK(HasPairs(*view));
  CHECK(view->size() >= 5 + 3);
  CHECK((*view)[0].content == "first");
  CHECK((*view)[2].content == "read it all");
  CHECK(view->back().content->find("it has 30000 bytes") != std::string::npos);
  CHECK(IsUtf8(*view->back().content));
  CHECK(state.messages.back().content->size() == 30'000);
}

TEST_CASE("Context: a message that cannot be made to fit is an error", "[agent]") {
  const Context context(kWindow);
  const AgentState state{.messages = {User("first"), Assistant("hello"), User(std::string(30'000, 'x'))}};
  const auto view = context.View(state, {});
  REQUIRE_FALSE(view);
  CHECK(view.error().reason == "context_length");
  const std::vector<ToolSpec> tools{{"tool", std::string(30'000, 'x'), "{}"}};
  CHECK_FALSE(context.View({.messages = {User("hi")}}, tools));
  // An older message of that size, from a larger model, is shortened.
  AgentState old{.messages = {User(std::string(30'000, 'x')), Assistant("hello"), User("and?")}};
  const auto shortened = context.View(old, {});
  REQUIRE(shortened);
  CHECK(Total(*shortened) <= kBudget);
  CHECK(shortened->back().content == "and?");
}

TEST_CASE("Context: a compaction of other messages is ignored", "[agent]") {
  const Context context(kWindow);
  AgentState state{.messages = {User("first")}};
  for (int i = 0; i < 100; ++i) state.messages.push_back(Assistant(std::string(300, 'x')));
  state.messages.push_back(User("last"));
  for (const auto& [first, end] : {std::pair<std::uint64_t, std::uint64_t>{0, 3}, {1, 1000}, {1, 1}, {~0ULL, ~0ULL}}) {
    state.compaction = Compaction{.first = first, .end = end, .summary = "s"};
    CHECK_FALSE(context.Fits(state, {}));
    CHECK(Compact(context, state));
    CHECK(Total(context.View(state, {}).value()) <= kBudget);
  }
}

TEST_CASE("Context: a provider that counts more tokens reduces the room", "[agent]") {
  Context context(kWindow);
  AgentState state{.messages = {User(std::string(12'000, 'x')), Assistant("hello"), User("and?")}};
  CHECK(context.FitsWhole(state, {}));
  context.Calibrate(100, 1000);  // too few tokens to count
  CHECK(context.FitsWhole(state, {}));
  context.Calibrate(4000, 8000);
  CHECK_FALSE(context.FitsWhole(state, {}));
  CHECK(Total(context.View(state, {}).value()) <= kBudget / 2);
  context.Calibrate(4000, 1000);  // the higher ratio is kept
  CHECK_FALSE(context.FitsWhole(state, {}));
}

TEST_CASE("Outline: has the newest, mentions omissions, respects its size", "[agent]") {
  Messages messages{User("hi\n\nthere"), Calling("1"), ResultOf("1", "found"), Assistant("done")};
  CHECK(Outline(messages, 0, 4, 1000) == "User: hi there\nAssistant: [read {}] \nResult: found\nAssistant: done\n");
  CHECK(Outline(messages, 1, 1, 1000).empty());
  CHECK(Outline(messages, 0, 4, 0).empty());
  for (int i = 0; i < 500; ++i) messages.push_back(User(std::to_string(i) + " \xe2\x82\xac\xe2\x82\xac"));
  const std::string text = Outline(messages, 0, messages.size(), 1000);
  CHECK(text.size() <= 1000);
  CHECK(IsUtf8(text));
  CHECK(text.starts_with("("));
  CHECK(text.find("User: 499") != std::string::npos);
}

TEST_CASE("Context: the system prompt is part of each request", "[agent]") {
  Context context(kWindow);
  AgentState state;
  state.messages = {User(std::string(3000, 'q'))};
  const std::int64_t before = context.Estimate(state.messages, {});
  context.SetSystemPrompt(std::string(15'000, 'p'));
  CHECK(context.Estimate(state.messages, {}) - before == 5004);
  CHECK(context.Fits(state, {}));
  context.SetSystemPrompt(std::string(16'000, 'p'));
  CHECK_FALSE(context.Fits(state, {}));
  CHECK_FALSE(context.View(state, {}));
  context.SetSystemPrompt("");
  CHECK(context.Estimate(state.messages, {}) == before);
}

TEST_CASE("Context: old results are cleared, the last ones and those of the last calls stay", "[agent]") {
  const Context context(kWindow);
  AgentState state;
  state.messages.push_back(User("read them"));
  for (int i = 0; i < 12; ++i) {
    state.messages.push_back(Calling(std::to_string(i)));
    state.messages.push_back(ResultOf(std::to_string(i), i == 1 ? "short" : std::string(1800, 'x')));
  }
  REQUIRE_FALSE(context.Fits(state, {}));
  const auto cleared = context.ResultsToClear(state, {});
  REQUIRE(cleared);
  const Messages shown = WithoutResults(state.messages, *cleared);
  CHECK(Total(shown) <= kBudget / 2);
  CHECK(HasPairs(shown));
  CHECK(shown.size() == state.messages.size());
  CHECK(shown[2].content->find("had 1800 bytes") != std::string::npos);
  CHECK(shown[4].content == "short");
  CHECK(static_cast<std::size_t>(CountLongResults(state.messages, 0, *cleared)) == *cleared / 2 - 1);
  CHECK(CountLongResults(state.messages, *cleared, 1000) ==
        CountLongResults(state.messages, 0, 1000) - CountLongResults(state.messages, 0, *cleared));
  for (std::size_t i = *cleared; i < shown.size(); ++i) CHECK(shown[i] == state.messages[i]);
  CHECK(*cleared <= state.messages.size() - 6);
  AgentState sent = state;
  sent.messages = shown;
  CHECK_FALSE(context.ResultsToClear(sent, {}).has_value());
}

TEST_CASE("Context: results that are new to the model are not cleared, however many they are", "[agent]") {
  const Context context(kWindow);
  AgentState state;
  state.messages.push_back(User("read them"));
  Message calling = Calling("0");
  for (int i = 1; i < 12; ++i) calling.tool_calls.push_back({std::to_string(i), "read", "{}"});
  state.messages.push_back(calling);
  for (int i = 0; i < 12; ++i) state.messages.push_back(ResultOf(std::to_string(i), std::string(1800, 'x')));
  REQUIRE_FALSE(context.Fits(state, {}));
  CHECK_FALSE(context.ResultsToClear(state, {}).has_value());
}

TEST_CASE("Context: nothing is cleared if that does not help", "[agent]") {
  const Context context(kWindow);
  AgentState state;
  for (int i = 0; i < 20; ++i) state.messages.push_back(User(std::string(1800, 'u')));
  for (int i = 0; i < 6; ++i) {
    state.messages.push_back(Calling(std::to_string(i)));
    state.messages.push_back(ResultOf(std::to_string(i), std::string(900, 'x')));
  }
  CHECK_FALSE(context.ResultsToClear(state, {}).has_value());
}

TEST_CASE("WithoutResults: a number beyond the end, and none", "[agent]") {
  const Messages messages{User("a"), Calling("1"), ResultOf("1", std::string(900, 'x'))};
  CHECK(WithoutResults(messages, 0) == messages);
  CHECK(WithoutResults(messages, 100)[2].content->size() < 300);
  CHECK(messages[2].content->size() == 900);
}

}  // namespace reprise::context_test
