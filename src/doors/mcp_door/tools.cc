#include "doors/mcp_door/tools.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"

namespace reprise::mcp_door {
namespace {

constexpr std::size_t kLongestName = 60;  // quoted
constexpr std::string_view kChats = "reprise://chats/";

Json Object(Json properties, Json required) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}
Json Text(const char* description) { return {{"type", "string"}, {"description", description}}; }
Json Count(const char* description, int most) {
  return {{"type", "integer"}, {"minimum", 1}, {"maximum", most}, {"description", description}};
}

Json Tool(const char* name, const char* title, const char* description, bool reads, Json input, Json output) {
  input["additionalProperties"] = false;
  Json annotations = {{"title", title}, {"readOnlyHint", reads}};
  if (!reads) annotations.update({{"destructiveHint", true}, {"idempotentHint", false}, {"openWorldHint", true}});
  Json tool = {{"name", name},
               {"title", title},
               {"description", description},
               {"inputSchema", std::move(input)},
               {"annotations", std::move(annotations)}};
  if (!output.is_null()) tool["outputSchema"] = std::move(output);
  return tool;
}

Json Answered() {
  return Object({{"chat_id", Text("go on there with the next message")},
                 {"interaction_id", Text("of this message")},
                 {"status", Text("COMPLETED, FAILED, CANCELLED, STOPPING, or WAITING for a person")},
                 {"answer", Text("what the agent has answered")}},
                Json::array({"chat_id", "interaction_id", "status", "answer"}));
}

Error Wrong(const char* name, const std::string& what) {
  return Refused(Reason::kInvalidArgument, std::string("\"") + name + "\" " + what);
}

}  // namespace

Json ToolList() {
  return Json::array(
      {Tool("list_chats", "List chats",
            "Lists the chats of the agent, the newest first: id, title, status, how many questions wait.",
            /*reads=*/true,
            Object({{"limit", Count("how many; usually 20", 100)}, {"cursor", Text("\"next\" of the page before")}},
                   Json::array()),
            Object({{"chats", {{"type", "array"}, {"items", {{"type", "object"}}}}},
                    {"next", {{"type", Json::array({"string", "null"})}}}},
                   Json::array({"chats", "next"}))),
       Tool("read_chat", "Read a chat",
            "Gives what was said and done in a chat, as Markdown, the newest interactions of it.", /*reads=*/true,
            Object(
                {{"chat_id", Text("the chat")}, {"limit", Count("how many interactions, the newest; usually 20", 200)}},
                Json::array({"chat_id"})),
            nullptr),
       Tool("search", "Search chats", "Finds a text in what was said and done in all chats, or in one.", /*reads=*/true,
            Object({{"query", Text("the text, in upper or lower case")},
                    {"chat_id", Text("only in this chat")},
                    {"limit", Count("how many places; usually 20", 100)}},
                   Json::array({"query"})),
            Object({{"matches", {{"type", "array"}, {"items", {{"type", "object"}}}}},
                    {"truncated", {{"type", "boolean"}}}},
                   Json::array({"matches", "truncated"}))),
       Tool("ask", "Ask the agent",
            "Gives the agent a message and waits for its answer, which may take minutes. It can read and change files "
            "of its workspace, run commands "
            "and use its tools; where it needs an approval the person is asked. Without chat_id a new chat begins; the "
            "result says its id.",
            /*reads=*/false,
            Object({{"message", Text("what the agent is to do")},
                    {"chat_id", Text("the chat in which it goes on; letters, digits, '_' and '-'")},
                    {"model", Text("PROVIDER/NAME; usually the chat's")}},
                   Json::array({"message"})),
            Answered()),
       Tool("approve", "Ask the person for approvals",
            "Puts what waits for a person in a chat to them, and waits for the agent's answer. It is the person who "
            "decides. For a chat that list_chats "
            "shows as waiting or running.",
            /*reads=*/false, Object({{"chat_id", Text("the chat")}}, Json::array({"chat_id"})), Answered())});
}

Result<void> CheckNames(const std::string& tool, const Json& arguments) {
  for (const Json& each : ToolList()) {
    if (each["name"] != tool) continue;
    const Json& known = each["inputSchema"]["properties"];
    std::string names;
    for (const auto& [name, schema] : known.items()) names += (names.empty() ? "" : ", ") + name;
    for (const auto& [name, value] : arguments.items()) {
      if (known.contains(name)) continue;
      return Fail(Wrong(std::string(Utf8Prefix(name, kLongestName)).c_str(),
                        "is no argument of " + tool + ", which has: " + names));
    }
  }
  return {};
}

Result<std::optional<std::string>> TextIn(const Json& arguments, const char* name) {
  const Json& value = MemberOf(arguments, name);
  if (value.is_null()) return std::optional<std::string>();
  if (!value.is_string()) return Fail(Wrong(name, "must be a text"));
  return std::optional(value.get<std::string>());
}

Result<std::string> NeededText(const Json& arguments, const char* name) {
  auto text = TextIn(arguments, name);
  if (!text) return Fail(std::move(text.error()));
  if (!*text || (*text)->find_first_not_of(" \t\r\n") == std::string::npos)
    return Fail(Wrong(name, "is missing or empty"));
  return **std::move(text);
}

Result<std::int64_t> NumberIn(const Json& arguments, const char* name, std::int64_t usual, std::int64_t most) {
  const Json& value = MemberOf(arguments, name);
  if (value.is_null()) return usual;
  if (!value.is_number_integer() || value < 1 || value > most) {
    return Fail(Wrong(name, "must be a whole number from 1 to " + std::to_string(most)));
  }
  return value.get<std::int64_t>();
}

std::string ChatUri(const std::string& chat) { return std::string(kChats) + chat; }

std::optional<std::string> ChatInUri(const std::string& uri) {
  if (!uri.starts_with(kChats)) return std::nullopt;
  return uri.substr(kChats.size());
}

Json ResourceTemplates() {
  return Json::array({{{"uriTemplate", std::string(kChats) + "{chat_id}"},
                       {"name", "chat"},
                       {"title", "A chat"},
                       {"description", "What was said and done in a chat"},
                       {"mimeType", "text/markdown"}}});
}

Json PromptList() {
  return Json::array(
      {{{"name", kChatPrompt},
        {"title", "Bring in a chat"},
        {"description", "What was said and done in a chat of the agent, for the conversation here"},
        {"arguments", Json::array({{{"name", "chat_id"}, {"description", "The chat"}, {"required", true}}})}}});
}

}  // namespace reprise::mcp_door
