#include <cstdlib>

#include "support/test.h"
#include "tools/tool_fixture.h"

namespace reprise::code_tool_test {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Each test runs without the sandbox and, if the machine has one, with it.
class CodeFixture : public ToolFixture {
 public:
  CodeFixture() : use_(GENERATE(SandboxUse::kWhenAvailable, SandboxUse::kNever)) { Remake(); }

  void Remake() {
    auto options = Options();
    options.shell.sandbox = use_;
    Rebuild(std::move(options));
  }
  ToolOutcome Code(const std::string& language, const std::string& code, const ToolContext& context = {}) {
    return Run("run_code", Args({{"language", language}, {"code", code}}), context);
  }
  // The result without the line about the missing sandbox.
  static std::string Text(const ToolOutcome& outcome) {
    return outcome.output.substr(0, outcome.output.find("(no sandbox"));
  }

 private:
  const SandboxUse use_;
};

// Everything that a shell or a program that quotes could trip over.
const std::string kTricky = "'\"`$(echo no)\\ \t; & | > < * ~ # % \xc3\xa4";

}  // namespace

TEST_CASE_METHOD(CodeFixture, "run_code: python runs as it was written", "[tools][code]") {
  const auto outcome =
      Code("python", "import sys\ns = r'''" + kTricky + "'''\nprint(s)\nprint('err', file=sys.stderr)\n");
  CHECK_FALSE(outcome.is_error);
  CHECK(Text(outcome) == kTricky + "\nerr\n");
}

TEST_CASE_METHOD(CodeFixture, "run_code: shell runs as it was written", "[tools][code]") {
  const auto outcome = Code("shell", "cat <<'END'\n" + kTricky + "\nEND\necho \"$#\"\n");
  CHECK_FALSE(outcome.is_error);
  CHECK(Text(outcome) == kTricky + "\n0\n");
}

TEST_CASE_METHOD(CodeFixture, "run_code: the program cannot read itself as input", "[tools][code]") {
  CHECK(Text(Code("shell", "cat; echo end")) == "end\n");
  CHECK(Text(Code("python", "import sys\nprint(repr(sys.stdin.read()))")) == "''\n");
}

