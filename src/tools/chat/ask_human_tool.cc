#include "tools/chat/ask_human_tool.h"

#include "base/utf8.h"
#include "tools/arguments.h"

namespace reprise {
namespace {

class AskHumanTool final : public BuiltinTool {
 public:
  AskHumanTool()
      : BuiltinTool({.spec = {.name = "ask_human",
                              .description = "Asks the user a question and returns the answer. Use it when something "
                                             "only the user can know or decide is missing.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["question"],
"properties":{"question":{"type":"string","minLength":1,"maxLength":8192,"description":"What to ask."},
"options":{"type":"array","maxItems":20,"description":"Answers to choose from; the user may give another one.",
"items":{"type":"string","minLength":1,"maxLength":512}}}})"},
                     .concurrency = Concurrency::kNever,
                     .approval_reason = "asks a question",
                     .only_asks = true}) {}

  // Nobody can be asked: an agent asks by the functions below.
  ToolOutcome Run(std::string_view, const ToolContext&) override {
    return ToolFailure("There is nobody who could be asked.");
  }

  ToolQuestion QuestionOf(std::string_view arguments) const override {
    const Arguments given(arguments);
    ToolQuestion question{.text = ToValidUtf8(given.String("question").value_or("")), .schema = {}, .url = {}};
    for (const std::string& option : given.Strings("options")) question.options.push_back(ToValidUtf8(option));
    return question;
  }

  ToolOutcome Answered(ToolAnswer answer) const override {
    switch (answer.action) {
      case ToolAnswer::Action::kAccept:
        return {.output = std::move(answer.content)};
      case ToolAnswer::Action::kDecline:
        return ToolFailure("The user declined to answer.");
      case ToolAnswer::Action::kCancel:
        break;
    }
    return {.output = {}, .is_error = true};  // cancelled: the agent says so
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeAskHumanTool() { return std::make_unique<AskHumanTool>(); }

}  // namespace reprise
