#include "engine/what_if.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/history.h"
#include "approval/decision.h"
#include "domain/codec.h"
#include "engine/elastic_pool.h"
#include "engine/past_files.h"
#include "store/memory_interaction_store.h"
#include "support/fake_tools.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::what_if_test {
namespace {

// A copy that only counts its calls.
struct Copies final : WorkspaceCopies {
  struct Copy final : WorkspaceCopy {
    explicit Copy(Copies& of) : copies(of) {}
    struct NoRecorder final : RunRecorder {
      std::unique_ptr<CallRecorder> Begin(const ToolTraits&, std::string_view, const std::stop_token&) override {
        return nullptr;
      }
      bool CanRecord(const ToolTraits&, std::string_view, const std::stop_token&) const override { return false; }
      WorkspaceChanges End() override { return {}; }
    };
    Tool* Find(std::string_view name) override { return copies.tools.Current()->Find(name); }
    RunRecorder& recorder() override { return none; }
    void Apply(const std::vector<WorkspaceChange>&, const PastFiles&) override {}
    std::optional<std::string> ContentOf(const FileVersion&) override { return std::nullopt; }
    std::string DiffOf(const WorkspaceChange&) override { return {}; }
    std::string ForCopy(std::string text) const override { return text; }
    std::string FromCopy(std::string text) const override { return text; }
    Copies& copies;
    NoRecorder none;
  };
  Place PlaceOf(std::string_view tool) const override { return tool == "tool" ? Place::kCopy : Place::kNowhere; }
  Result<std::unique_ptr<WorkspaceCopy>> Make(const PastFiles&, const std::stop_token&) override {
    ++made;
    if (fails) return Fail(ErrorCode::kTooLarge, "there is too much to copy");
    return std::make_unique<Copy>(*this);
  }
  FakeTools tools;
  int made = 0;
  bool fails = false;
};

Message Assistant(std::optional<std::string> text, std::vector<ToolCall> calls = {}) {
  return {.role = Role::kAssistant, .content = std::move(text), .tool_calls = std::move(calls)};
}

Message ResultOf(const std::string& id, const std::string& text) {
  Message message{.role = Role::kTool, .content = text, .tool_calls = {}, .tool_call_id = id};
  message.name = "tool";
  return message;
}

// Round 0: two calls, the second with an approval. Round 1: a call. Round 2: the answer.
struct World {
  World() : made{.id = InteractionId::FromNumber(1), .chat_id = ChatId::Parse("c").value()} {
    made.user_message = "hello";
    made.status = InteractionStatus::kCompleted;
    made.completed_at = made.created_at;
    made.record = RunRecord{.first_message = 1};
    made.final_agent_state =
        AgentState{.messages = {{.role = Role::kUser, .content = "hello"},
                                Assistant("I try", {{"a", "tool", R"({"n":1})"}, {"b", "tool", R"({"n":2})"}}),
                                ResultOf("a", "one"),
                                ResultOf("b", "two"),
                                Assistant(std::nullopt, {{"c", "tool", R"({"n":3})"}}),
                                ResultOf("c", "three"),
                                Assistant("done")}};
    Shows(0, event::MessageText{"I try"});                        // 2
    Shows(0, event::ToolCallStarted{"a", "tool", R"({"n":1})"});  // 3
    Shows(0, event::ToolResult{"a", "tool", "one", false});       // 4
    event::ApprovalRequired asked{};
    asked.approval_id = "q", asked.call_id = "b", asked.tool_name = "tool", asked.tool_input = "{}";
    Shows(0, std::move(asked));                                                        // 5
    Shows(0, event::Approved{"q", "b", ArgumentsDigest("{}"), "once", std::nullopt});  // 6
    Shows(0, event::ToolCallStarted{"b", "tool", R"({"n":2})"});                       // 7
    Shows(0, event::ToolResult{"b", "tool", "two", false});                            // 8
    Shows(0, event::Usage{{.input_tokens = 3, .output_tokens = 4}});                   // 9
    Shows(1, event::ToolCallStarted{"c", "tool", R"({"n":3})"});                       // 10
    Shows(1, event::ToolResult{"c", "tool", "three", false});                          // 11
    Shows(1, event::Usage{{.input_tokens = 3, .output_tokens = 4}});                   // 12
    Shows(2, event::Answer{"done"});                                                   // 13
    for (FakeTools* const each : {&tools, &copies.tools}) {
      each->Add("tool", true, [this, each](std::string_view arguments, const ToolContext&) {
        (each == &tools ? real : ran).emplace_back(arguments);
        return ToolOutcome{.output = "anew"};
      });
      each->Add("elsewhere", false, [this](std::string_view, const ToolContext&) {
        real.emplace_back("elsewhere");
        return ToolOutcome{.output = "reached"};
      });
    }
  }
  void Shows(std::uint32_t round, EventPayload payload) {
    made.events.push_back(
        {.seq = made.events.size() + 2, .round_index = round, .at = {}, .payload = std::move(payload)});
  }
  Result<LiveRun> Run(const WhatIfChanges& changes) {
    const auto what_if = PrepareWhatIf(made, bodies, agent, changes);
    if (!what_if) return Fail(what_if.error());
    ElasticPool pool;
    LiveRun run = RunLive(what_if->turn, what_if->Options({}), {},
                          [&pool](std::function<void()> job) { pool.Submit(std::move(job)); });
    CheckCalls(run.interaction.final_agent_state->messages);
    return run;
  }
  // What the first request held.
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    const Messages first = model.requests().front();
    for (const Message& each : first) told.push_back(each.content.value_or("(calls)"));
    return told;
  }
  static void CheckCalls(const Messages& messages) {
    Messages whole = messages;
    CHECK(CompleteToolCalls(whole, "?") == 0);
  }

