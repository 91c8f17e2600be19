#include "agent/sub_agent.h"

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "domain/codec.h"
#include "support/fake_tools.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::sub_agent_test {
namespace {

class Observer : public AgentObserver, public ApprovalGate {
 public:
  void Emit(std::uint32_t round, EventPayload payload) override {
    const std::lock_guard lock(mutex_);
    CHECK(round == 3);
    steps.push_back(std::get<event::Nested>(payload));
  }
  void AddTextDelta(std::uint32_t, std::string_view) override { FAIL("a delta"); }
  void AddThinkingDelta(std::uint32_t, std::string_view) override { FAIL("a delta"); }
  void FlushDeltas() override {}
  void StateGrew(const AgentState&) override { FAIL("the state of another"); }
  std::vector<std::string> Ask(std::uint32_t, std::vector<event::ApprovalRequired>,
                               std::optional<event::Rejected>) override {
    std::abort();
  }
  Async<Result<Answered>> AwaitAnswer(std::vector<std::string>, std::stop_token, const Executor&) override {
    std::abort();
  }
  ApprovalMode ModeFor(const std::string& call_id) override {
    CHECK(call_id == "call_r");
    return mode;
  }
  std::vector<Grant> StandingGrants(const Grant&) override { return {}; }
  void NoteUse(const std::vector<std::string>&) override {}
  Async<Result<Reply>> AskInput(std::uint32_t, event::InputRequired, std::stop_token, const Executor&) override {
    std::abort();
  }

  std::vector<std::string> Types() const {
    std::vector<std::string> types;
    for (const event::Nested& nested : steps) {
      CHECK(nested.call_id == "call_r");
      types.emplace_back(
          std::visit([](const auto& step) { return std::remove_cvref_t<decltype(step)>::kType; }, nested.step));
    }
    return types;
  }
  std::vector<event::Nested> steps;
  ApprovalMode mode = ApprovalMode::kAsk;

 private:
  std::mutex mutex_;
};

struct Fixture {
  ToolOutcome Run(AgentLimits limits = {}) {
    const std::string id = "call_r", question = "how many?";
    const Executor at_once = [](const std::function<void()>& job) { job(); };
    const SubAgentTask task{.call_id = id, .round_index = 3, .question = question, .used_before = used_before};
    AgentParts parts{model, tools, observer, observer, at_once};
    parts.guards = guards;
    return RunSubAgent(parts, limits, task, "m", stop.get_token());
  }
  void AddTool(const std::string& name, bool asks, Concurrency concurrency = Concurrency::kIfReadOnly,
               bool delegates = false) {
    ToolTraits traits;
    traits.spec = {name, "a fake", R"({"type":"object"})"};
    traits.requires_approval = asks;
    traits.concurrency = concurrency;
    traits.delegates = delegates;
    tools.Add(traits, [name](std::string_view, const ToolContext&) { return ToolOutcome{name + " ran"}; });
  }
  ScriptedModel model;
  FakeTools tools;
  Observer observer;
  std::stop_source stop;
  AgentGuards guards;
  TokenUsage used_before;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("RunSubAgent: works on its own and returns its answer", "[agent]") {
  Fixture f;
  f.AddTool("look", false);
  f.model.ThenCall({{"call_1", "look", "{}"}}, "I look.");
  f.model.ThenAnswer("two");
  const ToolOutcome outcome = f.Run();
  CHECK(outcome.output == "two");
  CHECK_FALSE(outcome.is_error);
  CHECK(f.observer.Types() == Names{"MESSAGE", "TOOL_CALL", "TOOL_RESULT", "ANSWER"});
  CHECK(f.observer.steps.back().round_index == 1);
  const auto asked = f.model.requests().front();
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].role == Role::kSystem);
  CHECK(asked[1].content == "how many?");
}