TEST_CASE_METHOD(CodeFixture, "run_code: a large program, and one with NUL", "[tools][code]") {
  const std::string filler(150'000, '#');  // beyond what one argument of a command may have
  CHECK(Text(Code("python", filler + "\nprint('reached')")) == "reached\n");
  CHECK(Text(Code("shell", filler + "\necho reached")) == "reached\n");
  for (const char* language : {"python", "shell"}) {
    const auto outcome = Code(language, std::string("echo = print('ran')\0more", 23));
    CHECK(outcome.output == "the program contains a NUL character");
    CHECK(outcome.is_error);
  }
}

TEST_CASE_METHOD(CodeFixture, "run_code: failures have messages", "[tools][code]") {
  const auto raised = Code("python", "print('before')\nraise ValueError('the reason')\n");
  CHECK(raised.is_error);
  CHECK(Has(raised.output, "before\n"));
  CHECK(Has(raised.output, "line 2"));
  CHECK(Has(raised.output, "ValueError: the reason"));
  CHECK(Has(raised.output, "(exit status 1)"));
  CHECK(Has(Code("python", "import sys; sys.exit(7)").output, "(exit status 7)"));
  CHECK(Has(Code("shell", "exit 3").output, "(exit status 3)"));
  CHECK(Has(Code("python", "if").output, "SyntaxError"));
  CHECK(Has(Code("python", "pass").output, "(no output)"));
}

TEST_CASE_METHOD(CodeFixture, "run_code: refuses arguments outside the contract", "[tools][code]") {
  CHECK(Code("ruby", "puts 1").is_error);
  CHECK(Code("python", "").is_error);
  CHECK(Run("run_code", R"({"language":"python"})").is_error);
  CHECK(Run("run_code", R"({"language":"python","code":"1","timeout_s":5})").is_error);
  CHECK(Run("run_code", R"({"language":["python"],"code":"1"})").is_error);
}

TEST_CASE_METHOD(CodeFixture, "run_code: works in the workspace and finds its modules", "[tools][code]") {
  Write("helper.py", "VALUE = 42\n");
  const auto outcome = Code("python",
                            "import helper, os\n"
                            "open('made.txt', 'w').write(str(helper.VALUE))\n"
                            "print(sorted(os.listdir('.')))");
  CHECK(Text(outcome) == "['helper.py', 'made.txt']\n");
  CHECK(Read("made.txt") == "42");
}

TEST_CASE_METHOD(CodeFixture, "run_code: sees nothing of the server's environment and descriptors", "[tools][code]") {
  ::setenv("REPRISE_TEST_CANARY_KEY", "canary-value", 1);
  Remake();
  const std::string output = Text(Code("python",
                                       "import os\nprint(sorted(os.environ))\nprint(os.readlink('/proc/self/fd/0'))\n"
                                       "print(len(os.listdir('/proc/self/fd')))"));
  ::unsetenv("REPRISE_TEST_CANARY_KEY");
  CHECK_FALSE(Has(output, "CANARY"));
  CHECK(Has(output, "/dev/null\n"));
  // 0, 1, 2, the program as it came and as it is read, and the directory itself.
  CHECK((Has(output, "\n5\n") || Has(output, "\n6\n")));
}

TEST_CASE_METHOD(CodeFixture, "run_code: timeout and cancellation end it and all its processes", "[tools][code]") {
  const std::string code =
      "import subprocess, time\n"
      "subprocess.Popen(['setsid', 'sh', '-c', 'exec 3>life; echo held >&3; exec sleep 1000'])\n"
      "print('begun')\n"
      "time.sleep(1000)\n";
  const LifePipe life(Inside("life"));
  SECTION("time") {
    const auto outcome = Code("python", code, Within(std::chrono::seconds(3)));
    CHECK(outcome.is_error);
    CHECK(Has(outcome.output, "begun\n"));
    CHECK(Has(outcome.output, "timed out after 3 s"));
  }
  SECTION("cancellation") {
    std::stop_source source;
    ToolContext context = StoppedBy(source);
    context.on_output = [&](std::string_view) {
      CHECK(life.WaitForWriter());
      source.request_stop();
    };
    CHECK(Has(Code("python", code, context).output, "(cancelled, with all it had started)"));
  }
  CHECK(life.AfterTheEnd() == "held\n");
}

TEST_CASE_METHOD(CodeFixture, "run_code: shows output while it runs, within limits", "[tools][code]") {
  std::string live;
  std::stop_source source;
  ToolContext context = StoppedBy(source);
  context.on_output = [&](std::string_view bytes) {
    live += bytes;
    if (Has(live, "first\n")) source.request_stop();  // long before it ends
  };
  Code("python", "import time\nprint('first')\ntime.sleep(1000)", context);
  CHECK(live == "first\n");
  CHECK(Code("python", "print('x' * 1_000_000)").output.size() < 100'000);
}

TEST_CASE_METHOD(ToolFixture, "run_code: says so when there is no python", "[tools][code]") {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", workspace().c_str(), 1);
  Rebuild();
  ::setenv("PATH", path.c_str(), 1);
  const auto outcome = Run("run_code", Args({{"language", "python"}, {"code", "print(1)"}}));
  CHECK(outcome.is_error);
  CHECK(Has(outcome.output, "python3 is not installed"));
  CHECK_FALSE(Run("run_code", Args({{"language", "shell"}, {"code", "echo 1"}})).is_error);
}

TEST_CASE_METHOD(ToolFixture, "run_code: asks, is of high risk and may run beside others", "[tools][code]") {
  const Tool* tool = registry->Find("run_code");
  REQUIRE(tool != nullptr);
  CHECK(registry->RequiresApproval(*tool));
  CHECK(tool->traits().risk == Risk::kHigh);
  CHECK(tool->traits().concurrency == Concurrency::kAllowed);
  CHECK_FALSE(tool->traits().idempotent);
}

}  // namespace reprise::code_tool_test
