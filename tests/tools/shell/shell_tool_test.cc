#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "support/test.h"
#include "tools/shell/command_runner.h"
#include "tools/shell/sandbox.h"
#include "tools/tool_fixture.h"

namespace reprise::shell_tool_test {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// A process in its own session that shares only the pipe with the command.
constexpr const char* kDaemon =
    "setsid sh -c 'exec 3>life; echo held >&3; exec sleep 1000' </dev/null >/dev/null 2>&1 & ";

// Each test runs without the sandbox and, if the machine has one, with it.
class ShellFixture : public ToolFixture {
 public:
  ShellFixture() { Use(GENERATE(SandboxUse::kWhenAvailable, SandboxUse::kNever)); }

  void Use(SandboxUse use) {
    auto options = Options();
    options.shell.sandbox = use;
    Rebuild(std::move(options));
    sandboxed_ = !Has(registry->Find("run_shell")->traits().approval_reason, "WITHOUT");
  }
  ToolOutcome Shell(const std::string& command, const ToolContext& context = {}) {
    return Run("run_shell", Args({{"command", command}}), context);
  }
  // The result without the line about the missing sandbox.
  std::string Output(const std::string& command) {
    const std::string output = Shell(command).output;
    const std::size_t note = output.find("(no sandbox");
    return note == std::string::npos ? output : output.substr(0, note);
  }
  bool sandboxed() const { return sandboxed_; }

 private:
  bool sandboxed_ = false;
};

}  // namespace

TEST_CASE_METHOD(ShellFixture, "run_shell: returns what the command prints, in order", "[tools][shell]") {
  const auto outcome = Shell("echo one; echo two >&2; echo three");
  CHECK_FALSE(outcome.is_error);
  CHECK(Has(outcome.output, "one\ntwo\nthree\n"));
  CHECK(Has(outcome.output, "no sandbox on this machine") == !sandboxed());
  CHECK(Has(Shell("true").output, "(no output)"));
}

TEST_CASE_METHOD(ToolFixture, "run_shell: leaves the sandbox as the context says, never as the call says",
                 "[tools][shell]") {
  WriteOutside("seen.txt", "seen\n");
  const std::string command = "cat " + outside() + "/seen.txt";
  const std::string plain = Args({{"command", command}});
  const std::string asks = Args({{"command", command}, {"outside_sandbox", "it is hidden"}});
  CHECK(Has(Run("run_shell", asks).output, "outside_sandbox"));  // no such argument unless it is allowed
  CHECK(registry->Find("run_shell")->OutsideOf(plain) == OutsideSandbox::kNo);
  auto options = Options();
  options.shell.allow_unsandboxed = true;
  Rebuild(std::move(options));
  const Tool& shell = *registry->Find("run_shell");
  if (Has(shell.traits().approval_reason, "WITHOUT")) {
    CHECK(shell.OutsideOf(asks) == OutsideSandbox::kNo);
    return;
  }
  CHECK(shell.OutsideOf(plain) == OutsideSandbox::kOffered);
  CHECK(shell.OutsideOf(asks) == OutsideSandbox::kAsked);
  CHECK_FALSE(shell.ReasonToAsk(plain));
  CHECK(shell.ReasonToAsk(asks));
  CHECK_FALSE(Has(Run("run_shell", plain).output, "seen\n"));
  CHECK(Has(Run("run_shell", asks).output, "nobody has agreed"));
  ToolContext there;
  there.outside_sandbox = true;
  for (const std::string& arguments : {plain, asks}) {
    const ToolOutcome outcome = Run("run_shell", arguments, there);
    CHECK(Has(outcome.output, "seen\n"));
    CHECK(Has(outcome.output, "outside the sandbox"));
  }
}

TEST_CASE_METHOD(ShellFixture, "run_shell: a failure has a message", "[tools][shell]") {
  const auto failed = Shell("echo x; exit 3");
  CHECK(failed.is_error);
  CHECK(Has(failed.output, "x\n(exit status 3)"));
  const auto killed = Shell("kill -9 $$");
  CHECK(killed.is_error);
  CHECK((Has(killed.output, "(ended by signal 9)") || Has(killed.output, "(exit status 137)")));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: works in the workspace", "[tools][shell]") {
  CHECK(Has(Shell("pwd").output, fs::canonical(workspace()).string() + "\n"));
  CHECK_FALSE(Shell("echo content > made.txt").is_error);
  CHECK(Read("made.txt") == "content\n");
}

