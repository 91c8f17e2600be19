#include "agent/agent_loop.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "domain/codec.h"
#include "support/fake_tools.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::agent_loop_test {
namespace {

class Recorder : public AgentObserver, public ApprovalGate {
 public:
  void Emit(std::uint32_t, EventPayload payload) override {
    const std::lock_guard lock(mutex_);
    names.emplace_back(EventName(payload));
    events.push_back(std::move(payload));
  }
  void AddTextDelta(std::uint32_t, std::string_view text) override { deltas += text; }
  void AddThinkingDelta(std::uint32_t, std::string_view) override {}
  void FlushDeltas() override {}
  void StateGrew(const AgentState& state) override { agenda = state.agenda; }
  std::vector<std::string> Ask(std::uint32_t, std::vector<event::ApprovalRequired> requests,
                               std::optional<event::Rejected> gone) override {
    std::vector<std::string> ids;
    if (gone) Emit(0, *std::move(gone));
    for (event::ApprovalRequired& request : requests) {
      ids.push_back(request.approval_id = "approval_" + request.call_id);
      Emit(0, request);
    }
    if (on_ask) on_ask();
    return ids;
  }
  Async<Result<Answered>> AwaitAnswer(std::vector<std::string> ids, std::stop_token, const Executor&) override {
    awaited.push_back(ids);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (std::find(ids.begin(), ids.end(), answers[i].approval_id) == ids.end()) continue;
      Answered next = answers[i];
      answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(i));
      co_return next;
    }
    if (!answer) co_return Fail(ErrorCode::kCancelled, "cancelled");
    co_return Answered{ids.front(), *answer};
  }
  ApprovalMode ModeFor(const std::string&) override { return mode; }
  std::vector<Grant> StandingGrants(const Grant& call) override {
    return call == granted ? std::vector{call} : std::vector<Grant>();
  }
  void NoteUse(const std::vector<std::string>&) override {}
  Async<Result<Reply>> AskInput(std::uint32_t, event::InputRequired request, std::stop_token,
                                const Executor&) override {
    request.request_id = "request_x";
    Emit(0, request);
    if (!reply) co_return Fail(ErrorCode::kCancelled, "cancelled");
    co_return Reply{"request_x", *reply};
  }
  template <typename T>
  const T& Last() const {
    for (auto it = events.rbegin(); it != events.rend(); ++it) {
      if (const T* found = std::get_if<T>(&*it)) return *found;
    }
    throw std::runtime_error("no such event");
  }

  std::vector<std::string> names;
  ApprovalMode mode = ApprovalMode::kAsk;
  std::vector<EventPayload> events;
  std::string deltas;
  std::optional<ApprovalAnswer> answer;  // for requests without one in `answers`
  std::vector<Answered> answers;         // in order of arrival
  std::vector<std::vector<std::string>> awaited;
  Grant granted;  // for always
  std::optional<InputAnswer> reply;
  Agenda agenda;  // the latest
  std::function<void()> on_ask;

 private:
  std::mutex mutex_;  // because tools that run together emit concurrently
};

// The terms of a tool of these.
std::string TermsOf(const FakeTools& tools, std::string_view name) {
  return TermsDigest(tools.Current()->Find(name)->traits());
}

// Tools that may be others from some moment on.
struct ChangingTools final : ToolRegistry {
  std::shared_ptr<const ToolSet> Current() const override { return now->Current(); }
  const FakeTools* now = nullptr;
};

struct Fixture {
  Fixture() {
    tools.Add("echo", false, [](std::string_view arguments, const ToolContext&) {
      return ToolOutcome{"echoed " + std::string(arguments), false};
    });
    tools.Add("danger", true, [this](std::string_view arguments, const ToolContext&) {
      ran.emplace_back(arguments);
      return ToolOutcome{"boom", false};
    });
  }
  AgentOutcome Run(AgentLimits limits = {}) {
    state.messages.push_back(Message{.role = Role::kUser, .content = "go"});
    // Rounds run nested in each other; a promise reports the end.
    const Executor at_once = [](const std::function<void()>& job) { job(); };
    const Executor apart = [this](std::function<void()> job) {
      const std::lock_guard lock(mutex);
      threads.emplace_back(std::move(job));
    };
    const Delay delay = [this](std::chrono::milliseconds pause, std::function<void()> call) {
      pauses.push_back(pause);
      if (on_pause) on_pause();
      call();
    };
    AgentLoop loop({.model = model,
                    .tools = registry ? *registry : static_cast<const ToolRegistry&>(tools),
                    .observer = recorder,
                    .approvals = recorder,
                    .executor = on_threads ? apart : at_once,
                    .delay = delay,
                    .prompt = prompt,
                    .guards = guards,
                    .recorder = changes,
                    .guard = guard},
                   limits, "m", state, stop.get_token());
    std::promise<AgentOutcome> outcome;
    loop.Start([&](AgentOutcome ended) {
      has_ended = true;
      outcome.set_value(std::move(ended));
    });
    AgentOutcome ended = outcome.get_future().get();
    for (std::vector<std::jthread> joined; on_threads;) {
      const std::lock_guard lock(mutex);
      if (threads.empty()) break;
      joined.swap(threads);
    }
    return ended;
  }
  // A tool that ends when `count` of its calls run together, or fails after a long time.
  void AddMeeting(const std::string& name, int count, bool read_only = true,
                  Concurrency concurrency = Concurrency::kIfReadOnly) {
    ToolTraits traits;
    traits.spec = {name, "a fake", R"({"type":"object"})"};
    traits.read_only = read_only;
    traits.concurrency = concurrency;
    tools.Add(std::move(traits), [this, count](std::string_view arguments, const ToolContext&) {
      std::unique_lock lock(mutex);
      ++present;
      met.notify_all();
      const bool all = met.wait_for(lock, std::chrono::seconds(20), [&] { return present >= count; });
      return ToolOutcome{std::string(arguments), !all};
    });
  }
  ScriptedModel model;
  FakeTools tools;
  Recorder recorder;
  std::stop_source stop;
  AgentState state;
  SystemPrompt prompt;
  AgentGuards guards;
  std::vector<std::string> ran;
  std::vector<std::chrono::milliseconds> pauses;  // requested, but not waited for
  std::function<void()> on_pause;
  CallGuard* guard = nullptr;
  RunRecorder* changes = nullptr;
  const ToolRegistry* registry = nullptr;  // null: `tools`
  bool on_threads = false;                 // the executor gives each job its own thread
  std::atomic<bool> has_ended = false;
  std::mutex mutex;
  std::condition_variable met;
  int present = 0;                    // guarded by mutex
  std::vector<std::jthread> threads;  // guarded by mutex
};

class Guard : public CallGuard {
 public:
  Result<void> Begin(const std::stop_token&) override { return Said(begins); }
  Result<std::string> Admit(std::uint32_t, const std::string&, const std::stop_token&) override {
    return Said(admits).map([&] { return told; });
  }
  Result<void> Heard(std::uint32_t, const std::string&, const std::string& text, const std::stop_token&) override {
    heard.push_back(text);
    return Said(hears);
  }
  Verdict Review(std::uint32_t, const ToolCall& call, const std::stop_token&) override {
    if (on_review) on_review(call);
    return verdict;
  }
  Result<void> Note(AuditEntry entry) override {
    const std::lock_guard lock(mutex_);
    entries.push_back(std::move(entry));
    if (writable) return {};
    return Fail(ErrorCode::kStorageFull, "no space");
  }
  std::string Redacted(std::string text) const override {
    const auto found = text.find("secret");
    return found == std::string::npos ? text : text.replace(found, 6, "[redacted]");
  }
  ToolOutcome Passed(std::uint32_t, const ToolCall&, ToolOutcome outcome, const std::stop_token&) override {
    outcome.output += "!";
    return outcome;
  }
  bool begins = true, admits = true, hears = true, writable = true;
  std::string told;
  std::vector<std::string> heard;
  Verdict verdict;
  std::function<void(const ToolCall&)> on_review;
  std::vector<AuditEntry> entries;

