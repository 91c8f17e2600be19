#include "client/acp/terminal_tool.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/test.h"

namespace reprise::acp::terminal_tool_test {
namespace {

// Keeps what it is asked.
class AskedClient final : public SessionClient {
 public:
  void Notify(const std::string&, Json) override {}
  int Ask(const std::string& method, Json, Answered answered) override {
    methods.push_back(method);
    answers.push_back(std::move(answered));
    return static_cast<int>(methods.size());
  }
  void Withdraw(int) override {}
  void Answer(const Json&, Json) override {}
  void Refuse(const Json&, Json) override {}

  std::vector<std::string> methods;
  std::vector<Answered> answers;
};

const Json kCreated = {{"result", {{"terminalId", "t1"}}}};
const std::vector<std::string> kEnded = {"terminal/create", "terminal/kill", "terminal/release"};

}  // namespace

TEST_CASE("TerminalTool: a terminal that comes after its call was cancelled is ended", "[acp]") {
  AskedClient client;
  bool is_called = false;
  const auto call = [&](const auto&) { is_called = true; };
  auto tool = std::make_unique<TerminalTool>(client, "chat", "/work");
  tool->Call("c1", {{"command", "make"}}, call, call);
  tool->CancelAll();
  // A session that is closed takes its tool with it.
  const bool is_closed = GENERATE(false, true);
  if (is_closed) tool.reset();
  client.answers.front()(kCreated);
  CHECK(client.methods == kEnded);
  CHECK(!is_called);
}

}  // namespace reprise::acp::terminal_tool_test
