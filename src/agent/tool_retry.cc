#include "agent/tool_retry.h"

#include <array>
#include <chrono>
#include <string>

#include "base/pause.h"

namespace reprise {
namespace {

constexpr std::array<std::chrono::milliseconds, 2> kPauses{std::chrono::milliseconds(250),
                                                           std::chrono::milliseconds(1000)};

}  // namespace

ToolOutcome RunWithRetries(Tool& tool, std::string_view arguments, const ToolContext& context) {
  ToolOutcome outcome = tool.Run(arguments, context);
  if (!outcome.transient || !tool.traits().read_only || !tool.traits().idempotent) return outcome;
  int tries = 1;
  for (const auto pause : kPauses) {
    if (!outcome.transient) break;
    if (context.on_output) {
      context.on_output("(" + outcome.output + "; tried again in " + std::to_string(pause.count()) + " ms)\n");
    }
    if (!Pause(pause, context.stop)) return outcome;
    outcome = tool.Run(arguments, context);
    ++tries;
  }
  outcome.output += "\n(tried " + std::to_string(tries) + " times)";
  return outcome;
}

}  // namespace reprise
