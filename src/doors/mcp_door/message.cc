#include "doors/mcp_door/message.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "reprise/version.h"

namespace reprise::mcp_door {
namespace {

constexpr const char* kVersionMember = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesMember = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerMember = "io.modelcontextprotocol/serverInfo";

RpcMessage Broken(int code, std::string why, Json id = nullptr) {
  RpcMessage message;
  message.id = std::move(id);
  message.problem = RpcError{.code = code, .message = std::move(why), .status = 400};
  return message;
}

RpcError BadParams(std::string why) { return {.code = kInvalidParams, .message = std::move(why), .status = 400}; }

RpcError Mismatch(std::string why) { return {.code = kHeaderMismatch, .message = std::move(why), .status = 400}; }

// The value that the header Mcp-Name must repeat.
std::optional<std::string> NameIn(const RpcMessage& message) {
  const char* member = message.method == "resources/read"                                  ? "uri"
                       : message.method == "tools/call" || message.method == "prompts/get" ? "name"
                                                                                           : nullptr;
  if (member == nullptr) return std::nullopt;
  const Json& name = MemberOf(message.params, member);
  return name.is_string() ? std::optional(name.get<std::string>()) : std::nullopt;
}

// Decodes "=?base64?...?=", which stands for values that a header cannot hold.
std::string Decoded(const std::string& value) {
  constexpr std::string_view kBegin = "=?base64?", kEnd = "?=";
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd) || value.size() < kBegin.size() + kEnd.size()) return value;
  return DecodeBase64(std::string_view(value).substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size()))
      .value_or(value);
}

}  // namespace

bool IsSessionVersion(std::string_view version) {
  return std::find(kSessionVersions.begin(), kSessionVersions.end(), version) != kSessionVersions.end();
}

RpcMessage ReadMessage(std::string_view body) {
  const auto json = ParseJson(body);
  if (!json) return Broken(kParseError, json.error().message);
  if (json->is_array()) return Broken(kInvalidRequest, "a body is one message; batches are not taken");
  if (!json->is_object()) return Broken(kInvalidRequest, "a message must be a JSON object");
  RpcMessage message;
  const bool has_id = json->contains("id");
  if (has_id) {
    const Json& id = (*json)["id"];
    if (!id.is_string() && !id.is_number_integer()) {
      return Broken(kInvalidRequest, "\"id\" must be a text or a whole number");
    }
    message.id = id;
  }
  if (MemberOf(*json, "jsonrpc") != Json("2.0"))
    return Broken(kInvalidRequest, "\"jsonrpc\" must be \"2.0\"", message.id);
  if (!json->contains("method")) {
    if (!has_id || (!json->contains("result") && !json->contains("error"))) {
      return Broken(kInvalidRequest, "a message needs a \"method\", or answers a request", message.id);
    }
    message.kind = RpcMessage::Kind::kResponse;
    message.result = MemberOf(*json, "result");
    message.error = MemberOf(*json, "error");
    return message;
  }
  const Json& method = (*json)["method"];
  if (!method.is_string()) return Broken(kInvalidRequest, "\"method\" must be a text", message.id);
  message.method = method.get<std::string>();
  message.kind = has_id ? RpcMessage::Kind::kRequest : RpcMessage::Kind::kNotification;
  if (const Json& params = MemberOf(*json, "params"); params.is_object()) {
    message.params = params;
  } else if (!params.is_null()) {
    return Broken(kInvalidParams, "\"params\" must be an object", message.id);
  }
  return message;
}

bool IsStateless(const RpcMessage& message, const MessageHead& head) {
  if (head.session) return false;
  // Only requests of the newer era have a version in "_meta", so an older version in the header is a mismatch.
  const std::string said = TextMember(message.meta(), kVersionMember);
  if (!said.empty() && !IsSessionVersion(said)) return true;
  return head.version && !IsSessionVersion(*head.version);
}

std::optional<RpcError> CheckStateless(const RpcMessage& message, const MessageHead& head) {
  const Json& version = MemberOf(message.meta(), kVersionMember);
  for (const char* name : {kVersionMember, kCapabilitiesMember}) {
    const Json& value = MemberOf(message.meta(), name);
    const bool fits = name == kVersionMember ? value.is_string() : value.is_object();
    if (!fits) return BadParams(std::string("\"_meta\" of the request needs \"") + name + "\"");
  }
  if (head.version != version.get<std::string>()) {
    return Mismatch("the header MCP-Protocol-Version must be the version that the request is of");
  }
  if (head.method != message.method) return Mismatch("the header Mcp-Method must be the method of the request");
  if (const auto name = NameIn(message); name && (!head.name || Decoded(*head.name) != *name)) {
    return Mismatch("the header Mcp-Name must be what the request is about");
  }
  if (*head.version != kStatelessVersion) {
    Json supported = Json::array({kStatelessVersion});
    for (const std::string_view each : kSessionVersions) supported.push_back(each);
    return RpcError{.code = kUnsupportedVersion,
                    .message = "this version of the protocol is not supported",
                    .data = {{"supported", std::move(supported)}, {"requested", *head.version}},
                    .status = 400};
  }
  return std::nullopt;
}

ClientAbilities AbilitiesIn(const Json& capabilities) {
  const Json& elicitation = MemberOf(capabilities, "elicitation");
  if (!elicitation.is_object()) return {};
  const bool urls = MemberOf(elicitation, "url").is_object();
  return {.forms = MemberOf(elicitation, "form").is_object() || !urls, .urls = urls};
}

Json ServerInfo() { return {{"name", "reprise"}, {"title", "Reprise"}, {"version", REPRISE_VERSION}}; }

