// Sessions of other tools. Whatever a file holds, it is recognised or not, and read or refused. A chat that is read has
// one result for each call, and its own form reads it again.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/moves/formats.h"
#include "engine/moves/moved_turns.h"
#include "fuzz/driver.h"

namespace reprise::fuzz {
namespace {

void CheckChat(const ForeignChat& chat) {
  Expect(!chat.interactions.empty(), "a chat without interactions");
  for (const Interaction& each : chat.interactions) {
    Expect(!each.parent_id || *each.parent_id < each.id, "a parent that comes later");
    Expect(each.workspace.empty() && each.final_agent_state->grants.empty(), "a transcript that chooses something");
    std::size_t open = 0;
    for (const Message& message : each.final_agent_state->messages) {
      Expect(message.role == Role::kTool ? open-- > 0 : open == 0, "a call without a result");
      if (message.role == Role::kAssistant) open = message.tool_calls.size();
    }
    Expect(open == 0, "a call without a result");
  }
  const auto again = ReadChatDocument(ToChatDocument(chat), "again");
  Expect(again && again->interactions.size() == chat.interactions.size(), "a chat that its own form does not read");
}

void Run(std::string_view input) {
  const SourceText source = SourceText::Of(std::string(input), "input");
  const auto format = RecognizeFormat(source, {});
  if (!format || *format == nullptr) return;
  (void)ForEachSession(source, **format, {}, [](const FoundSession& session) -> Result<void> {
    const auto turns = session.plan();
    const auto chat = turns.and_then([](const auto& each) { return each->ReadAll("chat"); });
    if (chat) CheckChat(*chat);
    return {};
  });
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) {
  using namespace reprise;
  return fuzz::Main(
      argc, argv,
      {.name = "moves",
       .seeds =
           {R"({"type":"user","sessionId":"s","uuid":"1","parentUuid":null,"message":{"role":"user","content":"go"}})"
            "\n"
            R"({"type":"assistant","sessionId":"s","uuid":"2","parentUuid":"1","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"thinking","thinking":"t","signature":"s"}]}})"
            "\n"
            R"({"type":"user","sessionId":"s","uuid":"3","parentUuid":"2","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"one"}]}})",
            R"({"type":"session_meta","payload":{"id":"i"}})"
            "\n"
            R"({"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"a"}})"
            "\n"
            R"({"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"o"}})",
            R"([{"mapping":{"a":{"parent":null,"message":{"author":{"role":"user"},"content":{"parts":["x"]}}},"b":{"parent":"a","message":{"author":{"role":"assistant"},"recipient":"python","content":{"text":"y"}}},"c":{"parent":"b","message":{"author":{"role":"tool"},"content":{"parts":["z"]}}}}}])",
            R"({"schema_version":"ATIF-v1.7","steps":[{"source":"user","message":"m"},{"source":"agent","message":"n","tool_calls":[{"tool_call_id":"a","function_name":"f","arguments":{}}],"observation":{"results":[{"source_call_id":"a","content":"o"}]}}]})",
            R"({"history":{"messages":{"a":{"role":"user","content":"q"},"b":{"parentId":"a","role":"assistant","content":"<details type=\"tool_calls\" done=\"true\" id=\"x\" name=\"f\" arguments=\"{}\" result=\"r\"></details>"}}}})",
            R"({"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"t"}]},{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"c","tool":"f","state":{"status":"completed","input":{},"output":"o"}}]}]})",
            R"([{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"o"}]}])"},
       .words = {"\"parentUuid\"", "\"isSidechain\":true", "\"isCompactSummary\":true", "\"tool_use\"",
                 "\"tool_result\"", "null", "{}", "[]", "\\ud800", "1e400", "\n", "\"thinking\"",
                 "data:image/png;base64,AA=="},
       .run = fuzz::Run});
}