 private:
  static Result<void> Said(bool allowed) {
    if (allowed) return {};
    return Fail(Error{.code = ErrorCode::kForbidden, .reason = "hook_denied", .message = "no"});
  }
  std::mutex mutex_;  // because tools that run together are noted concurrently
};

Error Busy() {
  Error error = MakeError(ErrorCode::kProvider, "busy");
  error.reason = "provider_overloaded";
  error.retryable = true;
  return error;
}

ScriptedModel::Round FailWith(Error error, std::string text = {}) {
  return [error, text](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    if (!text.empty()) stream.OnText(text);
    return Fail(error);
  };
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("AgentLoop: an answer without a call ends the run", "[agent]") {
  Fixture f;
  f.model.ThenAnswer("hello");
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCompleted);
  CHECK(f.recorder.names == Names{"answer"});
  CHECK(f.recorder.deltas == "hello");
  REQUIRE(outcome.state.messages.size() == 2);
  CHECK(outcome.state.messages[1].content == "hello");
}

TEST_CASE("AgentLoop: calls run in order and their results go back to the model", "[agent]") {
  Fixture f;
  f.model.ThenCall({{"1", "echo", R"({"a":1})"}, {"2", "echo", R"({"a":2})"}}, "on it");
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(f.recorder.names == Names{"message", "tool_call", "tool_call", "tool_result", "tool_result", "answer"});
  const auto request = f.model.requests().at(1);
  REQUIRE(request.size() == 4);
  CHECK(request[1].content == "on it");
  CHECK(request[2].tool_call_id == "1");
  CHECK(request[3].content == R"(echoed {"a":2})");
}

TEST_CASE("AgentLoop: unknown tools and bad arguments become results that the model can correct", "[agent]") {
  Fixture f;
  f.model.ThenCall({{"1", "nope", "{}"}, {"2", "echo", "[]"}});
  f.model.ThenAnswer("sorry");
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  const auto request = f.model.requests().at(1);
  CHECK(request[2].content->find("no tool named \"nope\"") != std::string::npos);
  CHECK(request[3].content->find("not an object") != std::string::npos);
  CHECK(f.recorder.Last<event::ToolResult>().is_error);
}

TEST_CASE("AgentLoop: the result of a call whose changes cannot be seen says so", "[agent]") {
  struct Blind final : RunRecorder {
    struct Call final : CallRecorder {
      WorkspaceChanges Finish() override { return {.unseen = true}; }
    };
    std::unique_ptr<CallRecorder> Begin(const ToolTraits&, std::string_view, const std::stop_token&) override {
      return std::make_unique<Call>();
    }
    bool CanRecord(const ToolTraits&, std::string_view, const std::stop_token&) const override { return false; }
    WorkspaceChanges End() override { return {}; }
  } blind;
  Fixture f;
  f.changes = &blind;
  f.model.ThenCall({{"1", "echo", R"({"a":2})"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.model.requests().at(1)[2].content ==
        "echoed {\"a\":2}\n(What this call changed in the workspace is not recorded: it cannot be undone.)");
  CHECK(f.recorder.Last<event::FilesChanged>() == event::FilesChanged{.call_id = "1", .changes = {}, .unseen = true});
}

TEST_CASE("AgentLoop: an approved call runs exactly as shown", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"1", "danger", R"({ "x" : 1 })"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.recorder.names == Names{"approval_required", "approved", "tool_call", "tool_result", "answer"});
  CHECK(f.ran == Names{R"({ "x" : 1 })"});
  CHECK(f.recorder.Last<event::ApprovalRequired>().arguments_digest == ArgumentsDigest(R"({ "x" : 1 })"));
}

TEST_CASE("AgentLoop: a rejection and its feedback reach the model, and nothing runs", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = false, .arguments = {}, .feedback = "too risky"};
  f.model.ThenCall({{"1", "danger", "{}"}});
  f.model.ThenAnswer("understood");
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  CHECK(f.ran.empty());
  CHECK(f.recorder.names == Names{"approval_required", "rejected", "tool_result", "answer"});
  CHECK(f.model.requests().at(1)[2].content->find("too risky") != std::string::npos);
}