Json ServerCapabilities(bool is_stateless) {
  Json capabilities = {{"tools", Json::object()},
                       {"resources", Json::object()},
                       {"prompts", Json::object()},
                       {"completions", Json::object()}};
  if (!is_stateless) capabilities["logging"] = Json::object();
  return capabilities;
}

std::string Instructions() {
  return "Reprise is an agent server on this person's machine: it has the files of a workspace, commands and tools, "
         "and "
         "keeps every chat. `ask` gives the agent a task; the same chat_id goes on in that chat. Where the agent needs "
         "an "
         "approval the person is asked, not you: nothing you can call approves anything.";
}

std::string ResultMessage(const Json& id, Json result, bool is_stateless) {
  if (is_stateless) {
    if (!result.contains("resultType")) result["resultType"] = "complete";
    result["_meta"][kServerMember] = ServerInfo();
  }
  return DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

std::string ErrorMessage(const Json& id, const RpcError& error) {
  Json body = {{"code", error.code}, {"message", error.message}};
  if (!error.data.is_null()) body["data"] = error.data;
  return DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(body)}});
}

std::string NotificationMessage(const std::string& method, Json params) {
  return DumpJson({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}

namespace {

Error Unusable(std::string why) { return Refused(Reason::kInvalidAnswer, std::move(why)); }

// "accept", "decline" or "cancel"; empty if the client could not ask.
std::string ActionOf(const Json& result) { return TextMember(result, "action"); }

}  // namespace

Json ApprovalForm(const event::ApprovalRequired& asked) {
  std::vector<std::string> decisions = asked.allowed_decisions;
  const bool can_edit = std::erase(decisions, "edit") > 0;
  Json properties = {{"decision",
                      {{"type", "string"},
                       {"title", "Decision"},
                       {"description",
                        "approve_for_chat and approve_always are for this very call, from now on too; "
                        "approve_outside_sandbox lets this one call reach all your files, the network and secrets"},
                       {"enum", std::move(decisions)}}}};
  if (can_edit) {
    properties["arguments"] = {{"type", "string"},
                               {"title", "Other arguments"},
                               {"description", "A JSON object that replaces the arguments; empty: as they are"}};
  }
  properties["feedback"] = {{"type", "string"}, {"title", "Words for the agent"}};
  return {{"message", asked.tool_name + " " + EscapeHidden(asked.tool_input) + "\n" + asked.reason +
                          " (risk: " + asked.risk + ")"},
          {"requestedSchema",
           {{"type", "object"}, {"properties", std::move(properties)}, {"required", Json::array({"decision"})}}}};
}

Json InputForm(const event::InputRequired& asked, bool can_open_urls) {
  if (asked.url) {
    if (can_open_urls) {
      return {{"mode", "url"}, {"message", asked.question}, {"url", *asked.url}, {"elicitationId", asked.request_id}};
    }
    return {{"message", asked.question + "\n" + *asked.url},
            {"requestedSchema", {{"type", "object"}, {"properties", Json::object()}}}};
  }
  if (auto schema = ParseJson(asked.schema.value_or("")); schema && schema->is_object()) {
    return {{"message", asked.question}, {"requestedSchema", *std::move(schema)}};
  }
  Json answer = {{"type", "string"}, {"title", "Answer"}};
  const std::string options = Joined(asked.options, ", ");
  if (!options.empty()) answer["description"] = "One of these, or another one: " + options;
  return {
      {"message", asked.question},
      {"requestedSchema",
       {{"type", "object"}, {"properties", {{"answer", std::move(answer)}}}, {"required", Json::array({"answer"})}}}};
}

Result<ApprovalAnswer> ApprovalIn(const event::ApprovalRequired& asked, const Json& result) {
  ApprovalAnswer answer;
  const std::string action = ActionOf(result);
  if (action == "decline" || action == "cancel") return answer;
  const Json& content = MemberOf(result, "content");
  const std::string decision = TextMember(content, "decision");
  if (action != "accept" || !asked.allows(decision) || decision == "edit") {
    return Fail(Unusable("the answer needs a \"decision\", one of those that the form offers"));
  }
  answer.approved = decision != "reject";
  if (decision == "approve_for_chat") answer.scope = ApprovalScope::kChat;
  if (decision == "approve_always") answer.scope = ApprovalScope::kAlways;
  answer.outside_sandbox = decision == kApproveOutside;
  if (const std::string feedback = TextMember(content, "feedback"); !IsBlank(feedback)) answer.feedback = feedback;
  if (std::string arguments = TextMember(content, "arguments"); answer.approved && !IsBlank(arguments)) {
    const auto parsed = ParseJson(arguments);
    if (!parsed || !parsed->is_object()) return Fail(Unusable("the \"arguments\" must be a JSON object"));
    answer.arguments = std::move(arguments);
  }
  return answer;
}

Result<InputAnswer> InputIn(const event::InputRequired& asked, const Json& result) {
  InputAnswer answer;
  const std::string action = ActionOf(result);
  if (action == "decline" || action == "cancel") return answer;
  if (action != "accept") return Fail(Unusable("the answer needs an \"action\""));
  const Json& content = MemberOf(result, "content");
  if (asked.url) {
    answer.response = "done";
  } else if (asked.schema) {
    if (!content.is_object()) return Fail(Unusable("the answer needs \"content\", an object"));
    answer.response = DumpJson(content);
  } else {
    std::string said = TextMember(content, "answer");
    if (IsBlank(said)) return Fail(Unusable("the answer needs an \"answer\", a text"));
    answer.response = std::move(said);
  }
  return answer;
}

}  // namespace reprise::mcp_door