  Interaction made;
  FakeTools tools;
  Copies copies;
  std::vector<std::string> real, ran;  // calls of the tools, and of those in the copy
  ScriptedModel model;
  ScriptedDirectory models{model};
  EngineOptions options;
  WorkspaceParts workspace{.path = "/w", .tools = tools, .copies = &copies};
  PresentAgent agent{.workspace = workspace, .options = options, .models = models};
  MemoryInteractionStore store;
  RequestBodies bodies{store, nullptr};
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the record tells what came before the event, and everything after it is new", "[what_if]") {
  World world;
  world.model.ThenCall({{"x", "tool", R"({"n":9})"}});
  world.model.ThenAnswer("other");
  std::uint64_t at = 0;
  Texts told, ran;
  std::tie(at, told, ran) = GENERATE(table<std::uint64_t, Texts, Texts>({
      {0, {"hello"}, {R"({"n":9})"}},
      {1, {"hello"}, {R"({"n":9})"}},
      {2, {"hello", "I try", "anew", "anew"}, {R"({"n":1})", R"({"n":2})", R"({"n":9})"}},
      {3, {"hello", "I try", "anew", "anew"}, {R"({"n":1})", R"({"n":2})", R"({"n":9})"}},
      {4, {"hello", "I try", "one", "anew"}, {R"({"n":2})", R"({"n":9})"}},
      {6, {"hello", "I try", "one", "anew"}, {R"({"n":2})", R"({"n":9})"}},
      {8, {"hello", "I try", "one", "two"}, {R"({"n":9})"}},
      {9, {"hello", "I try", "one", "two"}, {R"({"n":9})"}},
      {10, {"hello", "I try", "one", "two", "(calls)", "anew"}, {R"({"n":3})", R"({"n":9})"}},
      {12, {"hello", "I try", "one", "two", "(calls)", "three"}, {R"({"n":9})"}},
  }));
  CAPTURE(at);
  const auto run = world.Run({.at = at == 0 ? std::nullopt : std::optional(at)});
  REQUIRE(run);
  CHECK(world.Told() == told);
  CHECK(world.ran == ran);
  CHECK(world.real.empty());
  CHECK(run->interaction.status == InteractionStatus::kCompleted);
  const auto& events = run->interaction.events;
  CHECK(std::ranges::is_sorted(events, std::less_equal<>(), &AgentEvent::seq));
  CHECK(std::get<event::Answer>(events.back().payload).content == "other");
}

TEST_CASE("another result, a failure or an answer takes the place of the recorded result", "[what_if]") {
  World world;
  world.model.ThenAnswer("other");
  WhatIfChanges changes;
  std::string said;
  std::tie(changes, said) = GENERATE(table<WhatIfChanges, std::string>({
      {{.at = 10, .result = "eggs"}, "eggs"},
      {{.at = 11, .result = "eggs"}, "eggs"},
      {{.at = 11, .fail = WhatIfChanges::Failure::kTimeout}, "timed out"},
      {{.at = 10, .fail = WhatIfChanges::Failure::kError}, "failed"},
      {{.at = 5, .answer = false}, "rejected"},
  }));
  const auto run = world.Run(changes);
  REQUIRE(run);
  CHECK(world.Told().back().find(said) != std::string::npos);
  CHECK(world.ran.empty());
  const auto shown = std::ranges::find_if(run->interaction.events, [&](const AgentEvent& each) {
    const auto* const result = std::get_if<event::ToolResult>(&each.payload);
    return result != nullptr && result->tool_output.find(said) != std::string::npos;
  });
  CHECK(shown != run->interaction.events.end());
}

