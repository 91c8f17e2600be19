// Sessions of other tools: nothing is lost without a note, and how a turn ended is what it was.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "domain/codec.h"
#include "moves/read_text.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::test::losses_test {
namespace {

using Notes = std::vector<std::string>;

const std::string kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

// An array, also of one.
template <typename... Each>
Json List(const Each&... each) {
  Json list = Json::array();
  (list.push_back(Json(each)), ...);
  return list;
}

Json Text(const std::string& text) { return {{"type", "text"}, {"text", text}}; }

// Lines of Claude Code, each of which continues the one before: a person's, or with a `!` the model's.
std::string Claude(const std::vector<std::pair<std::string, Json>>& said, const std::string& more_of_last = "") {
  std::string lines, before;
  for (const auto& [uuid, content] : said) {
    const bool is_last = uuid == said.back().first;
    lines += ClaudeLine(uuid.ends_with('!') ? "assistant" : "user", uuid, before, DumpJson(content),
                        is_last ? more_of_last : "");
    before = uuid;
  }
  return lines;
}

Json Call(const char* id) { return {{"type", "tool_use"}, {"id", id}, {"name", "run"}, {"input", Json::object()}}; }
Json ResultOf(const char* id, const Json& content) {
  return {{"type", "tool_result"}, {"tool_use_id", id}, {"content", content}};
}

std::string Gemini(const std::vector<Json>& messages) {
  std::string text = DumpJson({{"sessionId", "g"}, {"projectHash", "h"}, {"kind", "main"}}) + "\n";
  int id = 0;
  for (Json message : messages) {
    message["id"] = std::to_string(++id);
    text += DumpJson(message) + "\n";
  }
  return text;
}

std::string Codex(const std::vector<Json>& payloads) {
  const auto line = [](const char* type, const Json& payload) {
    return DumpJson({{"timestamp", "2026-05-01T10:00:00.000Z"}, {"type", type}, {"payload", payload}}) + "\n";
  };
  std::string text = line("session_meta", {{"id", "c"}, {"cwd", "/x"}});
  for (const Json& payload : payloads) {
    const std::string type = TextMember(payload, "type");
    const bool is_event = type == "error" || type.starts_with("turn_") || type.starts_with("task_");
    text += line(is_event ? "event_msg" : "response_item", payload);
  }
  return text;
}
Json CodexSaid(const char* role, const char* text) {
  return {{"type", "message"}, {"role", role}, {"content", {{{"type", "input_text"}, {"text", text}}}}};
}

std::string WebUi(const Json& answer) {
  Json all = {{"role", "assistant"}, {"parentId", "u"}};
  all.update(answer);
  return DumpJson({{"history", {{"messages", {{"u", {{"role", "user"}, {"content", "q"}}}, {"a", all}}}}}});
}

std::string LibreChat(const Json& answer) {
  Json all = {{"messageId", "2"}, {"parentMessageId", "1"}, {"isCreatedByUser", false}};
  all.update(answer);
  return DumpJson(
      {{"conversationId", "l"}, {"messages", {{{"messageId", "1"}, {"isCreatedByUser", true}, {"text", "q"}}, all}}});
}

std::string OpenCode(const Json& error, const Json& parts) {
  const Json user = {{"info", {{"id", "1"}, {"role", "user"}}}, {"parts", List(Text("q"))}};
  const Json answer = {{"info", {{"id", "2"}, {"role", "assistant"}, {"error", error}}}, {"parts", parts}};
  return DumpJson({{"info", {{"id", "ses_1"}}}, {"messages", {user, answer}}});
}

std::string Goose(const std::vector<std::pair<const char*, Json>>& parts) {
  std::string text;
  for (const auto& [role, part] : parts) {
    text += DumpJson({{"role", role}, {"created", 1'766'962'214}, {"content", Json::array({part})}}) + "\n";
  }
  return text;
}

std::string Cline(const std::vector<std::pair<const char*, std::string>>& said) {
  Json messages = Json::array();
  for (const auto& [role, text] : said) messages.push_back({{"role", role}, {"content", Json::array({Text(text)})}});
  return DumpJson(messages);
}

// What became of the last turn: "FAILED Overloaded: MESSAGE First I; ERROR".
std::string EndOf(const ForeignChat& chat) {
  const Interaction& turn = chat.interactions.back();
  std::string end = std::string(ToString(turn.status)) + (turn.error ? " " + turn.error->message : "") + ":";
  for (const AgentEvent& event : turn.events) {
    const Json json = ToJson(event);
    end += " " + TextMember(json, "type") + (json.contains("content") ? " " + TextMember(json, "content") : "") + ";";
  }
  return end;
}

std::vector<std::string> PromptsIn(const ForeignChat& chat) {
  std::vector<std::string> prompts;
  for (const Interaction& each : chat.interactions) prompts.push_back(each.user_message);
  return prompts;
}

// The first result of the chat, with the number of its files.
std::string FirstResult(const ForeignChat& chat) {
  for (const AgentEvent& event : chat.interactions.at(0).events) {
    const auto* const result = std::get_if<event::ToolResult>(&event.payload);
    if (result != nullptr) return result->tool_output + " +" + std::to_string(result->files.size());
  }
  return "none";
}

}  // namespace

TEST_CASE("MovedTurns: what a person says beside the mark of an interruption is a message", "[moves]") {
  const auto read = [](const char* mark) {
    return Chat(Claude({{"1", "build it"},
                        {"2!", List(Call("t"))},
                        {"3", List(ResultOf("t", "rejected"), Text(mark), Text("use pnpm instead"))},
                        {"4!", List(Text("With pnpm then."))}}));
  };
  for (const char* mark : {"[Request interrupted by user for tool use]", "[Request interrupted by user]"}) {
    const ForeignChat chat = read(mark);
    CHECK(PromptsIn(chat) == std::vector<std::string>{"build it", "use pnpm instead"});
    CHECK(chat.interactions.at(0).status == InteractionStatus::kCancelled);
    CHECK(chat.interactions.at(1).parent_id == chat.interactions.at(0).id);
    CHECK(EndOf(chat) == "COMPLETED: ANSWER With pnpm then.;");
    CHECK(chat.notes.empty());
  }
  // An image alone.
  const Json image = {{"type", "image"}, {"source", {{"type", "base64"}, {"media_type", "image/png"}, {"data", kPng}}}};
  const ForeignChat seen = Chat(Claude({{"1", "draw"}, {"2", List(Text("[Request interrupted by user]"), image)}}));
  REQUIRE(seen.interactions.size() == 2);
  CHECK(seen.interactions[1].attachments.size() == 1);
}

TEST_CASE("MovedTurns: a person's words within a message of the tool stay", "[moves]") {
  const ForeignChat cline =
      Chat(Cline({{"user", "<task>mow</task>"},
                  {"assistant", "Mowing"},
                  {"user", "[TASK RESUMPTION] It was interrupted.\n<user_message>\nonly the front\n</user_message>"}}));
  CHECK(PromptsIn(cline) == std::vector<std::string>{"mow", "only the front"});
  const auto said = [](const Json& parts) { return Json{{"type", "user"}, {"content", parts}}; };
  CHECK(
      PromptsIn(Chat(Gemini({said({{{"text", "<session_context>\nToday</session_context>"}}, {{"text", "mow"}}})}))) ==
      std::vector<std::string>{"mow"});
}

TEST_CASE("MovedTurns: what was said before a person stopped it is no answer", "[moves]") {
  const char* const stopped = "CANCELLED: MESSAGE First, the; CANCELLED;";
  CHECK(EndOf(Chat(Claude(
            {{"1", "explain"}, {"2!", List(Text("First, the"))}, {"3", "[Request interrupted by user]"}}))) == stopped);
  CHECK(EndOf(Chat(Codex({CodexSaid("user", "explain"),
                          CodexSaid("assistant", "First, the"),
                          {{"type", "turn_aborted"}, {"reason", "interrupted"}}}))) == stopped);
  CHECK(EndOf(Chat(OpenCode({{"name", "MessageAbortedError"}}, List(Text("First, the"))))) == stopped);
  CHECK(EndOf(Chat(Cline({{"user", "explain"}, {"assistant", "First, the\n\n[Response interrupted by user]"}}))) ==
        stopped);
}

TEST_CASE("MovedTurns: a turn that failed where it comes from is failed, with the tool's words as the error",
          "[moves]") {
  const char* const alone = "FAILED Overloaded: ERROR;";
  const char* const after = "FAILED Overloaded: MESSAGE First I; ERROR;";
  const std::string of_api = R"(,"isApiErrorMessage":true)";
  CHECK(EndOf(Chat(Claude({{"1", "q"}, {"2!", List(Text("Overloaded"))}}, of_api))) == alone);
  CHECK(EndOf(Chat(Claude({{"1", "q"}, {"2!", List(Text("First I"))}, {"3!", List(Text("Overloaded"))}}, of_api))) ==
        after);
  const Json api_error = {{"name", "APIError"}, {"data", {{"message", "Overloaded"}}}};
  CHECK(EndOf(Chat(OpenCode(api_error, Json::array()))) == alone);
  CHECK(EndOf(Chat(OpenCode(api_error, List(Text("First I"))))) == after);
  CHECK(EndOf(Chat(OpenCode({{"name", "Overloaded"}}, List(Text("First I"))))) == after);
  CHECK(EndOf(Chat(WebUi({{"content", ""}, {"error", {{"content", "Overloaded"}}}}))) == alone);
  CHECK(EndOf(Chat(WebUi({{"content", "First I"}, {"error", {{"content", "Overloaded"}}}}))) == after);
  CHECK(EndOf(Chat(WebUi({{"content", "Overloaded"}, {"error", true}}))) == alone);
  CHECK(EndOf(Chat(LibreChat({{"text", "Overloaded"}, {"error", true}}))) == alone);
  const Json failed = {{"type", "error"}, {"error", "Overloaded"}};
  CHECK(EndOf(Chat(LibreChat({{"text", ""}, {"content", {Text("First I"), failed}}, {"error", true}}))) == after);
  CHECK(EndOf(Chat(Codex({CodexSaid("user", "q"), {{"type", "error"}, {"message", "Overloaded"}}}))) == alone);
  CHECK(EndOf(Chat(Cline({{"user", "q"}, {"assistant", "First I\n\n[Response interrupted by API Error]"}}))) ==
        "FAILED [Response interrupted by API Error]: MESSAGE First I; ERROR;");
  for (const std::string ran :
       {"Ran into this error: Overloaded.\n\nPlease retry if you think this is a transient or recoverable error.",
        "Ran into this error trying to compact: Overloaded.\n\nPlease try again or create a new session",
        "Ran into this error trying to compact: Overloaded.\n\n"
        "Please retry if you think this is a transient or recoverable error.",
        "Error: Unable to truncate messages to stay within context limit. \n\nRan into this error: Overloaded.\n\n"
        "Please start a new session with fresh context and try again.",
        "The provider refused this request.\n\nUnsafe.\n\nCategory: cyber\n\nPlease start a new session to continue "
        "\xe2\x80\x94 resending this conversation is likely to be refused again.",
        "The model returned an empty response. Please resend your message to continue.",
        "Network error: Overloaded\n\nPlease resend your message to try again."}) {
    CHECK(EndOf(Chat(Goose({{"user", Text("q")}, {"assistant", Text(ran)}}))) == "FAILED " + ran + ": ERROR;");
  }
  const std::string told = "Network error: it was the cable.";  // an answer
  CHECK(EndOf(Chat(Goose({{"user", Text("q")}, {"assistant", Text(told)}}))) == "COMPLETED: ANSWER " + told + ";");
  const auto of_gemini = [](const std::string& type, const std::string& remark) {
    return EndOf(Chat(Gemini({{{"type", "user"}, {"content", "q"}}, {{"type", type}, {"content", remark}}})));
  };
  for (const std::string why :
       {"[API Error: Overloaded]", "The model response was blocked due to safety settings.",
        "The model returned an empty response with no text or thoughts. This may be a transient API issue; please try "
        "again.",
        "Model response was truncated because it exceeded the token limit. Try using /compress to free up context "
        "space."}) {
    CHECK(of_gemini("error", why) == "FAILED " + why + ": ERROR;");
  }
  CHECK(of_gemini("error", "Unknown command: /x") == of_gemini("info", "[API Error: Overloaded]"));  // not of a turn
  for (const char* const stopped : {"Request cancelled.", "User cancelled the request."})
    CHECK(of_gemini("info", stopped) == "CANCELLED: CANCELLED;");
}

TEST_CASE("MovedTurns: a failure that the tool went on after, or that is of no turn, is counted", "[moves]") {
  const Notes one{"left out: 1 x message about a failure"};
  const ForeignChat went_on = Chat(Codex(
      {CodexSaid("user", "q"), {{"type", "error"}, {"message", "Overloaded"}}, CodexSaid("assistant", "There.")}));
  CHECK(EndOf(went_on) == "COMPLETED: ANSWER There.;");
  CHECK(went_on.notes == one);
  const ForeignChat later = Chat(Codex({CodexSaid("user", "q"),
                                        CodexSaid("assistant", "There."),
                                        {{"type", "task_complete"}},
                                        {{"type", "error"}, {"message", "No such thread"}}}));
  CHECK(EndOf(later) == "COMPLETED: ANSWER There.;");
  CHECK(later.notes == one);
}

TEST_CASE("MovedTurns: files and texts of a result are carried, in whatever form", "[moves]") {
  const auto of_claude = [](const Json& part) {
    return Chat(Claude(
        {{"1", "q"}, {"2!", List(Call("t"))}, {"3", List(ResultOf("t", List(part)))}, {"4!", List(Text("ok"))}}));
  };
  const Json blob = {{"type", "resource"},
                     {"resource", {{"uri", "x://a.png"}, {"mimeType", "image/png"}, {"blob", kPng}}}};
  CHECK(FirstResult(of_claude(blob)) == "x://a.png +1");
  const Json text = {{"type", "resource"}, {"resource", {{"uri", "x://a.txt"}, {"text", "words"}}}};
  CHECK(FirstResult(of_claude(text)) == "x://a.txt\nwords +0");
  const Json found = {
      {"type", "search_result"}, {"source", "kb://1"}, {"title", "T"}, {"content", List(Text("THE BODY"))}};
  CHECK(FirstResult(of_claude(found)) == "T\nkb://1\nTHE BODY +0");
  const Json elsewhere = {{"type", "document"}, {"title", "T"}, {"source", {{"type", "url"}, {"url", "https://x"}}}};
  CHECK(of_claude(elsewhere).notes == Notes{"left out: 1 x part of a result (document)"});
  Json damaged = blob;
  damaged["resource"]["blob"] = "!!";
  CHECK(of_claude(damaged).notes == Notes{"left out: 1 x file that cannot be read"});

  const Json inline_data = {{"inlineData", {{"mimeType", "image/png"}, {"data", kPng}}}};
  const Json response = {
      {"functionResponse",
       {{"id", "k"}, {"name", "read"}, {"response", {{"output", "one"}}}, {"parts", List(inline_data)}}}};
  const Json call = {
      {"id", "k"}, {"name", "read"}, {"args", Json::object()}, {"status", "success"}, {"result", List(response)}};
  CHECK(FirstResult(Chat(Gemini({{{"type", "user"}, {"content", "q"}},
                                 {{"type", "gemini"}, {"content", ""}, {"toolCalls", List(call)}}}))) == "one +1");
  const Json calls = {{"functionCall", {{"name", "read"}, {"args", Json::object()}}}};
  const auto content = [](const char* role, const Json& part) {
    return Json{{"role", role}, {"parts", Json::array({part})}};
  };
  CHECK(FirstResult(Chat(DumpJson(
            {{"history", {content("user", {{"text", "q"}}), content("model", calls), content("user", response)}}}))) ==
        "one +1");

  const Json tools = {{{"type", "function"}, {"name", "calendar_create"}}};
  CHECK(FirstResult(Chat(Codex({CodexSaid("user", "q"),
                                {{"type", "tool_search_call"}, {"call_id", "c"}, {"arguments", Json::object()}},
                                {{"type", "tool_search_output"}, {"call_id", "c"}, {"tools", tools}}}))) ==
        DumpJson(tools) + " +0");
  CHECK(FirstResult(Chat(Codex({CodexSaid("user", "q"),
                                {{"type", "function_call"}, {"call_id", "c"}, {"name", "f"}, {"arguments", "{}"}},
                                {{"type", "function_call_output"}, {"call_id", "c"}, {"output", {{"body", "B"}}}}}))) ==
        "{\"body\":\"B\"} +0");

  const auto of_goose = [](const Json& value) {
    const Json request = {
        {"type", "toolRequest"},
        {"id", "1"},
        {"toolCall", {{"status", "success"}, {"value", {{"name", "x"}, {"arguments", Json::object()}}}}}};
    const Json result = {
        {"type", "toolResponse"}, {"id", "1"}, {"toolResult", {{"status", "success"}, {"value", value}}}};
    return Chat(Goose({{"user", Text("q")}, {"assistant", request}, {"user", result}}));
  };
  CHECK(FirstResult(of_goose({{"content", List(blob)}})) == "x://a.png +1");
  CHECK(FirstResult(of_goose({{"content", Json::array()}, {"structuredContent", {{"k", 1}}}})) == "{\"k\":1} +0");
  CHECK(of_goose({{"content", List(Text("k is 1"))}, {"structuredContent", {{"k", 1}}}}).notes ==
        Notes{"left out: 1 x structured content of a result"});
  const auto is_error = [&of_goose](const char* said) {
    return of_goose({{"content", List(Text(said))}}).interactions.at(0).final_agent_state->messages.back().is_error;
  };
  CHECK(is_error("The user has declined to run this tool. DO NOT attempt to call this tool again."));
  CHECK(!is_error("It says: The user has declined to run this tool."));
}

TEST_CASE("MovedTurns: what has no place here is counted", "[moves]") {
  const Json inline_data = {{"inlineData", {{"mimeType", "image/png"}, {"data", kPng}}}};
  const Json damaged = {{"inlineData", {{"mimeType", "image/png"}, {"data", "!!"}}}};
  const auto content = [](const char* role, const Json& parts) { return Json{{"role", role}, {"parts", parts}}; };
  const Json question = {{"type", "user"}, {"content", "q"}};
  const Json uploaded = {{"author", {{"role", "user"}}},
                         {"content", {{"content_type", "text"}, {"parts", {"sum it up"}}}},
                         {"metadata", {{"attachments", {{{"id", "file-AbCdEfGhIj"}, {"name", "contract.pdf"}}}}}}};
  const std::vector<std::pair<std::string, std::string>> sources{
      {Gemini({question, {{"type", "gemini"}, {"content", {{{"text", "drawn"}}, inline_data}}}}), "image of an answer"},
      {DumpJson({{"history", {content("user", {{{"text", "q"}}}), content("model", {{{"text", "a"}}, inline_data})}}}),
       "image of an answer"},
      {Gemini({{{"type", "user"}, {"content", {{{"text", "see"}}, damaged}}}}), "file that cannot be read"},
      {Goose({{"user", Text("q")}, {"user", {{"type", "image"}, {"data", "!!"}, {"mimeType", "image/png"}}}}),
       "file that cannot be read"},
      {Codex({CodexSaid("user", "q"),
              {{"type", "message"},
               {"role", "assistant"},
               {"content", {{{"type", "x"}, {"image_url", "data:image/png;base64," + kPng}}}}}}),
       "image of an answer"},
      {DumpJson({{"id", "x"}, {"mapping", {{"a", {{"parent", nullptr}, {"message", uploaded}}}}}}),
       "file whose content the export lacks"},
      {WebUi({{"content", "A [1]"}, {"sources", {{{"source", {{"name", "manual.pdf"}}}}}}}), "source of an answer"},
      {LibreChat({{"text", "there"}, {"attachments", {{{"filename", "heron.png"}}}}}),
       "file whose content the export lacks"},
  };
  for (const auto& [source, what] : sources) {
    INFO(source);
    const ForeignChat chat = Chat(source);
    CHECK(chat.notes == Notes{"left out: 1 x " + what});
    CHECK(chat.files.empty());
  }
}

TEST_CASE("MovedTurns: a sub-agent that was resumed is counted once", "[moves]") {
  const TempDirectory folder;
  std::filesystem::create_directories(folder.path() + "/s/subagents");
  folder.Write("s/subagents/agent-x.jsonl", ClaudeLine("assistant", "n1", "", R"([{"type":"text","text":"found A"}])") +
                                                ClaudeLine("assistant", "n2", "n1", R"([{"type":"text","text":"B"}])"));
  const std::string agent = R"(,"toolUseResult":{"agentId":"x"})";
  folder.Write("s.jsonl", ClaudeLine("user", "1", "", R"("go")") +
                              ClaudeLine("assistant", "2", "1", DumpJson(Json::array({Call("a")}))) +
                              ClaudeLine("user", "3", "2", DumpJson(Json::array({ResultOf("a", "A")})), agent) +
                              ClaudeLine("assistant", "4", "3", DumpJson(Json::array({Call("b")}))) +
                              ClaudeLine("user", "5", "4", DumpJson(Json::array({ResultOf("b", "B")})), agent));
  const auto source = SourceText::Open(folder.File("s.jsonl"));
  std::optional<Result<ForeignChat>> chat;
  REQUIRE(ForEachSession(*source, *RecognizeFormat(*source, {}).value(), folder.File("s.jsonl"),
                         [&](const FoundSession& session) -> Result<void> {
                           chat = (*session.plan())->ReadAll("chat");
                           return {};
                         }));
  REQUIRE(*chat);
  CHECK(EndOf(**chat) == "COMPLETED: TOOL_CALL; NESTED; NESTED; TOOL_RESULT; TOOL_CALL; TOOL_RESULT;");
  CHECK((*chat)->notes == Notes{"left out: 1 x sub-agent that is named twice"});
}

}  // namespace reprise::test::losses_test
