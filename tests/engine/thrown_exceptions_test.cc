// An exception of foreign code ends the run that it belongs to, and nothing else.
#include <new>
#include <stdexcept>

#include "reprise/engine.h"
#include "store/local_run_store.h"
#include "store/memory_interaction_store.h"
#include "support/await_log.h"
#include "support/fake_tools.h"
#include "support/forwarding_store.h"
#include "support/scripted_model.h"
#include "support/test.h"

namespace reprise::thrown_exceptions_test {
namespace {

enum class Thrown { kRuntimeError, kNoException, kBadAlloc };

class Trap {
 public:
  void Arm(std::string place, Thrown what) { place_ = std::move(place), what_ = what; }
  void Disarm() { place_.clear(); }
  void At(std::string_view place) const {
    if (place != place_) return;
    if (what_ == Thrown::kRuntimeError) throw std::runtime_error("broken");
    if (what_ == Thrown::kBadAlloc) throw std::bad_alloc();
    throw 42;  // NOLINT: not a std::exception
  }

 private:
  std::string place_;
  Thrown what_ = Thrown::kRuntimeError;
};

class TrappedModel final : public ModelClient {
 public:
  TrappedModel(ScriptedModel& base, const Trap& trap) : base_(base), trap_(trap) {}
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override {
    trap_.At("model");
    base_.Generate(request, stream, std::move(stop), std::move(done));
  }

 private:
  ScriptedModel& base_;
  const Trap& trap_;
};

class TrappedStore final : public ForwardingStore {
 public:
  TrappedStore(InteractionStore& base, const Trap& trap) : ForwardingStore(base), trap_(trap) {}
  Result<void> SaveInteraction(const Interaction& interaction) override {
    trap_.At("store");
    return ForwardingStore::SaveInteraction(interaction);
  }

 private:
  const Trap& trap_;
};

class TrappedHooks final : public Hooks {
 public:
  explicit TrappedHooks(const Trap& trap) : trap_(trap) {}
  bool Wants(HookEvent) const override { return true; }
  Verdict Run(HookFacts facts, const std::stop_token&) override {
    trap_.At("hook " + std::to_string(static_cast<int>(facts.event)));
    return {};
  }

 private:
  const Trap& trap_;
};

class TrappedAudit final : public AuditLog {
 public:
  explicit TrappedAudit(const Trap& trap) : trap_(trap) {}
  Result<void> Append(const AuditEntry&) override { return trap_.At("audit"), Result<void>(); }
  Result<Page> Read(std::uint64_t, std::size_t) const override { return Page{}; }

 private:
  const Trap& trap_;
};

class TrappedTools final : public ToolRegistry {
 public:
  TrappedTools(FakeTools& base, const Trap& trap) : base_(base), trap_(trap) {}
  std::shared_ptr<const ToolSet> Current() const override { return trap_.At("tools"), base_.Current(); }

 private:
  FakeTools& base_;
  const Trap& trap_;
};

const ChatId kChat = *ChatId::Parse("c");

struct Fixture {
  Fixture() {
    ToolTraits together;
    together.spec = {"together", "a fake", R"({"type":"object"})"};
    together.concurrency = Concurrency::kAllowed;
    together.read_only = true;
    tools.Add(together, [this](std::string_view, const ToolContext&) {
      trap.At("tool");
      return ToolOutcome{"fine", false};
    });
  }