TEST_CASE("AgentLoop: a call runs with the replaced arguments, and the model is told", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = true, .arguments = R"({"x":2})", .feedback = {}};
  f.model.ThenCall({{"1", "danger", R"({"x":1})"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.ran == Names{R"({"x":2})"});
  CHECK(f.recorder.Last<event::Approved>().arguments_digest == ArgumentsDigest(R"({"x":2})"));
  CHECK(f.recorder.Last<event::ToolCallStarted>().tool_input == R"({"x":2})");
  CHECK(f.model.requests().at(1)[2].content->find(R"({"x":2})") != std::string::npos);
}

TEST_CASE("AgentLoop: a grant for the chat covers equal arguments and no others", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = true, .arguments = {}, .feedback = {}, .scope = ApprovalScope::kChat};
  f.model.ThenCall({{"1", "danger", R"({"x":1})"}, {"2", "danger", R"({"x":1})"}, {"3", "danger", R"({"x":2})"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(std::count(f.recorder.names.begin(), f.recorder.names.end(), "approval_required") == 2);
  CHECK(f.ran.size() == 3);
  CHECK(outcome.state.grants.size() == 2);
}

TEST_CASE("AgentLoop: an approved call does not run on changed terms; it is asked about again", "[agent]") {
  Fixture f;
  FakeTools others;
  ToolTraits traits = f.tools.Current()->Find("danger")->traits();
  SECTION("another description") { traits.spec.description = "another"; }
  SECTION("another schema") { traits.spec.parameters = R"({"type":"object","properties":{}})"; }
  SECTION("other terms") { traits.terms = "elsewhere"; }
  Names ran;
  others.Add(traits, [&](std::string_view arguments, const ToolContext&) {
    ran.emplace_back(arguments);
    return ToolOutcome{"boom", false};
  });
  ChangingTools tools;
  tools.now = &f.tools;
  f.registry = &tools;
  f.recorder.on_ask = [&] { tools.now = &others; };
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"1", "danger", R"({"x":1})"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.recorder.names == Names{"approval_required", "approved", "rejected", "approval_required", "approved",
                                  "tool_call", "tool_result", "answer"});
  CHECK(f.recorder.Last<event::Rejected>().superseded);
  CHECK(f.recorder.Last<event::ApprovalRequired>().terms_digest == TermsDigest(traits));
  CHECK(f.ran.empty());
  CHECK(ran == Names{R"({"x":1})"});
}

TEST_CASE("AgentLoop: a call without approval asks if its tool has changed since the round began", "[agent]") {
  Fixture f;
  FakeTools others;
  ToolTraits traits = f.tools.Current()->Find("echo")->traits();
  traits.spec.description = "another";
  traits.requires_approval = true;
  others.Add(traits, [](std::string_view, const ToolContext&) { return ToolOutcome{"did it", false}; });
  ChangingTools tools;
  tools.now = &f.tools;
  f.registry = &tools;
  f.recorder.answer = ApprovalAnswer{.approved = false};
  f.model.Then([&](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> {
    tools.now = &others;
    return ModelResponse{.tool_calls = {{"1", "echo", "{}"}}, .usage = {}, .extras = {}};
  });
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.recorder.names == Names{"approval_required", "rejected", "tool_result", "answer"});
}

TEST_CASE("AgentLoop: a grant covers no call on other terms, and one of version 0.1 covers none", "[agent]") {
  Fixture f;
  SECTION("other terms") { f.state.grants = {{"danger", ArgumentsDigest("{}"), ArgumentsDigest("other")}}; }
  SECTION("none") { f.state.grants = {{"danger", ArgumentsDigest("{}")}}; }
  f.recorder.answer = ApprovalAnswer{.approved = false};
  f.model.ThenCall({{"1", "danger", "{}"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.ran.empty());
}

TEST_CASE("AgentLoop: a grant for always covers the call, unless its tool needs consent", "[agent]") {
  const bool needs_consent = GENERATE(false, true);
  Fixture f;
  ToolTraits traits;
  traits.spec = {"foreign", "a fake", R"({"type":"object"})"};
  traits.read_only = false;
  traits.requires_approval = true;
  traits.needs_consent = needs_consent;
  f.tools.Add(std::move(traits), [&](std::string_view arguments, const ToolContext&) {
    f.ran.emplace_back(arguments);
    return ToolOutcome{"done", false};
  });
  f.recorder.granted = {"foreign", ArgumentsDigest("{}"), TermsOf(f.tools, "foreign")};
  f.recorder.answer = ApprovalAnswer{.approved = false};
  f.model.ThenCall({{"1", "foreign", "{}"}, {"2", "foreign", R"({"x":1})"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.ran == (needs_consent ? Names{} : Names{"{}"}));
  const auto& decisions = f.recorder.Last<event::ApprovalRequired>().allowed_decisions;
  CHECK(std::count(decisions.begin(), decisions.end(), "approve_always") == (needs_consent ? 0 : 1));
}

TEST_CASE("AgentLoop: neighbouring calls ask together, are answered in any order and run in order", "[agent]") {
  Fixture f;
  f.recorder.answers = {{"approval_3", {.approved = true}},
                        {"approval_2", {.approved = false, .feedback = "not this"}},
                        {"approval_1", {.approved = true}}};
  f.model.ThenCall({{"1", "danger", R"({"n":1})"}, {"2", "danger", R"({"n":2})"}, {"3", "danger", R"({"n":3})"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(f.recorder.names == Names{"approval_required", "approval_required", "approval_required", "approved", "rejected",
                                  "approved", "tool_call", "tool_result", "tool_result", "tool_call", "tool_result",
                                  "answer"});
  CHECK(f.ran == Names{R"({"n":1})", R"({"n":3})"});
  REQUIRE(outcome.state.messages.size() == 6);
  for (std::size_t i = 2; i < 5; ++i) CHECK(outcome.state.messages[i].tool_call_id == std::to_string(i - 1));
  CHECK(f.recorder.awaited ==
        std::vector<Names>{{"approval_1", "approval_2", "approval_3"}, {"approval_1", "approval_2"}, {"approval_1"}});
}

TEST_CASE("AgentLoop: a call without a question ends the group of calls that ask together", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"1", "danger", R"({"n":1})"}, {"2", "echo", "{}"}, {"3", "danger", R"({"n":3})"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.recorder.awaited == std::vector<Names>{{"approval_1"}, {"approval_3"}});
}

TEST_CASE("AgentLoop: a cancellation voids open questions, and answered calls do not run", "[agent]") {
  Fixture f;
  f.recorder.answers = {{"approval_2", {.approved = true}}};
  f.recorder.on_ask = [&] { f.stop.request_stop(); };
  f.model.ThenCall({{"1", "danger", R"({"n":1})"}, {"2", "danger", R"({"n":2})"}});
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCancelled);
  CHECK(f.ran.empty());
  CHECK(outcome.state.messages.size() == 4);
}

TEST_CASE("AgentLoop: an approval that expired is a rejection that says so", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = false, .expired = true};
  f.model.ThenCall({{"1", "danger", "{}"}});
  f.model.ThenAnswer("understood");
  f.Run();
  CHECK(f.ran.empty());
  CHECK(f.recorder.Last<event::Rejected>().expired);
  CHECK(f.recorder.Last<event::ToolResult>().tool_output == "Nobody approved this call in time. It was not run.");
}

TEST_CASE("AgentLoop: a call that needs confirmation runs once after the user's next message", "[agent]") {
  Fixture f;
  f.tools.Add("remove", false, [&](std::string_view arguments, const ToolContext&) {
    f.ran.emplace_back(arguments);
    const bool confirmed = arguments.find("true") != std::string_view::npos;
    return ToolOutcome{.output = confirmed ? "removed" : "Remove it?", .requires_confirmation = !confirmed};
  });
  const std::string plain = R"({"what":"a"})", confirmed = R"({"confirmed":true,"what":"a"})";
  f.model.ThenCall({{"1", "remove", confirmed}});  // before the tool has asked
  f.model.ThenCall({{"2", "remove", plain}});
  f.model.ThenCall({{"3", "remove", confirmed}});  // in the same turn
  f.model.ThenAnswer("Shall I?");
  f.state = f.Run().state;
  CHECK(f.ran == Names{plain});
  CHECK(f.recorder.Last<event::ToolResult>().is_error);

  f.model.ThenCall({{"4", "remove", R"({"confirmed":true,"what":"b"})"},
                    {"5", "remove", confirmed},
                    {"6", "remove", R"({"what":"a","confirmed":true })"}});
  f.model.ThenAnswer("done");
  f.Run();
  CHECK(f.ran == Names{plain, confirmed});
  CHECK(f.recorder.Last<event::ToolResult>().tool_output ==
        "Not run: the user's confirmation was for one call, and it has been made.");
}

TEST_CASE("AgentLoop: approval modes", "[agent]") {
  const auto [mode, asks, runs] = GENERATE(table<ApprovalMode, int, std::size_t>({{ApprovalMode::kAsk, 1, 1},
                                                                                  {ApprovalMode::kReadOnly, 1, 1},
                                                                                  {ApprovalMode::kApproveAll, 0, 1},
                                                                                  {ApprovalMode::kDenyAll, 0, 0}}));
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"1", "danger", "{}"}, {"2", "echo", "{}"}});
  f.model.ThenAnswer("done");
  f.recorder.mode = mode;
  f.Run();
  CHECK(std::count(f.recorder.names.begin(), f.recorder.names.end(), "approval_required") == asks);
  CHECK(f.ran.size() == runs);
}

TEST_CASE("AgentLoop: a changed mode applies to the agent's next call", "[agent]") {
  Fixture f;
  f.recorder.mode = ApprovalMode::kDenyAll;
  f.model.ThenCall({{"1", "danger", R"({"a":1})"}});
  f.model.Then([&](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> {
    f.recorder.mode = ApprovalMode::kApproveAll;
    return ModelResponse{.tool_calls = {{"2", "danger", R"({"a":2})"}}, .usage = {}, .extras = {}};
  });
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(f.recorder.names == Names{"tool_result", "tool_call", "tool_result", "answer"});
  CHECK(outcome.state.messages[2].content == kRefusedResult);
  CHECK(f.ran.size() == 1);
}

TEST_CASE("AgentLoop: a cancellation wins over a simultaneous approval, and every call has its result", "[agent]") {
  Fixture f;
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.recorder.on_ask = [&] { f.stop.request_stop(); };
  f.model.ThenCall({{"1", "danger", "{}"}, {"2", "echo", "{}"}});
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCancelled);
  CHECK(f.ran.empty());
  REQUIRE(outcome.state.messages.size() == 4);
  CHECK(outcome.state.messages[2].tool_call_id == "1");
  CHECK(outcome.state.messages[3].tool_call_id == "2");
  CHECK(std::count(f.recorder.names.begin(), f.recorder.names.end(), "tool_result") == 2);
}

TEST_CASE("AgentLoop: text before a failure stays in events and history", "[agent]") {
  Fixture f;
  f.model.Then([](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    stream.OnText("half an ans");
    return Fail(ErrorCode::kProvider, "cut off");
  });
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(f.recorder.names == Names{"message"});
  CHECK(outcome.state.messages.back().content == "half an ans");
  REQUIRE(outcome.error);
  CHECK(outcome.error->message == "cut off");
}

namespace {

// A guard that accepts the answer "good" only.
struct Checker final : CallGuard {
  Verdict Review(std::uint32_t, const ToolCall&, const std::stop_token&) override { return {}; }
  Result<void> Note(AuditEntry) override { return {}; }
  ToolOutcome Passed(std::uint32_t, const ToolCall&, ToolOutcome outcome, const std::stop_token&) override {
    return outcome;
  }
  std::optional<std::string> CheckAnswer(std::uint32_t, int times, const std::string& text,
                                         const std::stop_token&) override {
    seen.push_back(std::to_string(times) + " " + text);
    if (on_check) on_check();
    return text == "good" ? std::nullopt : std::optional<std::string>("not good");
  }
  std::vector<std::string> seen;
  std::function<void()> on_check;
};

}  // namespace

TEST_CASE("AgentLoop: a check sends the agent back until it accepts the answer", "[agent]") {
  Fixture f;
  Checker checker;
  f.guard = &checker;
  f.model.ThenAnswer("bad");
  f.model.ThenCall({{"a", "echo", "{}"}});
  f.model.ThenAnswer("good");
  AgentLimits limits;
  limits.max_sent_back = 3;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kCompleted);
  CHECK(checker.seen == std::vector<std::string>{"0 bad", "1 good"});
  CHECK(f.recorder.names == Names{"message", "sent_back", "tool_call", "tool_result", "answer"});
  CHECK(f.recorder.Last<event::SentBack>() == event::SentBack{"not good", 1});
  REQUIRE(outcome.state.messages.size() == 6);
  CHECK(outcome.state.messages[1].content == "bad");
  CHECK(outcome.state.messages[2].content == std::string(kSentBackIntro) + "not good");
  CHECK_FALSE(IsOfPerson(outcome.state.messages[2]));
}

TEST_CASE("AgentLoop: goes on after a pause of the provider, a bounded number of times", "[agent]") {
  Fixture f;
  Checker checker;
  f.guard = &checker;
  int pauses = 2;
  const auto pause = [](const Messages&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    stream.OnText("half");
    ModelResponse response{.tool_calls = {}, .usage = {}, .extras = {}};
    response.truncated = "pause";
    response.pauses = true;
    response.searches = {event::WebSearch{"cats", {{"https://a.example/", "A"}}}};
    return response;
  };
  SECTION("to the answer") {
    for (int i = 0; i < pauses; ++i) f.model.Then(pause);
    f.model.ThenAnswer("good");
    const AgentOutcome outcome = f.Run();
    CHECK(f.recorder.names == Names{"message", "web_search", "message", "web_search", "answer"});
    CHECK(checker.seen.empty());  // it is asked about answers, and here has no turns left
    CHECK(outcome.state.messages.size() == 4);
    CHECK(f.recorder.Last<event::Answer>() == event::Answer{"good"});
  }
  SECTION("and then says that it is cut off") {
    pauses = 17;
    for (int i = 0; i < pauses; ++i) f.model.Then(pause);
    f.Run();
    CHECK(f.recorder.Last<event::Answer>() == event::Answer{"half", "pause"});
    CHECK(f.recorder.names.size() == 34);
  }
}

TEST_CASE("AgentLoop: the words of a check are no user's confirmation", "[agent]") {
  Fixture f;
  Checker checker;
  f.guard = &checker;
  f.tools.Add("remove", false, [&](std::string_view arguments, const ToolContext&) {
    f.ran.emplace_back(arguments);
    return ToolOutcome{.output = "Remove it?", .requires_confirmation = true};
  });
  f.model.ThenCall({{"1", "remove", R"({"what":"a"})"}});
  f.model.ThenAnswer("bad");
  f.model.ThenCall({{"2", "remove", R"({"confirmed":true,"what":"a"})"}});
  f.model.ThenAnswer("good");
  AgentLimits limits;
  limits.max_sent_back = 1;
  f.Run(limits);
  CHECK(f.ran == Names{R"({"what":"a"})"});
  CHECK(f.recorder.Last<event::ToolResult>().is_error);
}

TEST_CASE("AgentLoop: a check is asked a bounded number of times", "[agent]") {
  Fixture f;
  Checker checker;
  f.guard = &checker;
  for (int i = 0; i < 3; ++i) f.model.ThenAnswer("bad");
  AgentLimits limits;
  SECTION("as often as is set") { limits.max_sent_back = 2; }
  SECTION("never in the last round") {
    limits.max_sent_back = 9;
    limits.max_rounds = 3;
  }
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kCompleted);
  CHECK(checker.seen.size() == 2);
  CHECK(f.recorder.names == Names{"message", "sent_back", "message", "sent_back", "answer"});
}

TEST_CASE("AgentLoop: a run that is stopped during the check keeps the text", "[agent]") {
  Fixture f;
  Checker checker;
  checker.on_check = [&] { f.stop.request_stop(); };
  f.guard = &checker;
  f.model.ThenAnswer("bad");
  AgentLimits limits;
  limits.max_sent_back = 2;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kCancelled);
  CHECK(f.recorder.names == Names{"message"});
  CHECK(outcome.state.messages.back().content == "bad");
}