TEST_CASE_METHOD(ShellFixture, "run_shell: sees nothing of the server's environment", "[tools][shell]") {
  // The canary must be there when the command starts.
  ::setenv("REPRISE_TEST_CANARY_KEY", "canary-value", 1);
  Use(sandboxed() ? SandboxUse::kWhenAvailable : SandboxUse::kNever);
  const std::string output = Output("env; tr '\\0' '\\n' < /proc/self/environ");
  ::unsetenv("REPRISE_TEST_CANARY_KEY");
  CHECK_FALSE(Has(output, "canary"));
  const std::string names = Output("env | sed 's/=.*//' | sort | tr '\\n' ' '");
  for (std::size_t at = 0, end; (end = names.find(' ', at)) != std::string::npos; at = end + 1) {
    const std::string name = names.substr(at, end - at);
    INFO(name);
    // The shell itself sets PWD, OLDPWD, _ and SHLVL.
    CHECK(Has(" HOME LOGNAME PATH SHELL TERM USER LANG TZ PWD OLDPWD _ SHLVL ", " " + name + " "));
  }
}

TEST_CASE_METHOD(ShellFixture, "run_shell: passes on the configured environment", "[tools][shell]") {
  auto options = Options();
  options.shell.extra_environment = {{"GREETING", "hello"}};
  options.shell.sandbox = sandboxed() ? SandboxUse::kWhenAvailable : SandboxUse::kNever;
  Rebuild(std::move(options));
  CHECK(Has(Shell("echo $GREETING").output, "hello\n"));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: inherits descriptors 0, 1 and 2 only", "[tools][shell]") {
  const int leaked = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as a careless library would
  const int far = ::fcntl(leaked, F_DUPFD, 300);
  REQUIRE(far >= 300);
  const std::string output =
      Output("i=0; while [ $i -lt 400 ]; do [ -e /proc/$$/fd/$i ] && printf '%s ' $i; i=$((i+1)); done; echo");
  ::close(leaked);
  ::close(far);
  CHECK(output == "0 1 2 \n");
}

TEST_CASE_METHOD(ShellFixture, "run_shell: signals are as a shell expects them", "[tools][shell]") {
  CHECK(Has(Shell("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t'").output,
            "SigBlk:0000000000000000SigIgn:0000000000000000"));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: cancelling ends all its processes, daemons too", "[tools][shell]") {
  const LifePipe life(Inside("life"));
  std::stop_source source;
  std::chrono::steady_clock::time_point asked;
  std::thread canceller([&] {
    life.WaitForWriter();
    asked = std::chrono::steady_clock::now();
    source.request_stop();
  });
  const auto outcome = Shell(kDaemon + std::string("sleep 1000"), StoppedBy(source));
  const auto returned = std::chrono::steady_clock::now();
  canceller.join();
  CHECK(outcome.is_error);
  CHECK(Has(outcome.output, "(cancelled"));
  CHECK(life.AfterTheEnd() == "held\n");
  CHECK(returned - asked < std::chrono::seconds(2));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: the timeout ends all its processes, daemons too", "[tools][shell]") {
  const LifePipe life(Inside("life"));
  const auto outcome =
      Shell(kDaemon + std::string("trap '' TERM; while :; do sleep 1000; done"), Within(std::chrono::seconds(2)));
  CHECK(outcome.is_error);
  CHECK(Has(outcome.output, "(timed out after 2 s"));
  CHECK(life.AfterTheEnd() == "held\n");
}

TEST_CASE_METHOD(ShellFixture, "run_shell: timeout_s counts, up to the context's", "[tools][shell]") {
  CHECK(Has(Run("run_shell", R"({"command":"sleep 1000","timeout_s":1})").output, "(timed out after 1 s"));
  CHECK(Has(
      Run("run_shell", R"({"command":"sleep 1000","timeout_s":500})", Within(std::chrono::milliseconds(300))).output,
      "(timed out after 300 ms"));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: a daemon does not outlive a command that ends well", "[tools][shell]") {
  const LifePipe life(Inside("life"));
  ::mkfifo(Inside("go").c_str(), 0600);
  // The command ends only after the daemon holds the pipe.
  const auto outcome =
      Shell("setsid sh -c 'exec 3>life; echo held >&3; echo > go; exec sleep 1000' & read x < go; echo done; echo");
  CHECK_FALSE(outcome.is_error);
  CHECK(Has(outcome.output, "done\n"));
  CHECK(life.AfterTheEnd() == "held\n");
}

