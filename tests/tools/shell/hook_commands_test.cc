#include "tools/shell/hook_commands.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::hook_commands_test {

using namespace std::chrono_literals;

namespace {

struct Fixture {
  Hooks::Verdict Run(std::vector<HookOptions> hooks, HookFacts facts = Facts()) {
    return HookCommands(std::move(hooks), directory.path()).Run(std::move(facts), stop.get_token());
  }
  static HookFacts Facts() {
    return {.event = HookEvent::kBeforeTool,
            .chat_id = "c",
            .interaction_id = "int_001",
            .round_index = 2,
            .call_id = "call_1",
            .tool_name = "run_shell",
            .arguments = R"({"command":"ls"})"};
  }
  static HookOptions Shell(const std::string& script, std::chrono::milliseconds timeout = 20s) {
    return {.command = {"sh", "-c", script}, .timeout = timeout};
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(directory.path() + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  TempDirectory directory;
  std::stop_source stop;
};

}  // namespace

TEST_CASE("HookCommands: a hook reads the facts and allows", "[tools]") {
  Fixture f;
  const auto verdict = f.Run({Fixture::Shell(R"(cat > in; env > environment; echo '{"decision":"allow"}')")});
  CHECK_FALSE(verdict.denied);
  CHECK_FALSE(verdict.arguments);
  CHECK(f.Read("in") == R"({"event":"before_tool","chat_id":"c","interaction_id":"int_001","round_index":2,)"
                        R"("call_id":"call_1","tool_name":"run_shell","arguments":{"command":"ls"}})"
                        "\n");
  CHECK(f.Read("environment").find("PATH=") != std::string::npos);
}

TEST_CASE("HookCommands: changes are passed on, and the first denial ends the chain", "[tools]") {
  Fixture f;
  const auto allow = Fixture::Shell(R"(echo '{"decision":"allow","arguments":{"command":"ls -l"}}')");
  const auto look = Fixture::Shell(R"(cat > seen; echo '{"decision":"allow"}')");
  const auto verdict = f.Run({allow, look});
  CHECK(verdict.arguments == R"({"command":"ls -l"})");
  CHECK(f.Read("seen").find("ls -l") != std::string::npos);

  const auto denied = f.Run(
      {allow, Fixture::Shell(R"(echo '{"decision":"deny","reason":"not today"}')"), Fixture::Shell("touch too_late")});
  CHECK(denied.denied == "not today");
  CHECK_FALSE(denied.arguments);
  CHECK_FALSE(std::ifstream(f.directory.path() + "/too_late"));
}

TEST_CASE("HookCommands: a failing hook denies, except for events that only inform", "[tools]") {
  Fixture f;
  const HookOptions failing =
      GENERATE(Fixture::Shell("exit 3"), Fixture::Shell("kill -9 $$"), Fixture::Shell("sleep 30", 100ms),
               Fixture::Shell("true"), Fixture::Shell("echo nonsense"), Fixture::Shell("echo '[]'"),
               Fixture::Shell("echo '{}'"), Fixture::Shell(R"(echo '{"decision":"maybe"}')"),
               Fixture::Shell(R"(echo '{"decision":"allow","arguments":"x"}')"),
               Fixture::Shell(R"(echo '{"decision":"allow","argument":{}}')"),
               Fixture::Shell(R"(echo '{"decision":"allow"}'; echo '{"decision":"allow"}')"),
               Fixture::Shell(R"(printf '{"decision":"allow\377"}')"), Fixture::Shell("yes", 300ms),
               Fixture::Shell(R"(head -c 9000000 /dev/zero; echo '{"decision":"allow"}')"),
               Fixture::Shell("trap '' TERM; echo '{\"decision\":\"allow\"}'; while :; do sleep 1; done", 300ms),
               HookOptions{.command = {"./no_such_program"}});
  const auto before = f.Run({failing});
  REQUIRE(before.denied);
  CHECK(before.denied->starts_with("the hook failed: "));
  HookFacts facts = Fixture::Facts();
  HookOptions after = failing;
  facts.event = after.event = HookEvent::kAfterTool;
  const bool is_silent = failing.command.back() == "true";
  CHECK(f.Run({after}, facts).denied.has_value() == !is_silent);
  HookOptions look = Fixture::Shell("cat > in");
  facts.event = after.event = look.event = HookEvent::kAfterInteraction;
  CHECK_FALSE(f.Run({after, look}, facts).denied);
  CHECK(f.Read("in").find("\"after_interaction\"") != std::string::npos);
}

TEST_CASE("HookCommands: each hook gets the previous one's result, and notes for the model add up", "[tools]") {
  Fixture f;
  HookFacts facts = Fixture::Facts();
  HookOptions change = Fixture::Shell(R"(echo '{"decision":"allow","tool_output":"less"}')");
  HookOptions look = Fixture::Shell("cat > seen");
  facts.event = change.event = look.event = HookEvent::kAfterTool;
  facts.output = "much";
  const auto verdict = f.Run({change, look}, facts);
  CHECK_FALSE(verdict.denied);
  CHECK(verdict.output == "less");
  CHECK(f.Read("seen").find(R"("tool_output":"less")") != std::string::npos);

  HookOptions one = Fixture::Shell(R"(echo '{"decision":"allow","context":"one"}')");
  HookOptions two = Fixture::Shell(R"(echo '{"decision":"allow","context":"two"}')");
  facts.event = one.event = two.event = HookEvent::kBeforeModel;
  CHECK(f.Run({one, two}, facts).context == "one\n\ntwo");
}

TEST_CASE("HookCommands: each event takes its own members only", "[tools]") {
  Fixture f;
  HookFacts facts = Fixture::Facts();
  const auto [event, member] = GENERATE(table<HookEvent, std::string>({
      {HookEvent::kBeforeTool, R"("tool_output":"x")"},
      {HookEvent::kBeforeTool, R"("context":"x")"},
      {HookEvent::kAfterTool, R"("arguments":{})"},
      {HookEvent::kAfterTool, R"("tool_output":1)"},
      {HookEvent::kBeforeModel, R"("tool_output":"x")"},
      {HookEvent::kBeforeModel, R"("context":null)"},
      {HookEvent::kAfterModel, R"("context":"x")"},
      {HookEvent::kBeforeInteraction, R"("context":"x")"},
  }));
  HookOptions hook = Fixture::Shell("echo '{\"decision\":\"allow\"," + member + "}'");
  facts.event = hook.event = event;
  CHECK(f.Run({hook}, facts).denied);
}

TEST_CASE("HookCommands: runs only hooks for the tool and the event", "[tools]") {
  Fixture f;
  HookOptions other = Fixture::Shell("exit 1");
  other.tool = "write_*";
  HookOptions model = Fixture::Shell("exit 1");
  model.event = HookEvent::kBeforeModel;
  CHECK_FALSE(f.Run({other, model}).denied);
  for (const char* pattern : {"run_*", "run_shel?", "[r]un_shell", "run\\_shell"}) {
    other.tool = pattern;
    INFO(pattern);
    CHECK(f.Run({other, model}).denied);
  }
  const HookCommands hooks({model}, ".");
  CHECK(hooks.Wants(HookEvent::kBeforeModel));
  CHECK_FALSE(hooks.Wants(HookEvent::kBeforeTool));
}

TEST_CASE("HookCommands: a stop ends a hook at once and denies", "[tools]") {
  Fixture f;
  std::jthread stopping([&] {
    while (!std::ifstream(f.directory.path() + "/started")) std::this_thread::yield();
    f.stop.request_stop();
  });
  const auto began = std::chrono::steady_clock::now();
  CHECK(f.Run({Fixture::Shell("touch started; sleep 30")}).denied);
  CHECK(std::chrono::steady_clock::now() - began < 10s);
}

TEST_CASE("HookCommands: runs nothing after a stop", "[tools]") {
  Fixture f;
  f.stop.request_stop();
  CHECK(f.Run({Fixture::Shell("touch started")}).denied);
  CHECK_FALSE(std::ifstream(f.directory.path() + "/started"));
}

TEST_CASE("HookCommands: many threads ask at once, and each gets its own answer", "[tools]") {
  Fixture f;
  std::vector<std::optional<std::string>> denied(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < denied.size(); ++i) {
      threads.emplace_back([&f, &denied, i] {
        HookFacts facts = Fixture::Facts();
        facts.call_id = "call_" + std::to_string(i);
        const std::string script = R"(id=$(sed 's/.*"call_id":"//; s/".*//'); )"
                                   R"(printf '{"decision":"deny","reason":"%s"}' "$id")";
        denied[i] = f.Run({Fixture::Shell(script)}, facts).denied;
      });
    }
  }
  for (std::size_t i = 0; i < denied.size(); ++i) CHECK(denied[i] == "call_" + std::to_string(i));
}

TEST_CASE("HookCommands: large input is harmless, read or unread", "[tools]") {
  Fixture f;
  HookFacts facts = Fixture::Facts();
  facts.arguments = R"({"content":")" + std::string(3'000'000, 'x') + R"("})";
  CHECK_FALSE(f.Run({Fixture::Shell(R"(echo '{"decision":"allow"}')")}, facts).denied);
  CHECK_FALSE(f.Run({Fixture::Shell(R"(cat > in; echo noise >&2; echo '{"decision":"allow"}')")}, facts).denied);
  CHECK(f.Read("in").size() > 3'000'000);
}

TEST_CASE("HookCommands: PATH does not find programs in the workspace", "[tools]") {
  Fixture f;
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", (f.directory.path() + ":bin::" + f.directory.path() + "/bin/../x:/usr/bin:/bin").c_str(), 1);
  const auto verdict = f.Run({Fixture::Shell(R"(echo "$PATH" > path; echo '{"decision":"allow"}')")});
  ::setenv("PATH", before.c_str(), 1);
  CHECK_FALSE(verdict.denied);
  CHECK(f.Read("path") == "/usr/bin:/bin\n");
}

}  // namespace reprise::hook_commands_test