TEST_CASE("AgentLoop: max_rounds ends the run with a well-formed history", "[agent]") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.model.ThenCall({{std::to_string(i), "echo", "{}"}});
  AgentLimits limits;
  limits.max_rounds = 3;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(outcome.error->reason == "max_rounds");
  CHECK(outcome.state.messages.size() == 7);
}

TEST_CASE("AgentLoop: a model that repeats itself is warned, and then stopped", "[agent]") {
  Fixture f;
  for (int i = 0; i < 6; ++i) f.model.ThenCall({{std::to_string(i), "echo", R"({"a":1})"}, {"x", "echo", "{}"}});
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(outcome.error->reason == "loop_detected");
  CHECK(f.model.requests().size() == 4);
  CHECK(f.recorder.Last<event::LoopDetected>() == event::LoopDetected{"echo", 4});
  CHECK(std::count(f.recorder.names.begin(), f.recorder.names.end(), "loop_detected") == 2);
  CHECK(std::count(f.recorder.names.begin(), f.recorder.names.end(), "tool_call") == 5);
  REQUIRE(outcome.state.messages.size() == 13);  // every call has its result
  CHECK(f.model.requests().at(3).back().content->find("Do not make it again") != std::string::npos);
}

TEST_CASE("AgentLoop: a model that heeds the warning continues", "[agent]") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.model.ThenCall({{std::to_string(i), "danger", R"({"a":1})"}});
  f.model.ThenCall({{"3", "echo", "{}"}});
  f.model.ThenAnswer("done");
  f.recorder.mode = ApprovalMode::kApproveAll;
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  CHECK(f.ran.size() == 2);  // the third call does not run
  CHECK(f.recorder.Last<event::LoopDetected>() == event::LoopDetected{"danger", 3});
}

TEST_CASE("AgentLoop: messages that do not fit are summed up for the request and stay in the state", "[agent]") {
  Fixture f;
  f.state.messages.push_back({.role = Role::kUser, .content = "first"});
  for (int i = 0; i < 100; ++i)
    f.state.messages.push_back({.role = Role::kAssistant, .content = std::string(300, 'x')});
  const std::string summary = GENERATE("they talked", "");  // the model's summary
  f.model.ThenAnswer(summary);
  f.model.ThenAnswer("done");
  AgentLimits limits;
  limits.context_window = 8192;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kCompleted);
  CHECK(f.recorder.names == Names{"compacted", "answer"});
  CHECK(outcome.state.messages.size() == 103);
  REQUIRE(outcome.state.compaction);
  const auto& told = f.recorder.Last<event::Compacted>();
  CHECK(told.summary == outcome.state.compaction->summary);
  CHECK((told.summary == summary) == !summary.empty());
  CHECK_FALSE(told.summary.empty());
  CHECK(told.tokens_before > told.budget);
  CHECK(told.tokens_after <= told.budget);
  CHECK(f.model.requests().at(0).size() == 2);
  const auto sent = f.model.requests().at(1);
  CHECK(sent.size() + static_cast<std::size_t>(told.messages) == 102 + 1);
  CHECK(sent.front().content == "first");
  CHECK(sent.back().content == "go");
}

