#include "tools/chat/research_tool.h"

#include "base/utf8.h"
#include "tools/arguments.h"

namespace reprise {
namespace {

class ResearchTool final : public BuiltinTool {
 public:
  ResearchTool()
      : BuiltinTool({.spec = {.name = "research",
                              .description = "Has a sub-agent look into a question and returns its answer. It knows "
                                             "nothing of this conversation, so say all that it needs; it has only the "
                                             "tools that read. Use it for what takes many steps to find out.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["question"],
"properties":{"question":{"type":"string","minLength":1,"maxLength":32768,"description":"What to find out."}}})"},
                     .approval_reason = "has a sub-agent look into a question",
                     .delegates = true}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (!context.research) return ToolFailure("There are no sub-agents here.");
    return context.research(ToValidUtf8(Arguments(arguments).String("question").value_or("")));
  }
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeResearchTool() { return std::make_unique<ResearchTool>(); }

}  // namespace reprise