TEST_CASE("RunSubAgent: has no tools that change anything, ask or delegate", "[agent]") {
  Fixture f;
  f.AddTool("asks", true);
  f.AddTool("alone", false, Concurrency::kNever);
  f.AddTool("delegates", false, Concurrency::kIfReadOnly, /*delegates=*/true);
  ToolTraits writes;
  writes.spec = {"writes", "a fake", R"({"type":"object"})"};
  writes.read_only = false;
  f.tools.Add(writes, [](std::string_view, const ToolContext&) { return ToolOutcome{"wrote"}; });
  ToolTraits unknown;
  unknown.spec = {"unknown", "a fake", R"({"type":"object"})"};
  unknown.needs_consent = true;
  f.tools.Add(unknown, [](std::string_view, const ToolContext&) { return ToolOutcome{"did"}; });
  const auto mode =
      GENERATE(ApprovalMode::kAsk, ApprovalMode::kReadOnly, ApprovalMode::kApproveAll, ApprovalMode::kDenyAll);
  Names names{"alone", "delegates", "writes", "unknown"};
  // Reading tools may be used if they would not ask.
  if (mode == ApprovalMode::kAsk || mode == ApprovalMode::kDenyAll) names.emplace_back("asks");
  std::vector<ToolCall> calls;
  for (const std::string& name : names) calls.push_back({"call_" + name, name, "{}"});
  f.model.ThenCall(calls);
  f.model.ThenAnswer("no");
  f.observer.mode = mode;
  f.Run();
  std::size_t refused = 0;
  for (const event::Nested& nested : f.observer.steps) {
    const auto* result = std::get_if<event::ToolResult>(&nested.step);
    if (result == nullptr) continue;
    CHECK(result->is_error);
    CHECK(result->tool_output.starts_with("There is no tool named"));
    ++refused;
  }
  CHECK(refused == names.size());
}

TEST_CASE("RunSubAgent: a failure is reported to the caller and as its last step", "[agent]") {
  Fixture f;
  Error error = MakeError(ErrorCode::kProvider, "no key");
  error.reason = "provider_auth";
  f.model.Then([error](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> { return Fail(error); });
  const ToolOutcome outcome = f.Run();
  CHECK(outcome.is_error);
  CHECK(outcome.output == "The research did not come to an answer: no key");
  CHECK(std::get<event::Failed>(f.observer.steps.back().step).code == "provider_auth");
}

TEST_CASE("RunSubAgent: ends when it is stopped, without output", "[agent]") {
  Fixture f;
  f.model.ThenHang("well");
  auto outcome = std::async(std::launch::async, [&] { return f.Run(); });
  f.model.AwaitHanging();
  f.stop.request_stop();
  CHECK(outcome.get().output.empty());
  CHECK(f.observer.Types() == Names{"MESSAGE"});
}

TEST_CASE("RunSubAgent: its tokens are the outcome's", "[agent]") {
  Fixture f;
  f.model.Then([](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    stream.OnText("x");
    return ModelResponse{.tool_calls = {}, .usage = {.input_tokens = 5, .output_tokens = 2}, .extras = {}};
  });
  CHECK(f.Run().usage == TokenUsage{.input_tokens = 5, .output_tokens = 2});
  CHECK(f.observer.Types() == Names{"ANSWER", "USAGE"});
}

TEST_CASE("RunSubAgent: has the calling agent's limits, for the usage of both", "[agent]") {
  Fixture f;
  f.AddTool("look", false);
  f.used_before = {.input_tokens = 90};
  f.guards.over_budget = [](const TokenUsage& used) -> std::optional<std::string> {
    if (used.input_tokens < 100) return std::nullopt;
    return "used up";
  };
  f.guards.refuse_call = [] { return std::optional<std::string>("wait"); };
  f.model.Then([](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> {
    return ModelResponse{.tool_calls = {{"1", "look", "{}"}}, .usage = {.input_tokens = 10}, .extras = {}};
  });
  const ToolOutcome outcome = f.Run();
  CHECK(outcome.is_error);
  CHECK(outcome.output.find("used up") != std::string::npos);
  CHECK(f.model.requests().size() == 1);
  const auto is_wait = [](const event::Nested& nested) {
    const auto* result = std::get_if<event::ToolResult>(&nested.step);
    return result != nullptr && result->tool_output == "wait" && result->is_error;
  };
  CHECK(std::count_if(f.observer.steps.begin(), f.observer.steps.end(), is_wait) == 1);
}

}  // namespace reprise::sub_agent_test