TEST_CASE("AgentLoop: old results are cleared before anything is summed up, and stay in the state", "[agent]") {
  Fixture f;
  f.state.messages.push_back({.role = Role::kUser, .content = "first"});
  for (int i = 0; i < 12; ++i) {
    const std::string id = "old_" + std::to_string(i);
    f.state.messages.push_back({.role = Role::kAssistant, .content = std::nullopt, .tool_calls = {{id, "echo", "{}"}}});
    f.state.messages.push_back({.role = Role::kTool, .content = std::string(1800, 'x'), .tool_call_id = id});
  }
  const Messages before = f.state.messages;
  f.model.ThenAnswer("done");
  AgentLimits limits;
  limits.context_window = 8192;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kCompleted);
  CHECK(f.recorder.names == Names{"compacted", "answer"});
  CHECK(outcome.state.messages.StartsWith(before));
  CHECK(outcome.state.cleared > 0);
  CHECK_FALSE(outcome.state.compaction);
  const auto& told = f.recorder.Last<event::Compacted>();
  CHECK((told.results > 0 && told.messages == 0 && told.summary.empty()));
  CHECK(told.tokens_before > told.budget);
  CHECK(told.tokens_after <= told.budget * 2 / 3);
  const auto sent = f.model.requests().at(0);
  CHECK(sent.size() == before.size() + 1);
  CHECK(sent[2].content->find("cleared to save room") != std::string::npos);
  CHECK(sent[before.size() - 1].content->size() == 1800);

  // The next turn sends the same notes, so that the provider's cache holds.
  Fixture next;
  next.state = outcome.state;
  next.model.ThenAnswer("done");
  next.Run(limits);
  CHECK(next.recorder.names == Names{"answer"});
  const auto again = next.model.requests().at(0);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(again[i].content == sent[i].content);
}

