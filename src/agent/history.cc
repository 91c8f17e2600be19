#include "agent/history.h"

#include <algorithm>
#include <set>
#include <string>

namespace reprise {

std::size_t CompleteToolCalls(Messages& messages, std::string_view placeholder, std::size_t first) {
  std::size_t added = 0;
  for (std::size_t i = first; i < messages.size(); ++i) {
    if (messages[i].tool_calls.empty()) continue;
    std::size_t end = i + 1;
    std::set<std::string, std::less<>> answered;
    for (; end < messages.size() && messages[end].role == Role::kTool; ++end)
      answered.insert(messages[end].tool_call_id);
    std::vector<Message> missing;
    for (const ToolCall& call : messages[i].tool_calls) {
      if (answered.contains(call.id)) continue;
      missing.push_back(Message{.role = Role::kTool,
                                .content = std::string(placeholder),
                                .tool_calls = {},
                                .tool_call_id = call.id,
                                .name = call.name,
                                .is_error = true});
    }
    added += missing.size();
    i = end + missing.size() - 1;
    if (!missing.empty()) messages.Insert(end, std::move(missing));
  }
  return added;
}

std::string ChangedByHook(const std::string& arguments) {
  return "(A hook changed the arguments to " + arguments + ")\n";
}

}  // namespace reprise
