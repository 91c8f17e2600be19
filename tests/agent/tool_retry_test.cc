#include <algorithm>
#include <chrono>
#include <thread>

#include "agent/retry_policy.h"
#include "support/fake_tools.h"
#include "support/test.h"

namespace reprise::tool_retry_test {
namespace {

struct Failing {
  explicit Failing(int failures, bool read_only = true, bool idempotent = true) {
    ToolTraits traits;
    traits.spec = {"flaky", "a fake", R"({"type":"object"})"};
    traits.read_only = read_only;
    traits.idempotent = idempotent;
    tools.Add(traits, [this, failures](std::string_view, const ToolContext&) {
      if (++runs > failures) return ToolOutcome{.output = "fine"};
      return ToolOutcome{.output = "no connection", .is_error = true, .transient = true};
    });
  }
  ToolOutcome Run(const ToolContext& context) { return RunWithRetries(*tools.Current()->Find("flaky"), "{}", context); }
  FakeTools tools;
  int runs = 0;
};

}  // namespace

TEST_CASE("RunWithRetries: a temporary failure is retried and reported", "[agent]") {
  Failing failing(1);
  std::string live;
  ToolContext context;
  context.on_output = [&](std::string_view text) { live += text; };
  const ToolOutcome outcome = failing.Run(context);
  CHECK_FALSE(outcome.is_error);
  CHECK(outcome.output == "fine\n(tried 2 times)");
  CHECK(live == "(no connection; tried again in 250 ms)\n");
}

TEST_CASE("RunWithRetries: gives up after three times", "[agent]") {
  Failing failing(10);
  const ToolOutcome outcome = failing.Run({});
  CHECK(outcome.is_error);
  CHECK(failing.runs == 3);
  CHECK(outcome.output == "no connection\n(tried 3 times)");
}

TEST_CASE("RunWithRetries: a tool that writes or is not idempotent runs once", "[agent]") {
  Failing writes(10, /*read_only=*/false), once(10, /*read_only=*/true, /*idempotent=*/false);
  CHECK(writes.Run({}).output == "no connection");
  CHECK(once.Run({}).output == "no connection");
  CHECK(writes.runs + once.runs == 2);
}

TEST_CASE("RunWithRetries: a stop ends the pause", "[agent]") {
  // A busy machine can delay one of them, but not all.
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    Failing failing(10);
    std::stop_source stop;
    ToolContext context;
    context.stop = stop.get_token();
    context.on_output = [&](std::string_view) { stop.request_stop(); };
    const auto began = std::chrono::steady_clock::now();
    CHECK(failing.Run(context).is_error);
    CHECK(failing.runs == 1);
    fastest = std::min(fastest, std::chrono::steady_clock::now() - began);
  }
  CHECK(fastest < std::chrono::milliseconds(200));
}

}  // namespace reprise::tool_retry_test
