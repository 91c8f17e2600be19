// Messages of MCP servers: responses, questions, notifications and nonsense, and the contents of results.

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "fuzz/driver.h"
#include "mcp/client.h"
#include "mcp/mcp_tool.h"
#include "mcp/session.h"

namespace reprise::fuzz {
namespace {

// The server's messages, and the index of the next one.
struct Script {
  std::vector<std::string> messages;
  std::size_t next = 0;
};

// Answers each request at once with some of the server's messages and then the end, so that no wait needs time.
class ScriptChannel final : public Channel {
 public:
  explicit ScriptChannel(Script& script) : script_(script) {}
  void Start(ChannelListener& listener) override { listener_ = &listener; }
  void Send(OutgoingMessage message) override {
    Expect(IsUtf8(message.json), "a message to the server that is not UTF-8");
    if (!message.request_id || closed_) return;
    for (int i = 0; i < 6 && script_.next < script_.messages.size(); ++i) {
      listener_->OnMessage(script_.messages[script_.next++], message.request_id);
      if (!listener_->IsWaiting(*message.request_id)) return;
    }
    listener_->OnRequestFailed(*message.request_id,
                               {.code = ErrorCode::kUnavailable, .reason = "fuzz", .message = "-"});
  }
  void Close() override { closed_ = true; }

 private:
  Script& script_;
  ChannelListener* listener_ = nullptr;
  bool closed_ = false;
};

void CheckText(std::string_view text, std::size_t sent) {
  Expect(IsUtf8(text), "a text for the model that is not UTF-8");
  Expect(text.size() <= 16 * sent + (std::size_t{4} << 10),
         "a text for the model that is much longer than what was sent");
}

void CheckContents(const std::string& message) {
  const auto json = ParseJson(message);
  if (!json || !json->is_object()) return;
  const Json& result = json->contains("result") && (*json)["result"].is_object() ? (*json)["result"] : *json;
  CheckText(ToolResultText(result).output, message.size());
  CheckText(ResourceOutcome(result).output, message.size());
  CheckText(PromptText(result), message.size());
}

void Run(std::string_view input) {
  Script script;
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    script.messages.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string& message : script.messages) CheckContents(message);
  Session session(std::make_unique<ScriptChannel>(script),
                  {.roots = {{.path = "/work space", .name = "workspace"}},
                   .on_tools_changed = [] {},
                   .on_log = [](std::string_view,
                                std::string_view text) { Expect(IsUtf8(text), "a log line that is not UTF-8"); }});
  const RequestOptions options{
      .timeout = std::chrono::seconds(20),
      .on_progress = [](std::string_view text) { Expect(IsUtf8(text), "progress that is not UTF-8"); },
      .ask =
          [](const ToolQuestion& question, const std::stop_token&) {
            Expect(IsUtf8(question.text), "a question that is not UTF-8");
            return ToolAnswer{};
          }};
  (void)Initialize(session, "1", options);
  for (int round = 0; round < 8 && script.next < script.messages.size() && !session.closed(); ++round) {
    if (const auto tools = ListTools(session, options)) {
      Expect(tools->size() <= kMaxMcpTools, "more tools than are taken");
      for (const McpToolDefinition& tool : *tools) {
        Expect(IsUtf8(tool.name) && IsUtf8(tool.description) && IsUtf8(tool.input_schema), "a tool that is not UTF-8");
      }
    }
    if (const auto outcome = CallTool(session, "echo", R"({"a":1})", options)) CheckText(outcome->output, input.size());
    if (const auto outcome = CallToolAsTask(session, "echo", "{}", options)) CheckText(outcome->output, input.size());
    (void)ListResources(session, options);
    (void)ListResourceTemplates(session, options);
    if (const auto text = ReadResource(session, "file:///a", options)) CheckText(text->output, input.size());
    (void)ListPrompts(session, options);
    if (const auto text = GetPrompt(session, "p", "{}", options)) CheckText(*text, input.size());
  }
}

std::string Response(int id, const std::string& result) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"result":)" + result + "}\n";
}

Target MakeTarget() {
  Target target{.name = "mcp", .seeds = {}, .words = {}, .run = Run};
  const std::string greeting = Response(
      1,
      R"({"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}})");
  const std::string tools = Response(
      2,
      R"({"tools":[{"name":"echo","description":"d \u202e","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"required"}}],"nextCursor":"2"})");
  const std::string result = Response(
      3,
      R"({"content":[{"type":"text","text":"hi"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///a","text":"t"}},{"type":"resource_link","uri":"file:///b","name":"b"}],"structuredContent":{"requires_confirmation":true,"message":"sure?"},"isError":false})");
  const std::string question =
      R"({"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","enum":["a","b"]},"n":{"type":"integer","minimum":1}},"required":["name"]}}})"
      "\n";
  const std::string url_question =
      R"({"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"mode":"url","message":"Open","url":"https://a.example/x","elicitationId":"e"}})"
      "\n";
  const std::string noise =
      R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":"b"}}})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1.5,"total":10,"message":"m"}})"
      "\n"
      R"({"jsonrpc":"2.0","id":"r","method":"roots/list"})"
      "\n"
      R"({"jsonrpc":"2.0","id":5,"method":"ping"})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}})"
      "\n";
  target.seeds = {
      greeting + tools + Response(3, R"({"tools":[]})") + Response(4, R"({"content":[{"type":"text","text":"x"}]})"),
      greeting + noise + tools + question + result,
      greeting + question + url_question + tools + noise,
      greeting +
          R"({"jsonrpc":"2.0","id":2,"error":{"code":-32042,"message":"no","data":{"elicitations":[{"mode":"url","url":"https://x"}]}}})"
          "\n" +
          result,
      greeting + Response(2, R"({"task":{"taskId":"t","status":"working","pollInterval":0}})") +
          Response(3, R"({"taskId":"t","status":"completed"})") + Response(4, R"({"content":[]})"),
      greeting + Response(2, R"({"resources":[{"uri":"file:///a","name":"a","mimeType":"text/plain"}]})") +
          Response(3, R"({"resourceTemplates":[{"uriTemplate":"file:///{x}","name":"a"}]})") +
          Response(4, R"({"contents":[{"uri":"file:///a","text":"t"},{"uri":"b","blob":"aGk="}]})") +
          Response(5, R"({"prompts":[{"name":"p","arguments":[{"name":"x","required":true}]}]})") +
          Response(6, R"({"messages":[{"role":"user","content":{"type":"text","text":"t"}}]})"),
      "[" + greeting + "]\n",
      result,
      tools};
  target.words = {"\n",
                  "{",
                  "}",
                  "[",
                  "]",
                  "\"",
                  ",",
                  "\"id\":1",
                  "\"id\":2",
                  "\"id\":3",
                  "\"id\":null",
                  "\"id\":-1",
                  "\"id\":\"1\"",
                  "\"result\":",
                  "\"error\":",
                  "\"method\":",
                  "\"params\":",
                  "\"content\":",
                  "\"text\":",
                  "\"structuredContent\":",
                  "\"inputSchema\":",
                  "\"requestedSchema\":",
                  "\"properties\":",
                  "\"nextCursor\":\"x\"",
                  "elicitation/create",
                  "notifications/progress",
                  "null",
                  "true",
                  "1e999",
                  "\xff",
                  "\xc3",
                  "\\ud800",
                  "\\u0000",
                  "{\"a\":",
                  "[[",
                  greeting,
                  noise};
  return target;
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) { return reprise::fuzz::Main(argc, argv, reprise::fuzz::MakeTarget()); }