TEST_CASE("AgentLoop: a summary that fails, never ends or is stopped", "[agent]") {
  Fixture f;
  f.state.messages.push_back({.role = Role::kUser, .content = "first"});
  for (int i = 0; i < 100; ++i)
    f.state.messages.push_back({.role = Role::kAssistant, .content = std::string(300, 'x')});
  AgentLimits limits;
  limits.context_window = 8192;
  SECTION("it fails: an outline serves") {
    f.model.Then(FailWith(Busy(), "half a summary"));
    f.model.ThenAnswer("done");
    CHECK(f.Run(limits).status == InteractionStatus::kCompleted);
    CHECK(f.recorder.Last<event::Compacted>().summary.find("Assistant: xxx") != std::string::npos);
  }
  SECTION("it is too long: it is stopped and cut") {
    f.model.Then([](const auto&, ModelStream& stream, std::stop_token stop) -> Result<ModelResponse> {
      for (int i = 0; i < 10'000; ++i) stream.OnText("â¬");
      CHECK(stop.stop_requested());
      return Fail(ErrorCode::kCancelled, "stopped");
    });
    f.model.ThenAnswer("done");
    CHECK(f.Run(limits).status == InteractionStatus::kCompleted);
    const std::string summary = f.recorder.Last<event::Compacted>().summary;
    CHECK(summary.starts_with("â¬"));
    CHECK(summary.size() <= 6144 / 10 * 3);
  }
  SECTION("the run is stopped") {
    f.model.Then([&](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> {
      f.stop.request_stop();
      return Fail(ErrorCode::kCancelled, "stopped");
    });
    const AgentOutcome outcome = f.Run(limits);
    CHECK(outcome.status == InteractionStatus::kCancelled);
    CHECK_FALSE(outcome.state.compaction);
    CHECK(f.model.requests().size() == 1);
  }
}

TEST_CASE("AgentLoop: a message that no request can hold is a clear error", "[agent]") {
  Fixture f;
  f.state.messages.push_back({.role = Role::kUser, .content = std::string(100'000, 'x')});
  f.state.messages.push_back({.role = Role::kUser, .content = std::string(100'000, 'x')});
  AgentLimits limits;
  limits.context_window = 60;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(outcome.error->reason == "context_length");
  CHECK(f.model.requests().empty());
}

TEST_CASE("AgentLoop: read-only calls run together, and their results keep the calls' order", "[agent]") {
  Fixture f;
  f.on_threads = true;
  f.AddMeeting("look", 3);
  f.AddMeeting("beside", 3, /*read_only=*/false, Concurrency::kAllowed);
  f.model.ThenCall({{"1", "look", R"({"n":1})"}, {"2", "beside", R"({"n":2})"}, {"3", "look", R"({"n":3})"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCompleted);
  REQUIRE(outcome.state.messages.size() == 6);
  for (std::size_t i = 1; i <= 3; ++i) {
    CHECK(outcome.state.messages[i + 1].content == R"({"n":)" + std::to_string(i) + "}");
    CHECK_FALSE(outcome.state.messages[i + 1].is_error);
  }
  std::vector<std::string> results;
  for (const EventPayload& payload : f.recorder.events) {
    if (const auto* result = std::get_if<event::ToolResult>(&payload)) results.push_back(result->id);
  }
  CHECK(results == Names{"1", "2", "3"});
}

TEST_CASE("AgentLoop: a call that writes waits for those before it, and those after it wait too", "[agent]") {
  Fixture f;
  f.on_threads = true;
  f.AddMeeting("look", 2);
  std::vector<int> seen;
  ToolTraits traits;
  traits.spec = {"write", "a fake", R"({"type":"object"})"};
  traits.read_only = false;
  f.tools.Add(std::move(traits), [&](std::string_view, const ToolContext&) {
    const std::lock_guard lock(f.mutex);
    seen.push_back(f.present);
    return ToolOutcome{"written", false};
  });
  f.model.ThenCall({{"1", "look", "{}"},
                    {"2", "look", "{ }"},
                    {"3", "write", "{}"},
                    {"4", "look", R"({"n":4})"},
                    {"5", "nope", "{}"}});
  f.model.ThenAnswer("done");
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  CHECK(seen == std::vector<int>{2});
  CHECK(f.recorder.Last<event::ToolResult>().id == "5");
}

TEST_CASE("AgentLoop: without another thread the calls still run, all shown first", "[agent]") {
  Fixture f;  // its executor runs each job within the call
  f.model.ThenCall({{"1", "echo", R"({"n":1})"}, {"2", "echo", R"({"n":2})"}, {"3", "echo", R"({"n":3})"}});
  f.model.ThenAnswer("done");
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  CHECK(f.recorder.names ==
        Names{"tool_call", "tool_call", "tool_call", "tool_result", "tool_result", "tool_result", "answer"});
}

TEST_CASE("AgentLoop: a stop while calls run together leaves each with its result", "[agent]") {
  Fixture f;
  f.on_threads = true;
  ToolTraits traits;
  traits.spec = {"stops", "a fake", R"({"type":"object"})"};
  f.tools.Add(std::move(traits), [&](std::string_view, const ToolContext& context) {
    f.stop.request_stop();
    return context.stop.stop_requested() ? ToolOutcome{} : ToolOutcome{"?", false};
  });
  std::vector<ToolCall> calls;
  for (int i = 0; i < 20; ++i) calls.push_back({std::to_string(i), "stops", R"({"n":)" + std::to_string(i) + "}"});
  f.model.ThenCall(calls);
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCancelled);
  REQUIRE(outcome.state.messages.size() == 22);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(outcome.state.messages[i + 2].tool_call_id == std::to_string(i));
    CHECK(outcome.state.messages[i + 2].is_error);
  }
}

TEST_CASE("AgentLoop: live output is capped, and says so", "[agent]") {
  Fixture f;
  f.tools.Add("loud", false, [](std::string_view, const ToolContext& context) {
    for (int i = 0; i < 300; ++i) context.on_output(std::string(1024, 'x'));
    return ToolOutcome{"done", false};
  });
  f.model.ThenCall({{"1", "loud", "{}"}});
  f.model.ThenAnswer("done");
  f.Run();
  std::string shown;
  for (const EventPayload& payload : f.recorder.events) {
    if (const auto* delta = std::get_if<event::ToolOutputDelta>(&payload)) shown += delta->content;
  }
  CHECK(shown.size() < 260 * 1024);
  CHECK(shown.ends_with("it is not shown while the tool runs)\n"));
}

TEST_CASE("AgentLoop: a tool that throws becomes an error result", "[agent]") {
  Fixture f;
  f.tools.Add("broken", false,
              [](std::string_view, const ToolContext&) -> ToolOutcome { throw std::runtime_error("x"); });
  f.model.ThenCall({{"1", "broken", "{}"}});
  f.model.ThenAnswer("oh");
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  CHECK(f.recorder.Last<event::ToolResult>().is_error);
}

TEST_CASE("AgentLoop: a failed request is sent again, unchanged, after doubling pauses", "[agent]") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.model.Then(FailWith(Busy()));
  f.model.ThenAnswer("hello");
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCompleted);
  CHECK(f.recorder.names == Names{"retry", "retry", "retry", "answer"});
  const auto& last = f.recorder.Last<event::Retry>();
  CHECK(last.attempt == 3);
  CHECK(last.code == "provider_overloaded");
  CHECK(last.message == "busy");
  REQUIRE(f.pauses.size() == 3);
  CHECK(last.delay_ms == f.pauses[2].count());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto middle = 1000 << i;
    CHECK(f.pauses[i].count() >= middle * 8 / 10);
    CHECK(f.pauses[i].count() <= middle * 12 / 10);
  }
  const auto requests = f.model.requests();
  CHECK(requests.size() == 4);
  CHECK(requests[0] == requests[3]);
  CHECK(outcome.state.messages.size() == 2);
}

TEST_CASE("AgentLoop: the last failure is reported when the retries are used up", "[agent]") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.model.Then(FailWith(Busy()));
  AgentLimits limits;
  limits.retry.max_retries = 2;
  const AgentOutcome outcome = f.Run(limits);
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(outcome.error->reason == "provider_overloaded");
  CHECK(f.recorder.names == Names{"retry", "retry"});
  CHECK(f.model.requests().size() == 3);
}

TEST_CASE("AgentLoop: a request is not repeated after its response has begun to show", "[agent]") {
  Fixture f;
  f.model.Then(FailWith(Busy(), "half"));
  CHECK(f.Run().status == InteractionStatus::kFailed);
  CHECK(f.recorder.names == Names{"message"});
  CHECK(f.pauses.empty());
}

TEST_CASE("AgentLoop: a permanent failure is not retried", "[agent]") {
  Fixture f;
  Error error = Busy();
  error.retryable = false;
  f.model.Then(FailWith(error));
  CHECK(f.Run().status == InteractionStatus::kFailed);
  CHECK(f.pauses.empty());
}

TEST_CASE("AgentLoop: each round counts its own retries", "[agent]") {
  Fixture f;
  f.model.Then(FailWith(Busy()));
  f.model.ThenCall({{"1", "echo", "{}"}});
  f.model.Then(FailWith(Busy()));
  f.model.ThenAnswer("done");
  AgentLimits limits;
  limits.retry.max_retries = 1;
  CHECK(f.Run(limits).status == InteractionStatus::kCompleted);
  CHECK(f.recorder.Last<event::Retry>().attempt == 1);
  CHECK(f.pauses.size() == 2);
}

TEST_CASE("AgentLoop: a stop ends the pause at once, and the pause's own end has no effect", "[agent]") {
  Fixture f;
  f.model.Then(FailWith(Busy()));
  f.on_pause = [&] {
    f.stop.request_stop();     // the pause's own end comes second
    CHECK_FALSE(f.has_ended);  // otherwise the loop could be destroyed while it is still in use
  };
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kCancelled);
  CHECK(f.model.requests().size() == 1);
}

TEST_CASE("AgentLoop: a failed call is marked in the history", "[agent]") {
  Fixture f;
  f.model.ThenCall({{"1", "nope", "{}"}, {"2", "echo", "{}"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.state.messages[2].is_error);
  CHECK_FALSE(outcome.state.messages[3].is_error);
}

TEST_CASE("AgentLoop: a tool that needs consent asks despite grants, and knows that it was approved", "[agent]") {
  Fixture f;
  std::vector<bool> approved;
  ToolTraits traits;
  traits.spec = {"foreign", "from elsewhere", R"({"type":"object"})"};
  traits.needs_consent = true;
  f.tools.Add(traits, [&](std::string_view, const ToolContext& context) {
    approved.push_back(context.approved);
    return ToolOutcome{"done", false};
  });
  f.state.grants.push_back({"foreign", ArgumentsDigest("{}"), TermsOf(f.tools, "foreign")});
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"1", "foreign", "{}"}});
  f.model.ThenAnswer("ok");
  f.Run();
  CHECK(f.recorder.names == Names{"approval_required", "approved", "tool_call", "tool_result", "answer"});
  f.model.ThenCall({{"2", "foreign", "{}"}});
  f.model.ThenAnswer("ok");
  f.recorder.mode = ApprovalMode::kApproveAll;
  f.Run();
  CHECK(approved == std::vector<bool>{true, false});
}

TEST_CASE("AgentLoop: a tool's question is shown, and the answer goes to the tool", "[agent]") {
  Fixture f;
  std::vector<ToolAnswer> got;
  f.tools.Add("asks", false, [&](std::string_view, const ToolContext& context) {
    got.push_back(context.ask({.text = "Which?", .schema = {}, .url = {}, .options = {"a", "b"}}, context.stop));
    return ToolOutcome{"heard " + got.back().content, false};
  });
  f.model.ThenCall({{"1", "asks", "{}"}});
  f.model.ThenAnswer("done");
  SECTION("answered") {
    f.recorder.reply = InputAnswer{"a"};
    CHECK(f.Run().status == InteractionStatus::kCompleted);
    CHECK(f.recorder.names == Names{"tool_call", "input_required", "input_received", "tool_result", "answer"});
    const auto& asked = f.recorder.Last<event::InputRequired>();
    CHECK(asked.call_id == "1");
    CHECK(asked.question == "Which?");
    CHECK(asked.options == std::vector<std::string>{"a", "b"});
    CHECK_FALSE(asked.schema);
    CHECK(f.recorder.Last<event::InputReceived>().response == "a");
    CHECK(f.recorder.Last<event::ToolResult>().tool_output == "heard a");
    CHECK(got.at(0).action == ToolAnswer::Action::kAccept);
  }
  SECTION("declined") {
    f.recorder.reply = InputAnswer{};
    f.Run();
    CHECK(got.at(0).action == ToolAnswer::Action::kDecline);
    CHECK(f.recorder.Last<event::InputReceived>().response == std::nullopt);
  }
  SECTION("cancelled") {
    f.Run();
    CHECK(got.at(0).action == ToolAnswer::Action::kCancel);
    CHECK(f.recorder.names == Names{"tool_call", "input_required", "tool_result", "answer"});
  }
}

TEST_CASE("AgentLoop: tasks and plan are in the state, and changes emit events", "[agent]") {
  Fixture f;
  const auto alone = [](const std::string& name) {
    ToolTraits traits;
    traits.spec = {name, "a fake", R"({"type":"object"})"};
    traits.concurrency = Concurrency::kNever;
    return traits;
  };
  f.tools.Add(alone("tasks"), [&](std::string_view, const ToolContext& context) {
    context.change_agenda([](Agenda& agenda) { agenda.tasks.push_back({NextTaskId(agenda.tasks), "Pack", "todo"}); });
    return ToolOutcome{std::to_string(f.recorder.agenda.tasks.size()), false};
  });
  f.tools.Add(alone("plan"), [](std::string_view, const ToolContext& context) {
    context.change_agenda([](Agenda& agenda) { agenda.plan = {"a"}; });
    context.change_agenda([](Agenda&) {});
    return ToolOutcome{"planned", false};
  });
  f.state.agenda.tasks = {{"7", "old", "done"}};
  f.model.ThenCall({{"1", "tasks", "{}"}, {"2", "plan", "{}"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(f.recorder.names ==
        Names{"tool_call", "task_updated", "tool_result", "tool_call", "plan_updated", "tool_result", "answer"});
  const std::vector<Task> tasks = {{"7", "old", "done"}, {"8", "Pack", "todo"}};
  CHECK(f.recorder.Last<event::TaskUpdated>() == event::TaskUpdated{"1", tasks});
  CHECK(f.recorder.Last<event::PlanUpdated>() == event::PlanUpdated{"2", {"a"}});
  CHECK(outcome.state.agenda == Agenda{tasks, {"a"}});
  CHECK(outcome.state.messages[2].content == "2");
}

TEST_CASE("AgentLoop: each request has the system prompt, with entities from summed-up messages", "[agent]") {
  Fixture f;
  f.prompt = {.modules = {{"10-a", "In {{workspace}} with {{tools}}."}, {"20-b", "Known: {{memory}}"}},
              .workspace = "/w"};
  f.state.messages = {{.role = Role::kUser, .content = "first"},
                      {.role = Role::kAssistant, .content = "", .tool_calls = {{"0", "echo", "{}"}}},
                      {.role = Role::kTool, .content = "Created page-1.", .tool_call_id = "0"},
                      {.role = Role::kAssistant, .content = "It is there."}};
  f.state.compaction = {.first = 1, .end = 4, .summary = "they talked", .requested = true};
  f.state.memory = {{"page", "page-1"}};
  f.model.ThenCall({{"1", "echo", R"({"path":"a.txt"})"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  const std::string told = "In /w with echo, danger.\n\nKnown: page: page-1";
  CHECK(f.model.system_prompts() == std::vector<std::string>{told, told});
  CHECK(outcome.state.memory == std::vector<Entity>{{"page", "page-1"}, {"file", "a.txt"}});
  CHECK(outcome.state.messages.front().role == Role::kUser);
}

TEST_CASE("AgentLoop: the system prompt counts, and its memory changes when messages are summed up", "[agent]") {
  Fixture f;
  f.prompt = {.modules = {{"10-a", std::string(6000, 'p')}, {"20-b", "{{memory}}"}}};
  f.state.messages.push_back({.role = Role::kUser, .content = "first"});
  f.state.messages.push_back({.role = Role::kAssistant, .content = "", .tool_calls = {{"0", "fetch", "{}"}}});
  f.state.messages.push_back({.role = Role::kTool, .content = R"({"type":"page","id":"page-1"})", .tool_call_id = "0"});
  for (int i = 0; i < 30; ++i) f.state.messages.push_back({.role = Role::kAssistant, .content = std::string(300, 'x')});
  f.tools.Add("fetch", false, [](std::string_view, const ToolContext&) {
    return ToolOutcome{R"({"type":"page","id":"page-2","text":")" + std::string(4000, 't') + "\"}", false};
  });
  f.model.ThenCall({{"1", "fetch", "{}"}});
  f.model.ThenAnswer("a summary");
  f.model.ThenAnswer("done");
  AgentLimits limits;
  limits.context_window = 8192;
  CHECK(f.Run(limits).status == InteractionStatus::kCompleted);
  const auto told = f.model.system_prompts();
  const auto requests = f.model.requests();
  REQUIRE(told.size() == 3);
  CHECK(told[0] == std::string(6000, 'p'));
  CHECK(told[1].empty());  // the summary's request has its own prompt
  CHECK(told[2] == std::string(6000, 'p') + "\n\npage: page-1");
  for (std::size_t i = 0; i < told.size(); ++i) {
    auto tokens = static_cast<std::int64_t>(told[i].size() / 3);
    for (const Message& message : requests[i]) tokens += EstimateTokens(message);
    CHECK(tokens <= 6144);
  }
  f.prompt.modules[0].text = std::string(20'000, 'p');
  const AgentOutcome outcome = f.Run(limits);
  REQUIRE(outcome.error);
  CHECK(outcome.error->reason == "context_length");
}

TEST_CASE("AgentLoop: a used-up budget ends the run before the next request", "[agent]") {
  Fixture f;
  const std::int64_t budget = GENERATE(0, 10);
  f.guards.over_budget = [budget](const TokenUsage& used) -> std::optional<std::string> {
    if (used.input_tokens < budget) return std::nullopt;
    return "used up";
  };
  f.model.Then([](const auto&, ModelStream&, std::stop_token) -> Result<ModelResponse> {
    return ModelResponse{.tool_calls = {{"1", "echo", "{}"}}, .usage = {.input_tokens = 10}, .extras = {}};
  });
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(outcome.error->reason == "budget_exceeded");
  CHECK(outcome.error->message == "used up");
  CHECK(f.model.requests().size() == (budget == 0 ? 0 : 1));
  CHECK(outcome.state.messages.size() == (budget == 0 ? 1 : 3));
}

TEST_CASE("AgentLoop: a call beyond the rate neither runs nor asks, and the model is told", "[agent]") {
  Fixture f;
  int left = 1;
  f.guards.refuse_call = [&left]() -> std::optional<std::string> {
    if (left-- > 0) return std::nullopt;
    return "wait";
  };
  f.model.ThenCall({{"0", "nothing", "{}"}, {"1", "echo", "{}"}, {"2", "danger", "{}"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(f.ran.empty());
  CHECK(f.recorder.names ==
        Names{"tool_call", "tool_result", "tool_call", "tool_result", "tool_call", "tool_result", "answer"});
  CHECK(outcome.state.messages[3].content == "echoed {}");
  CHECK(outcome.state.messages[4].content == "wait");
  CHECK(outcome.state.messages[4].is_error);
}

TEST_CASE("AgentLoop: a call that cannot be written to the audit log does not run", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  guard.writable = GENERATE(true, false);
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"c1", "danger", "{}"}});
  f.model.ThenAnswer("ok");
  f.Run();
  CHECK(f.ran.size() == (guard.writable ? 1 : 0));
  const auto& result = f.recorder.Last<event::ToolResult>();
  CHECK(result.tool_output == (guard.writable ? "boom!" : "Not run: the audit log could not be written."));
  REQUIRE(guard.entries.size() >= 2);
  CHECK(guard.entries[0].event == AuditEntry::Event::kApproved);
  CHECK(guard.entries[1].event == AuditEntry::Event::kStarted);
  CHECK(guard.entries[1].reason == "approval");
  CHECK(guard.entries[1].arguments_digest == ArgumentsDigest("{}"));
}

TEST_CASE("AgentLoop: a call asks and runs with the guard's arguments, and the model is told", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  guard.verdict.arguments = R"({"a":2})";
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"c1", "danger", R"({"a":1})"}});
  f.model.ThenAnswer("ok");
  f.Run();
  CHECK(f.recorder.Last<event::ApprovalRequired>().tool_input == R"({"a":2})");
  CHECK(f.recorder.Last<event::ApprovalRequired>().arguments_digest == ArgumentsDigest(R"({"a":2})"));
  CHECK(f.recorder.Last<event::ToolCallStarted>().tool_input == R"({"a":2})");
  CHECK(f.ran == std::vector<std::string>{R"({"a":2})"});
  CHECK(f.recorder.Last<event::ToolResult>().tool_output == "(A hook changed the arguments to {\"a\":2})\nboom!");
}

TEST_CASE("AgentLoop: a response that a guard rejects is shown and counted, but its calls do not run", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  guard.hears = false;
  f.model.Then([](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    stream.OnText("I will");
    stream.OnBatchEnd();
    ModelResponse response;
    response.tool_calls = {{"c1", "echo", "{}"}};
    response.usage.input_tokens = 7;
    return response;
  });
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.status == InteractionStatus::kFailed);
  CHECK(f.ran.empty());
  CHECK(guard.heard == std::vector<std::string>{"I will"});
  CHECK(f.recorder.names == Names{"message", "usage"});
  CHECK(outcome.usage.input_tokens == 7);
  CHECK(outcome.state.messages.back().content == "I will");
  CHECK(outcome.state.messages.back().tool_calls.empty());
}

TEST_CASE("AgentLoop: a guard's text for the model follows the system prompt", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  f.prompt = {.modules = {{"10-a", "Be kind."}}, .workspace = {}};
  guard.told = "It rains.";
  f.model.ThenAnswer("ok");
  f.Run();
  CHECK(f.model.system_prompts() == std::vector<std::string>{"Be kind.\n\nIt rains."});
}

TEST_CASE("AgentLoop: a call is reviewed after those before it have run, or together if they ask together", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  std::vector<std::string> reviews;
  guard.on_review = [&](const ToolCall& call) {
    reviews.push_back(call.id + " after " + std::to_string(f.ran.size()));
  };
  f.recorder.answer = ApprovalAnswer{.approved = true};
  f.model.ThenCall({{"c1", "danger", "{}"}, {"c2", "danger", R"({"a":1})"}, {"c3", "echo", "{}"}});
  f.model.ThenAnswer("ok");
  CHECK(f.Run().status == InteractionStatus::kCompleted);
  CHECK(reviews == std::vector<std::string>{"c1 after 0", "c2 after 0", "c3 after 2"});
}

TEST_CASE("AgentLoop: the audit log says why a call ran or did not", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  AuditEntry::Event expected = AuditEntry::Event::kRefused;
  std::string reason, approval_id, arguments = "{}";
  SECTION("granted for always") {
    f.recorder.granted = {"danger", ArgumentsDigest("{}"), TermsOf(f.tools, "danger")};
    expected = AuditEntry::Event::kStarted;
    reason = "standing_grant";
  }
  SECTION("approved for always") {
    f.recorder.answer = ApprovalAnswer{.approved = true, .scope = ApprovalScope::kAlways};
    expected = AuditEntry::Event::kApproved;
    reason = "always";
    approval_id = "approval_c1";
  }
  SECTION("nobody answered in time") {
    f.recorder.answer = ApprovalAnswer{.approved = false, .expired = true};
    expected = AuditEntry::Event::kRejected;
    reason = "expired";
    approval_id = "approval_c1";
  }
  SECTION("too many calls") {
    f.guards.refuse_call = [] { return std::optional<std::string>("wait"); };
    reason = "rate";
  }
  SECTION("a confirmation that the user did not give") {
    arguments = R"({"confirmed":true})";
    reason = "confirmation";
  }
  f.model.ThenCall({{"c1", "danger", arguments}});
  f.model.ThenAnswer("ok");
  f.Run();
  REQUIRE_FALSE(guard.entries.empty());
  CHECK(guard.entries[0].event == expected);
  CHECK(guard.entries[0].reason == reason);
  CHECK(guard.entries[0].approval_id == approval_id);
}

TEST_CASE("AgentLoop: a guard rejects calls and requests", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  SECTION("a call") {
    guard.verdict.refusal = "not this one";
    f.model.ThenCall({{"c1", "danger", "{}"}});
    f.model.ThenAnswer("ok");
    CHECK(f.Run().status == InteractionStatus::kCompleted);
    CHECK(f.recorder.Last<event::ToolResult>().tool_output == "not this one");
    REQUIRE(guard.entries.size() == 1);
    CHECK(guard.entries[0].event == AuditEntry::Event::kRefused);
    CHECK(guard.entries[0].reason == "hook");
  }
  SECTION("a request, or to begin") {
    (GENERATE(true, false) ? guard.admits : guard.begins) = false;
    const AgentOutcome ended = f.Run();
    CHECK(ended.status == InteractionStatus::kFailed);
    REQUIRE(ended.error);
    CHECK(ended.error->reason == "hook_denied");
    CHECK(f.model.requests().empty());
  }
  CHECK(f.ran.empty());
}

TEST_CASE("AgentLoop: calls that run together are all audited, and their outputs pass the guard", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  f.on_threads = true;
  f.AddMeeting("look", 3);
  f.model.ThenCall({{"1", "look", R"({"n":1})"}, {"2", "look", R"({"n":2})"}, {"3", "look", R"({"n":3})"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  const auto count = [&](AuditEntry::Event event, const std::string& id) {
    return std::count_if(guard.entries.begin(), guard.entries.end(),
                         [&](const AuditEntry& each) { return each.event == event && each.call_id == id; });
  };
  for (const std::string id : {"1", "2", "3"}) {
    CHECK(count(AuditEntry::Event::kStarted, id) == 1);
    CHECK(count(AuditEntry::Event::kEnded, id) == 1);
  }
  for (std::size_t i = 2; i < 5; ++i) CHECK(outcome.state.messages[i].content->ends_with("!"));
}

TEST_CASE("AgentLoop: changes by a guard are mentioned for calls that were shown, and for no others", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  guard.verdict.arguments = R"({"a":2})";
  for (int i = 0; i < 3; ++i) f.model.ThenCall({{std::to_string(i), "echo", R"({"a":1})"}});
  f.model.ThenAnswer("done");
  const AgentOutcome outcome = f.Run();
  CHECK(outcome.state.messages[4].content->starts_with("(A hook changed the arguments to "));
  CHECK(outcome.state.messages[6].content->starts_with("Not run: this is call number 3"));
  CHECK(guard.entries.back().reason == "loop");
  CHECK(guard.entries.back().arguments_digest == ArgumentsDigest(R"({"a":1})"));
}

TEST_CASE("AgentLoop: a tool's question is redacted like its output", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  f.tools.Add("asks", false, [](std::string_view, const ToolContext& context) {
    context.ask({.text = "secret?", .schema = R"({"a":"secret"})", .url = "http://x/secret", .options = {"a secret"}},
                context.stop);
    return ToolOutcome{"ok", false};
  });
  f.recorder.reply = InputAnswer{"{}"};
  f.model.ThenCall({{"1", "asks", "{}"}});
  f.model.ThenAnswer("done");
  f.Run();
  const auto& asked = f.recorder.Last<event::InputRequired>();
  CHECK(asked.question == "[redacted]?");
  CHECK(asked.schema == R"({"a":"[redacted]"})");
  CHECK(asked.url == "http://x/[redacted]");
  CHECK(asked.options == Names{"a [redacted]"});
}

TEST_CASE("AgentLoop: a tool that asks again after a restart is audited once", "[agent]") {
  Fixture f;
  Guard guard;
  f.guard = &guard;
  f.recorder.reply = InputAnswer{.response = "blue"};
  f.tools.Add("ask", false, [](std::string_view, const ToolContext& context) {
    return ToolOutcome{.output = context.ask({"which?", {}, {}}, context.stop).content};
  });
  f.model.ThenAnswer("ok");
  const ToolCall call{"c1", "ask", "{}"};
  f.state.messages.push_back(Message{.role = Role::kAssistant, .tool_calls = {call}});
  AgentLoop loop({.model = f.model,
                  .tools = f.tools,
                  .observer = f.recorder,
                  .approvals = f.recorder,
                  .executor = [](std::function<void()> job) { job(); },
                  .guard = &guard},
                 {}, "m", f.state, f.stop.get_token());
  std::promise<AgentOutcome> ended;
  loop.Start([&](AgentOutcome outcome) { ended.set_value(std::move(outcome)); },
             {.round_index = 0, .calls = {{.call = call, .has_asked = true}}});
  CHECK(ended.get_future().get().status == InteractionStatus::kCompleted);
  REQUIRE(guard.entries.size() == 1);
  CHECK(guard.entries[0].event == AuditEntry::Event::kEnded);
}

}  // namespace reprise::agent_loop_test