TEST_CASE("a message takes the place of the turn's, or follows the calls of a round or the answer", "[what_if]") {
  World world;
  world.model.ThenAnswer("other");
  CHECK(world.Run({.say = "bye"})->interaction.user_message == "bye");
  CHECK(world.Told() == Texts{"bye"});
  for (const std::uint64_t at : {8, 11, 13}) {
    World next;
    next.model.ThenAnswer("other");
    REQUIRE(next.Run({.at = at, .say = "more"}));
    CHECK(next.Told().back() == "more");
  }
}

TEST_CASE("what does not fit the event is refused, and the events are named at which it does", "[what_if]") {
  World world;
  const auto refused = [&](const WhatIfChanges& changes) {
    const auto run = world.Run(changes);
    REQUIRE_FALSE(run);
    CHECK(run.error().code == ErrorCode::kInvalidArgument);
    return run.error().message;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refused({.at = 99}), "no event 99");
  has(refused({.at = 99}), "1 to 13");
  has(refused({.at = 9, .result = "x"}), "(usage)");
  has(refused({.at = 9, .result = "x"}), "3, 4, 7, 8, 10, 11");
  has(refused({.result = "x"}), "no event is given");
  has(refused({.at = 4, .answer = true}), "event 5");
  has(refused({.at = 13}), "ends with the answer");
  has(refused({.at = 4, .say = "x"}), "8, 11, 13");
  has(refused({.at = 4, .result = "x", .fail = WhatIfChanges::Failure::kError}), "not both");
  has(refused({.allow_effects = {"nothing"}}), "\"nothing\" is no tool");
  has(refused({.allow_effects = {"tool"}}), "needs no permission");
  CHECK(world.model.requests().empty());
}

TEST_CASE("a tool that acts elsewhere runs only if it may", "[what_if]") {
  World world;
  const bool may = GENERATE(true, false);
  world.model.ThenCall({{"x", "elsewhere", "{}"}});
  world.model.ThenAnswer("other");
  WhatIfChanges changes;
  if (may) changes.allow_effects = {"elsewhere"};
  const auto run = world.Run(changes);
  REQUIRE(run);
  CHECK(world.real == (may ? Texts{"elsewhere"} : Texts{}));
  CHECK(world.copies.made == 0);
}

TEST_CASE("rules that deny hold in a copy, and those that ask or allow do not count", "[what_if]") {
  World world;
  const RuleAction action = GENERATE(RuleAction::kDeny, RuleAction::kAsk, RuleAction::kAllow);
  world.options.rules =
      std::make_shared<const std::vector<ToolRule>>(std::vector<ToolRule>{{.tool = "tool", .action = action}});
  world.model.ThenCall({{"x", "tool", "{}"}});
  world.model.ThenAnswer("other");
  REQUIRE(world.Run({}));
  CHECK(world.ran.size() == (action == RuleAction::kDeny ? 0 : 1));
}

TEST_CASE("a run whose copy cannot be made fails, and says why", "[what_if]") {
  World world;
  world.copies.fails = true;
  world.model.ThenCall({{"x", "tool", "{}"}});
  world.model.ThenAnswer("other");
  const auto run = world.Run({});
  REQUIRE(run);
  CHECK(run->interaction.status == InteractionStatus::kFailed);
  CHECK(run->interaction.error->message == "there is too much to copy");
  CHECK(world.model.requests().size() == 1);
}

TEST_CASE("the files of an earlier moment follow from what was recorded since, and before", "[what_if]") {
  const auto version = [](const std::string& digest) { return FileVersion{.mode = 0644, .size = 1, .digest = digest}; };
  Interaction first{.id = InteractionId::FromNumber(1), .chat_id = ChatId::Parse("c").value()};
  first.workspace = "/w";
  first.created_at = Timestamp(std::chrono::milliseconds(10));
  first.events = {{.seq = 5,
                   .round_index = 0,
                   .at = Timestamp(std::chrono::milliseconds(20)),
                   .payload = event::FilesChanged{"a", {{"a", {}, version("1")}, {"b", {}, version("2")}}}},
                  {.seq = 9,
                   .round_index = 0,
                   .at = Timestamp(std::chrono::milliseconds(30)),
                   .payload = event::FilesChanged{"b", {{"a", version("1"), version("3")}}}}};
  RecordedChanges changes("/w", "/home");
  changes.Add(first);
  Interaction other = first;
  other.workspace = "/elsewhere";
  changes.Add(other);
  const auto at = [&](std::uint64_t seq) {
    std::string text;
    for (const auto& each : changes.At(first, seq).files) {
      text += each.path + "=" + (each.version ? each.version->digest : "none") + (each.is_certain ? " " : "? ");
    }
    return text;
  };
  CHECK(at(0) == "a=none b=none ");
  CHECK(at(5) == "a=1 b=2? ");
  CHECK(at(9) == "a=3? b=2? ");
  CHECK(changes.ChatsWith("3") == std::vector{first.chat_id});
}

}  // namespace reprise::what_if_test
