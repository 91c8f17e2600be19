#include "tools/chat/ask_human_tool.h"

#include "support/test.h"

namespace reprise::ask_human_tool_test {
namespace {

struct Asked {
  ToolQuestion question{};
  ToolOutcome outcome{};
};

Asked Ask(std::string_view arguments, ToolAnswer answer) {
  Asked asked;
  ToolContext context;
  context.ask = [&](const ToolQuestion& question, const std::stop_token&) {
    asked.question = question;
    return answer;
  };
  asked.outcome = MakeAskHumanTool()->Run(arguments, context);
  return asked;
}

}  // namespace

TEST_CASE("ask_human: the answer is the result", "[tools]") {
  const Asked asked = Ask(R"({"question":"Which?","options":["a","b"]})", {ToolAnswer::Action::kAccept, "b"});
  CHECK(asked.question.text == "Which?");
  CHECK(asked.question.options == std::vector<std::string>{"a", "b"});
  CHECK(asked.outcome.output == "b");
  CHECK_FALSE(asked.outcome.is_error);
}

TEST_CASE("ask_human: without an answer the model is told", "[tools]") {
  const Asked declined = Ask(R"({"question":"Which?"})", {ToolAnswer::Action::kDecline});
  CHECK(declined.outcome.is_error);
  CHECK(declined.outcome.output == "The user declined to answer.");
  CHECK(Ask(R"({"question":"Which?"})", {ToolAnswer::Action::kCancel}).outcome.output.empty());
  CHECK(MakeAskHumanTool()->Run(R"({"question":"Which?"})", {}).is_error);
}

}  // namespace reprise::ask_human_tool_test
