#include "support/test.h"
#include "tools/builtin_tools.h"

namespace reprise::ask_human_tool_test {
TEST_CASE("ask_human: the answer is the result", "[tools]") {
  const auto tool = MakeAskHumanTool();
  REQUIRE(tool->traits().only_asks);
  const ToolQuestion question = tool->QuestionOf(R"({"question":"Which?","options":["a","b"]})");
  CHECK(question.text == "Which?");
  CHECK(question.options == std::vector<std::string>{"a", "b"});
  const ToolOutcome outcome = tool->Answered({ToolAnswer::Action::kAccept, "b"});
  CHECK(outcome.output == "b");
  CHECK_FALSE(outcome.is_error);
}

TEST_CASE("ask_human: without an answer the model is told", "[tools]") {
  const auto tool = MakeAskHumanTool();
  const ToolOutcome declined = tool->Answered({ToolAnswer::Action::kDecline});
  CHECK(declined.is_error);
  CHECK(declined.output == "The user declined to answer.");
  CHECK(tool->Answered({ToolAnswer::Action::kCancel}).output.empty());
  CHECK(tool->Run(R"({"question":"Which?"})", {}).is_error);
}

}  // namespace reprise::ask_human_tool_test