  Trap trap;
  MemoryInteractionStore memory, fallback;
  TrappedStore store{memory, trap};
  LocalRunStore runs{store};
  ScriptedModel script;
  TrappedModel model{script, trap};
  ScriptedDirectory directory{model};
  FakeTools tools;
  TrappedTools registry{tools, trap};
  TrappedHooks hooks{trap};
  TrappedAudit audit{trap};
  Engine engine{Engine::Parts{.store = store,
                              .runs = runs,
                              .fallback_stores = {&fallback},
                              .models = directory,
                              .tools = registry,
                              .prompt = [this] { return trap.At("prompt"), SystemPrompt(); },
                              .audit = &audit,
                              .hooks = &hooks},
                EngineOptions{}};
};

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("Engine: what is thrown anywhere in a turn fails that run, with an event and a checkpoint", "[engine]") {
  const auto what = GENERATE(Thrown::kRuntimeError, Thrown::kNoException, Thrown::kBadAlloc);
  const std::string place = GENERATE("model", "tools", "audit", "hook 0", "hook 2", "hook 3", "hook 4", "hook 5");
  const int calls = GENERATE(1, 5);
  CAPTURE(static_cast<int>(what), place, calls);
  Fixture f;
  std::vector<ToolCall> made;
  for (int i = 0; i < calls; ++i) made.push_back({std::to_string(i), "together", "{}"});
  f.script.ThenCall(made);
  f.script.ThenAnswer("done");
  f.trap.Arm(place, what);
  const auto started = f.engine.Start(kChat, {.user_message = "hi"});
  REQUIRE(started);
  const std::string events = AwaitEnd(started->log);
  CHECK(Has(events, "event: error\n"));
  CHECK(Has(events, what == Thrown::kBadAlloc ? "\"overloaded\"" : "\"internal\""));
  CHECK(Has(events, "\"status\":\"FAILED\""));
  const auto stored = f.memory.LoadInteraction(kChat, *started->interaction_id);
  REQUIRE(stored);
  CHECK(stored->status == InteractionStatus::kFailed);
  CHECK(stored->final_agent_state.has_value());
  // The chat is free, and another run comes to its end.
  f.trap.Disarm();
  f.script.Forget();
  f.script.ThenAnswer("here");
  const auto next = f.engine.Start(kChat, {.user_message = "again"});
  REQUIRE(next);
  CHECK(Has(AwaitEnd(next->log), "\"status\":\"COMPLETED\""));
}

TEST_CASE("Engine: what a tool throws is its result, and what the last hook throws changes nothing", "[engine]") {
  const auto what = GENERATE(Thrown::kRuntimeError, Thrown::kNoException, Thrown::kBadAlloc);
  const std::string place = GENERATE("tool", "hook 1");
  const int calls = GENERATE(1, 5);
  CAPTURE(static_cast<int>(what), place, calls);
  Fixture f;
  std::vector<ToolCall> made;
  for (int i = 0; i < calls; ++i) made.push_back({std::to_string(i), "together", "{}"});
  f.script.ThenCall(made);
  f.script.ThenAnswer("done");
  f.trap.Arm(place, what);
  const auto started = f.engine.Start(kChat, {.user_message = "hi"});
  REQUIRE(started);
  const std::string events = AwaitEnd(started->log);
  CHECK(Has(events, "\"status\":\"COMPLETED\""));
  CHECK(Has(events, "The tool failed for an internal reason.") == (place == "tool"));
  CHECK(f.memory.LoadInteraction(kChat, *started->interaction_id));
}

TEST_CASE("Engine: a store that throws has failed, and the fallback takes the checkpoint", "[engine]") {
  const auto what = GENERATE(Thrown::kRuntimeError, Thrown::kNoException, Thrown::kBadAlloc);
  CAPTURE(static_cast<int>(what));
  Fixture f;
  f.script.ThenAnswer("done");
  f.trap.Arm("store", what);
  const auto started = f.engine.Start(kChat, {.user_message = "hi"});
  REQUIRE(started);
  const std::string events = AwaitEnd(started->log);
  CHECK(Has(events, "\"save_failed\""));
  CHECK(f.fallback.LoadInteraction(kChat, *started->interaction_id));
  f.trap.Disarm();
  f.script.ThenAnswer("here");
  const auto next = f.engine.Start(*ChatId::Parse("other"), {.user_message = "again"});
  REQUIRE(next);
  CHECK(Has(AwaitEnd(next->log), "\"status\":\"COMPLETED\""));
}

TEST_CASE("Engine: what has waited and cannot begin tells its client, and the chat is free", "[engine]") {
  const auto what = GENERATE(Thrown::kRuntimeError, Thrown::kNoException, Thrown::kBadAlloc);
  CAPTURE(static_cast<int>(what));
  Fixture f;
  f.script.ThenHang("...");
  const auto first = f.engine.Start(kChat, {.user_message = "hi"});
  REQUIRE(first);
  f.script.AwaitHanging();
  const auto second = f.engine.Start(kChat, {.user_message = "then", .if_running = IfRunning::kQueue});
  REQUIRE(second);
  f.trap.Arm("prompt", what);
  REQUIRE(f.engine.Cancel(kChat, *first->interaction_id));
  AwaitEnd(first->log);
  AwaitEnd(second->log);
  f.trap.Disarm();
  f.script.ThenAnswer("here");
  const auto next = f.engine.Start(kChat, {.user_message = "again", .if_running = IfRunning::kQueue});
  REQUIRE(next);
  CHECK(Has(AwaitEnd(next->log), "\"status\":\"COMPLETED\""));
}

}  // namespace reprise::thrown_exceptions_test