TEST_CASE_METHOD(ShellFixture, "run_shell: a cancel before the start leaves no process", "[tools][shell]") {
  std::stop_source source;
  source.request_stop();
  const auto outcome = Shell("sleep 1000", StoppedBy(source));
  CHECK(outcome.is_error);
  CHECK(Has(outcome.output, "(cancelled"));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: output is streamed while the command runs", "[tools][shell]") {
  ::mkfifo(Inside("go").c_str(), 0600);
  std::string seen;
  // The command waits for the test, which waits for the output, so without streaming this would time out.
  std::thread starter;
  ToolContext context = Within(std::chrono::seconds(20));
  context.on_output = [&](std::string_view bytes) {
    seen += bytes;
    if (seen == "first\n") {
      starter = std::thread([&] { std::ofstream(Inside("go")) << "go\n"; });
    }
  };
  const auto outcome = Shell("echo first; read x < go; echo $x", context);
  if (starter.joinable()) starter.join();
  CHECK_FALSE(outcome.is_error);
  CHECK(seen == "first\ngo\n");
}

TEST_CASE_METHOD(ShellFixture, "run_shell: a flood of output is cut in the middle", "[tools][shell]") {
  std::size_t streamed = 0;
  ToolContext context;
  context.on_output = [&](std::string_view bytes) { streamed += bytes.size(); };
  const auto outcome = Shell("echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo end", context);
  CHECK(outcome.output.substr(0, 6) == "begin\n");
  CHECK(Has(outcome.output, " bytes cut ...)"));
  CHECK(Has(outcome.output, "xend\n"));
  CHECK(outcome.output.size() < 70'000);
  CHECK(streamed <= 64 * 1024);
}

TEST_CASE_METHOD(ShellFixture, "run_shell: output is valid UTF-8", "[tools][shell]") {
  const auto outcome = Shell("printf 'a\\377\\303'");
  CHECK(Has(outcome.output, "a\xef\xbf\xbd\xef\xbf\xbd"));
  CHECK(IsUtf8(outcome.output));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: a command with NUL is refused, not shortened", "[tools][shell]") {
  const auto outcome = Run("run_shell", R"({"command":"touch made\u0000 # harmless"})");
  CHECK(outcome.is_error);
  CHECK_FALSE(fs::exists(Inside("made")));
}

TEST_CASE_METHOD(ShellFixture, "run_shell: many at once each get their own output", "[tools][shell]") {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string text = "run " + std::to_string(i) + "\n";
      if (Has(Shell("echo 'run " + std::to_string(i) + "'").output, text)) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
}

TEST_CASE_METHOD(ToolFixture, "Sandbox: only the workspace can be written, the server's files are hidden",
                 "[tools][shell]") {
  fs::create_directory(Inside("chats"));
  Write("chats/file", "sealed secret");
  Write("keys.jwks", "key secret");
  auto options = Options();
  options.protected_paths = {Inside("chats"), Inside("keys.jwks")};
  Rebuild(std::move(options));
  const std::string reason = registry->Find("run_shell")->traits().approval_reason;
  if (Has(reason, "WITHOUT")) {
    WARN("no sandbox here: " << reason);
    return;
  }
  const auto outcome = Run("run_shell", Args({{"command",
                                               "cat chats/file keys.jwks; touch chats/new; echo x > keys.jwks; "
                                               "echo x > " +
                                                   outside() + "/new; touch /usr/new; cat " + outside() +
                                                   "/secret.txt; touch inside /tmp/own; ls -A ~"}}));
  CHECK_FALSE(Has(outcome.output, "sealed secret"));
  CHECK_FALSE(Has(outcome.output, "key secret"));
  CHECK(fs::exists(Inside("inside")));
  CHECK(Read("chats/file") == "sealed secret");
  CHECK(Read("keys.jwks") == "key secret");
  CHECK_FALSE(fs::exists(Inside("chats/new")));
  CHECK_FALSE(fs::exists(outside() + "/new"));
  CHECK_FALSE(fs::exists("/usr/new"));
  CHECK_FALSE(fs::exists("/tmp/own"));
}

TEST_CASE_METHOD(ToolFixture, "Sandbox: a hidden file cannot be replaced through a directory above it",
                 "[tools][shell]") {
  fs::create_directories(Inside("a/b/c"));
  fs::create_directories(Inside("a/data/chat"));
  Write("a/b/c/check.sh", "mine");
  Write("a/b/other.sh", "mine");
  Write("a/data/chat/file", "mine");
  Write("a/free", "x");
  auto options = Options();
  options.protected_paths = {Inside("a/data"), Inside("a/b/other.sh"), Inside("a/b/c/check.sh")};
  Rebuild(std::move(options));
  if (Has(registry->Find("run_shell")->traits().approval_reason, "WITHOUT")) return;
  const std::string attack = GENERATE("mv a/b/c a/b/old", "mv a/b a/old", "mv a old", "mv a/data a/old", "rm -rf a",
                                      "mkdir -p x/b/c && mv -T x a", "mkdir x && mv -T --exchange x a",
                                      "ln -s /tmp x && mv -T x a/b/c/check.sh", "cp a/b/c/check.sh a/b/copy");
  INFO(attack);
  const auto outcome =
      Run("run_shell", Args({{"command", attack + "; mkdir -p a/b/c a/data/chat; echo theirs > "
                                                  "a/b/c/check.sh; echo theirs > a/b/other.sh; echo theirs "
                                                  "> a/data/chat/file; cat a/b/copy; touch a/b/c/new"}}));
  INFO(outcome.output);
  CHECK(Read("a/b/c/check.sh") == "mine");
  CHECK(Read("a/b/other.sh") == "mine");
  CHECK(Read("a/data/chat/file") == "mine");
  CHECK_FALSE(Has(outcome.output, "mine"));
  CHECK(fs::exists(Inside("a/b/c/new")));  // the directories themselves are usable
  CHECK_FALSE(fs::exists(Inside("old")));
}

TEST_CASE_METHOD(ToolFixture, "Sandbox: there is no network and no other process", "[tools][shell]") {
  if (Has(registry->Find("run_shell")->traits().approval_reason, "WITHOUT")) return;
  const auto interfaces = Run("run_shell", Args({{"command", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"}}));
  CHECK(interfaces.output == "lo\n");
  const auto self =
      Run("run_shell", Args({{"command", "test -e /proc/" + std::to_string(::getpid()) +
                                             "/environ && "
                                             "tr '\\0' '\\n' < /proc/" +
                                             std::to_string(::getpid()) + "/comm; ls -d /proc/[0-9]* | wc -l"}}));
  CHECK_FALSE(Has(self.output, "test_tools"));
}

TEST_CASE_METHOD(ToolFixture, "Sandbox: hiding the workspace or a parent of it opens nothing", "[tools][shell]") {
  const Sandbox sandbox({.workspace = workspace(), .hidden_paths = {workspace(), fs::path(workspace()).parent_path()}});
  const auto words = sandbox.Confined({.argv = {"true"}, .environment = {}, .directory = "/"}).argv;
  CHECK(std::count(words.begin(), words.end(), "--bind") == 1);  // the workspace's own
}

TEST_CASE("Sandbox: says why it is not available", "[tools][shell]") {
  const Sandbox sandbox({.use = SandboxUse::kNever, .workspace = "/", .hidden_paths = {}});
  CHECK_FALSE(sandbox.available());
  CHECK(sandbox.state().missing == "switched off by the configuration");
  CHECK_FALSE(sandbox.state().must_ask());
}

TEST_CASE("RunCommand: a missing program is an error", "[tools][shell]") {
  const auto result =
      RunCommand({.argv = {"/nonexistent/program"}, .environment = {}, .directory = "/"}, {}, std::stop_token());
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == ErrorCode::kUnavailable);
  CHECK(Has(result.error().message, "No such file"));
}

TEST_CASE_METHOD(ToolFixture, "RunCommand: a command that kills or stops its supervisor still ends", "[tools][shell]") {
  const LifePipe life(Inside("life"));
  const std::string daemon = "s=$PPID; setsid sh -c \"exec 3>life; echo held >&3; ";
  const std::string script =
      GENERATE_COPY(daemon + "kill -9 $s; exec sleep 1000\" & sleep 1000",
                    daemon + "kill -9 $s; setsid sleep 1000 & exec sleep 1000\" & exec sleep 1000",
                    daemon + "kill -STOP $s; exec sleep 1000\" & sleep 1000",
                    daemon + "while :; do kill -STOP $s; done\" & sleep 1000");
  INFO(script);
  const auto result = RunCommand(
      {.argv = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .directory = workspace()},
      {.timeout = std::chrono::milliseconds(1500), .grace = std::chrono::milliseconds(100)}, std::stop_token());
  REQUIRE(result.has_value());
  CHECK(result->end == (Has(script, "-STOP") ? CommandResult::End::kTimedOut : CommandResult::End::kSignalled));
  CHECK_FALSE(result->left_behind);
  CHECK(life.AfterTheEnd() == "held\n");
  for (const auto& thread : fs::directory_iterator("/proc/self/task")) {
    CHECK(ToolFixture::ReadFrom(thread.path().string() + "/children").empty());
  }
}

TEST_CASE("RunCommand: leaves neither descriptors nor zombies", "[tools][shell]") {
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const Command command{.argv = {"/bin/true"}, .environment = {}, .directory = "/"};
  REQUIRE(RunCommand(command, {}, std::stop_token()).has_value());
  const auto before = descriptors();
  for (int i = 0; i < 20; ++i) REQUIRE(RunCommand(command, {}, std::stop_token()).has_value());
  CHECK(descriptors() == before);
  CHECK(ToolFixture::ReadFrom("/proc/thread-self/children").empty());
}

}  // namespace reprise::shell_tool_test
