#include "mcp/client.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "mcp/mcp_tool.h"

namespace reprise {
namespace {

constexpr const char* kStatelessVersion = "2026-07-28";
// The versions with a handshake.
constexpr std::array<std::string_view, 4> kVersions = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
using std::chrono::milliseconds;

constexpr milliseconds kTaskKept{60'000};  // added to the time that we wait for a task
constexpr std::size_t kMaxPages = 100;
constexpr std::size_t kMaxItems = 1000;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxSchemaBytes = 64 * 1024;
constexpr std::size_t kMaxShortText = 200;
constexpr std::size_t kMaxInstructions = 4000;

bool Hint(const Json& annotations, const char* name, bool otherwise) {
  const Json& hint = MemberOf(annotations, name);
  return hint.is_boolean() ? hint.get<bool>() : otherwise;
}

milliseconds FreshFor(const Json& result) {
  constexpr std::int64_t kLongest = 24 * 3600 * 1000;
  const Json& hint = MemberOf(result, "ttlMs");
  return milliseconds(hint.is_number_integer() ? std::clamp<std::int64_t>(hint.get<std::int64_t>(), 0, kLongest) : 0);
}

// Goes through all pages of a list and passes each item to `take`, until that returns false. If a later page fails, the
// items so far count. `freshness` becomes the shortest of all pages.
template <typename Take>
Result<void> ForEach(Session& session, const std::string& method, const char* member, const RequestOptions& options,
                     Take take, McpFreshness* freshness = nullptr) {
  std::set<std::string> cursors;
  Json params = Json::object();
  const auto end_early = [&](const std::string& why) {
    LogWarning("an MCP server's list is incomplete; the part that was received is used",
               {{"list", method}, {"pages", cursors.size()}, {"error", why}});
    return Result<void>();
  };
  for (std::size_t page = 0; page < kMaxPages; ++page) {
    const auto result = session.Request(method, params, options);
    if (!result) {
      const bool is_over = page == 0 || session.closed() || result.error().code == ErrorCode::kCancelled;
      return is_over ? Fail(result.error()) : end_early(result.error().message);
    }
    const Json& items = MemberOf(*result, member);
    if (!items.is_array()) {
      if (page > 0) return end_early("the server's answer has no list");
      return Fail(McpProtocolError("the server's answer to " + method + " has no list"));
    }
    if (freshness != nullptr) {
      const milliseconds fresh = FreshFor(*result);
      freshness->for_at_least = page == 0 ? fresh : std::min(freshness->for_at_least, fresh);
    }
    for (const Json& item : items) {
      if (!take(item)) return {};
    }
    const Json& cursor = MemberOf(*result, "nextCursor");
    if (cursor.is_null() || cursor == "") return {};
    if (!cursors.insert(DumpJson(cursor)).second) return end_early("the server's pages lead in a circle");
    params["cursor"] = cursor;
  }
  return end_early("the server's list has too many pages");
}

// The schema of a tool's arguments, with type "object"; null if it excludes objects. Some servers omit the schema of a
// tool without arguments, or the type of a schema with alternatives.
Json ObjectSchema(const Json& given) {
  if (given.is_null() || given == true) return {{"type", "object"}, {"properties", Json::object()}};
  const Json& type = MemberOf(given, "type");
  if (type == "object") return given;
  const bool may_be_object =
      type.is_null() || (type.is_array() && std::find(type.begin(), type.end(), "object") != type.end());
  if (!given.is_object() || !may_be_object) return {};
  Json schema = {{"type", "object"}};
  for (const auto& [name, value] : given.items()) {
    if (name != "type") schema[name] = value;
  }
  return schema;
}

std::optional<McpToolDefinition> DefinitionOf(const Json& item) {
  McpToolDefinition tool{.name = TextMember(item, "name"),
                         .description = TextMember(item, "description"),
                         .input_schema = {},
                         .other = {}};
  const Json schema = item.is_object() ? ObjectSchema(MemberOf(item, "inputSchema")) : Json();
  if (tool.name.empty() || tool.name.size() > kMaxNameBytes || schema.is_null()) return std::nullopt;
  tool.input_schema = DumpJson(schema);
  if (tool.input_schema.size() > kMaxSchemaBytes || !ParseJson(tool.input_schema)) return std::nullopt;  // too deep
  const Json& annotations = MemberOf(item, "annotations");
  const std::string title =
      TextMember(item, "title").empty() ? TextMember(annotations, "title") : TextMember(item, "title");
  if (tool.description.empty()) tool.description = title;
  tool.other =
      DumpJson({{"title", title}, {"annotations", annotations}, {"outputSchema", MemberOf(item, "outputSchema")}});
  tool.as_task = TextMember(MemberOf(item, "execution"), "taskSupport") == "required";
  tool.read_only_hint = Hint(annotations, "readOnlyHint", false);
  tool.idempotent_hint = Hint(annotations, "idempotentHint", false);
  tool.destructive_hint = Hint(annotations, "destructiveHint", true);
  return tool;
}

// Adds the tool's header parameters; resets `tool` if it cannot be called.
void TakeHeaderParameters(const Json& item, std::optional<McpToolDefinition>& tool) {
  auto parameters = HeaderParameters(MemberOf(item, "inputSchema"));
  if (!parameters) {
    LogWarning("a tool of an MCP server cannot be offered",
               {{"tool", tool->name}, {"error", parameters.error().message}});
    return tool.reset();
  }
  tool->header_parameters = *std::move(parameters);
  tool->as_task = false;  // only older revisions have tasks
}

Result<std::vector<McpResource>> Resources(Session& session, const std::string& method, const char* member,
                                           const char* uri, const RequestOptions& options) {
  std::vector<McpResource> resources;
  const auto take = [&](const Json& item) {
    if (TextMember(item, uri).empty()) return true;
    resources.push_back({.uri = TextMember(item, uri),
                         .name = TextMember(item, "name"),
                         .description = TextMember(item, "description"),
                         .type = TextMember(item, "mimeType")});
    return resources.size() < kMaxItems;
  };
  TRY(ForEach(session, method, member, options, take));
  return resources;
}

constexpr int kMaxUrlRounds = 3;
constexpr std::size_t kMaxUrls = 4;
constexpr int kMaxInputRounds = 10;
constexpr std::size_t kMaxInputRequests = 16;

// The response to one request of a server that wants input before it continues.
Result<Json> InputResponse(Session& session, const Json& request, const RequestOptions& options) {
  const std::string method = TextMember(request, "method");
  if (method == "roots/list") return session.Roots();
  if (method != "elicitation/create")
    return Fail(McpProtocolError("the server asks for something that this client does not do (" +
                                 std::string(Utf8Prefix(method, kMaxShortText)) + ")"));
  const auto question = ParseQuestion(MemberOf(request, "params"));
  if (!question) return Fail(McpProtocolError("the server asks what cannot be asked: " + question.error().message));
  if (!options.ask) return Json{{"action", "decline"}};
  // Only our caller can end this question, because a stateless server does not wait for it.
  const ToolAnswer answer = options.ask(*question, options.stop);
  if (options.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the call was cancelled");
  return AnswerToJson(*question, answer);
}

// Sends a request, and repeats it with the answers as long as the server asks questions. The questions and the server's
// state belong to this request alone.
Result<Json> RequestWithInput(Session& session, const std::string& method, Json params, const RequestOptions& options) {
  for (int round = 1;; ++round) {
    auto result = TRY(session.Request(method, params, options));
    const std::string type = session.is_stateless() ? TextMember(result, "resultType") : "";
    if (type.empty() || type == "complete") return result;
    if (type != "input_required")
      return Fail(McpProtocolError("the server's answer is of a kind that this client does not know (" +
                                   std::string(Utf8Prefix(type, kMaxShortText)) + ")"));
    if (round == kMaxInputRounds) return Fail(McpProtocolError("the server does not stop asking"));
    const Json& requests = MemberOf(result, "inputRequests");
    const Json& state = MemberOf(result, "requestState");
    if (!requests.is_object() && !state.is_string())
      return Fail(McpProtocolError("the server wants to know something and does not say what"));
    if (requests.size() > kMaxInputRequests) return Fail(McpProtocolError("the server asks too much at once"));
    Json responses = Json::object();
    if (requests.is_object()) {
      for (const auto& [name, request] : requests.items())
        responses[name] = TRY(InputResponse(session, request, options));
    }
    params["inputResponses"] = std::move(responses);
    params.erase("requestState");
    if (state.is_string()) params["requestState"] = state;
  }
}

// The error for the model when the user has not opened the pages that the server requires.
Error NotOpened(const std::vector<ToolQuestion>& urls) {
  std::string text = "the user must open a page first and has not done so:";
  for (const ToolQuestion& each : urls) text += " " + each.url + (each.text.empty() ? "" : " (" + each.text + ")");
  return Refused(Reason::kMcpUrlsRequired, std::move(text));
}

std::vector<ToolQuestion> RequiredUrls(const Error& error) {
  std::vector<ToolQuestion> urls;
  const auto data = ParseJson(error.details_json);
  if (!data) return urls;
  const Json& listed = MemberOf(*data, "elicitations");
  if (!listed.is_array()) return urls;
  for (const Json& each : listed) {
    if (!each.is_object() || urls.size() == kMaxUrls) continue;
    auto question = ParseQuestion(each);
    if (question && !question->url.empty()) urls.push_back(*std::move(question));
  }
  return urls;
}

// Sends a call. If the server answers that the user must open URLs first, it has done nothing yet, so the user is asked
// to open them and the call is sent again.
Result<Json> RequestCall(Session& session, const Json& params, const RequestOptions& options) {
  for (int round = 1;; ++round) {
    auto result = RequestWithInput(session, "tools/call", params, options);
    if (result || !result.error().Is(Reason::kMcpUrlsRequired)) return result;
    const std::vector<ToolQuestion> urls = RequiredUrls(result.error());
    if (urls.empty()) return result;
    if (!options.ask || round == kMaxUrlRounds) return Fail(NotOpened(urls));
    for (const ToolQuestion& each : urls) {
      const ToolAnswer answer = options.ask(each, std::stop_token());
      if (options.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the call was cancelled");
      if (answer.action != ToolAnswer::Action::kAccept) return Fail(NotOpened(urls));
    }
  }
}

// Sends exactly the bytes that the user was shown, because parsing and writing may change a number.
Result<RequestOptions> WithArguments(std::string_view arguments, RequestOptions options) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (arguments.starts_with(kByteOrderMark)) arguments.remove_prefix(kByteOrderMark.size());
  if (arguments.empty()) arguments = "{}";
  const auto parsed = TRY(ParseJson(arguments));
  if (!parsed.is_object()) return Fail(ErrorCode::kInvalidArgument, "the arguments are not a JSON object");
  options.arguments = arguments;
  if (options.header_parameters != nullptr) options.headers = TRY(ParameterHeaders(*options.header_parameters, parsed));
  return options;
}

void ReadCapabilities(const Json& capabilities, ServerFacts& facts) {
  facts.tools = MemberOf(capabilities, "tools").is_object();
  facts.tool_changes = Hint(MemberOf(capabilities, "tools"), "listChanged", false);
  facts.resources = MemberOf(capabilities, "resources").is_object();
  facts.prompts = MemberOf(capabilities, "prompts").is_object();
}

// Reads the server's name and version from its Implementation object.
void ReadName(const Json& info, ServerFacts& facts) {
  facts.name = Utf8Prefix(TextMember(info, "name"), kMaxShortText);
  facts.version = Utf8Prefix(TextMember(info, "version"), kMaxShortText);
}

bool Names(const Json& versions, std::string_view version) {
  return versions.is_array() && std::find(versions.begin(), versions.end(), version) != versions.end();
}

bool NamesOneWithHandshake(const Json& versions) {
  return std::ranges::any_of(kVersions, [&](std::string_view each) { return Names(versions, each); });
}

// Asks a server of revision 2026-07-28 for its description; nullopt if the server is older.
Result<std::optional<ServerFacts>> Discover(Session& session, const std::string& client_version,
                                            const RequestOptions& options) {
  session.SpeakStateless(kStatelessVersion, {{"name", "reprise"}, {"version", client_version}});
  auto result = session.Request("server/discover", Json::object(), options);
  if (!result && result.error().Is(Reason::kMcpUnsupportedVersion)) {
    const auto data = ParseJson(result.error().details_json);
    const Json none;
    const Json& supported = data ? MemberOf(*data, "supported") : none;
    if (Names(supported, kStatelessVersion)) {  // it rejected a version that it supports, so try once more
      result = session.Request("server/discover", Json::object(), options);
    } else if (NamesOneWithHandshake(supported)) {
      return std::optional<ServerFacts>();
    }
  }
  if (!result) {
    const Error& why = result.error();
    const bool is_modern = why.Is(Reason::kMcpUnsupportedVersion) || why.Is(Reason::kMcpHeaderMismatch) ||
                           why.Is(Reason::kMcpMissingCapability);
    if (is_modern || why.code == ErrorCode::kCancelled || why.Is(Reason::kMcpUnauthorized)) return Fail(why);
    if (session.closed()) return Fail(Reason::kMcpProbeRefused, why.message);
    return std::optional<ServerFacts>();
  }
  const Json& supported = MemberOf(*result, "supportedVersions");
  if (!Names(supported, kStatelessVersion)) {
    const bool is_older = !supported.is_array() || NamesOneWithHandshake(supported);
    if (is_older) return std::optional<ServerFacts>();
    return Fail(McpProtocolError("the server speaks other versions of the protocol"));
  }
  ServerFacts facts;
  facts.protocol = kStatelessVersion;
  facts.era = McpEra::kStateless;
  const Json& info = MemberOf(*result, "serverInfo");
  ReadName(info.is_object() ? info : MemberOf(MemberOf(*result, "_meta"), "io.modelcontextprotocol/serverInfo"), facts);
  ReadCapabilities(MemberOf(*result, "capabilities"), facts);
  facts.instructions = Utf8Prefix(TextMember(*result, "instructions"), kMaxInstructions);
  return std::optional(std::move(facts));
}

}  // namespace

Result<ServerFacts> Initialize(Session& session, const std::string& client_version, const RequestOptions& options) {
  RequestOptions uncancelled = options;
  uncancelled.may_cancel = false;  // the protocol forbids it
  const auto result = TRY(session.Request(
      "initialize",
      {{"protocolVersion", kVersions.front()},
       {"capabilities",
        {{"roots", {{"listChanged", false}}}, {"elicitation", {{"form", Json::object()}, {"url", Json::object()}}}}},
       {"clientInfo", {{"name", "reprise"}, {"version", client_version}}}},
      uncancelled));
  ServerFacts facts;
  facts.era = McpEra::kHandshake;
  facts.protocol = TextMember(result, "protocolVersion");
  if (std::ranges::find(kVersions, facts.protocol) == kVersions.end()) {
    return Fail(McpProtocolError("the server speaks another version of the protocol (" +
                                 std::string(Utf8Prefix(facts.protocol, kMaxShortText)) + ")"));
  }
  ReadName(MemberOf(result, "serverInfo"), facts);
  ReadCapabilities(MemberOf(result, "capabilities"), facts);
  facts.instructions = Utf8Prefix(TextMember(result, "instructions"), kMaxInstructions);
  session.Agreed(facts.protocol);
  session.Notify("notifications/initialized", Json::object());
  session.Listen();
  return facts;
}

Result<ServerFacts> Greet(Session& session, const std::string& client_version, McpEra known,
                          const RequestOptions& options) {
  if (known == McpEra::kHandshake) return Initialize(session, client_version, options);
  // An older server may ignore an unknown request, so the probe leaves time for the handshake.
  RequestOptions probe = options;
  probe.timeout = options.timeout / 3;
  const auto begun = std::chrono::steady_clock::now();
  auto found = TRY(Discover(session, client_version, probe));
  if (found) return *std::move(found);
  session.SpeakWithSession();
  RequestOptions rest = options;
  const auto spent = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun);
  rest.timeout = std::max(options.timeout - spent, options.timeout / 3);
  auto facts = Initialize(session, client_version, rest);
  // A server that had just been started may have been too slow for the probe.
  const bool was_slow = !facts && facts.error().Is(Reason::kMcpError) && spent >= probe.timeout;
  if (!facts && facts.error().code == ErrorCode::kDeadlineExceeded) {
    return Fail(ErrorCode::kDeadlineExceeded,
                "the server did not answer within " + std::to_string(options.timeout.count()) + " ms");
  }
  if (!was_slow) return facts;
  auto again = TRY(Discover(session, client_version, probe));
  if (again) return *std::move(again);
  return facts;
}

void WatchTools(Session& session, const ServerFacts& facts) {
  if (facts.era == McpEra::kStateless && facts.tool_changes) session.Subscribe({{"toolsListChanged", true}});
}

Result<std::vector<McpToolDefinition>> ListTools(Session& session, const RequestOptions& options,
                                                 McpFreshness* freshness) {
  std::vector<McpToolDefinition> tools;
  std::set<std::string> names;
  std::size_t left_out = 0;
  std::string example;  // the first that is left out
  const auto take = [&](const Json& item) {
    const bool has_room = tools.size() < kMaxMcpTools;
    auto tool = DefinitionOf(item);
    if (tool && session.is_stateless()) TakeHeaderParameters(item, tool);
    if (tool && names.insert(tool->name).second && has_room) {
      tools.push_back(*std::move(tool));
    } else {
      if (left_out++ == 0) example = Utf8Prefix(TextMember(item, "name"), kMaxShortText);
    }
    return left_out < kMaxItems;
  };
  TRY(ForEach(session, "tools/list", "tools", options, take, freshness));
  if (left_out > 0) {
    LogWarning(
        "tools of an MCP server are not offered: they have no name or no schema that can be used, or there are too "
        "many",
        {{"count", left_out}, {"first", example}, {"offered", tools.size()}, {"most", kMaxMcpTools}});
  }
  return tools;
}

Result<ToolOutcome> CallTool(Session& session, const std::string& name, std::string_view arguments,
                             const RequestOptions& options) {
  auto call = TRY(WithArguments(arguments, options));
  const auto result = TRY(RequestCall(session, {{"name", name}}, call));
  return ToolResultText(result);
}

Result<ToolOutcome> CallToolAsTask(Session& session, const std::string& name, std::string_view arguments,
                                   const RequestOptions& options) {
  auto call = TRY(WithArguments(arguments, options));
  const auto created = TRY(
      RequestCall(session, {{"name", name}, {"task", {{"ttl", options.timeout.count() + kTaskKept.count()}}}}, call));
  const std::string task = TextMember(MemberOf(created, "task"), "taskId");
  if (task.empty()) return ToolResultText(created);  // the server answered without a task
  const auto result = session.Request("tasks/result", {{"taskId", task}}, options);
  if (result) return ToolResultText(*result);
  const bool given_up =
      result.error().code == ErrorCode::kCancelled || result.error().code == ErrorCode::kDeadlineExceeded;
  // A task outlives the request that waits for it, so it is cancelled, without waiting for the server's response.
  if (given_up) session.Tell("tasks/cancel", {{"taskId", task}});
  return Fail(result.error());
}

Result<std::vector<McpResource>> ListResources(Session& session, const RequestOptions& options) {
  return Resources(session, "resources/list", "resources", "uri", options);
}

Result<std::vector<McpResource>> ListResourceTemplates(Session& session, const RequestOptions& options) {
  return Resources(session, "resources/templates/list", "resourceTemplates", "uriTemplate", options);
}

Result<ToolOutcome> ReadResource(Session& session, const std::string& uri, const RequestOptions& options) {
  return RequestWithInput(session, "resources/read", {{"uri", uri}}, options).map(ResourceOutcome);
}

Result<std::vector<McpPrompt>> ListPrompts(Session& session, const RequestOptions& options) {
  std::vector<McpPrompt> prompts;
  const auto take = [&](const Json& item) {
    McpPrompt prompt{.name = TextMember(item, "name"), .description = TextMember(item, "description"), .arguments = {}};
    if (prompt.name.empty()) return true;
    const Json& arguments = MemberOf(item, "arguments");
    if (arguments.is_array()) {
      for (const Json& argument : arguments) {
        prompt.arguments.emplace_back(TextMember(argument, "name"), Hint(argument, "required", false));
      }
    }
    prompts.push_back(std::move(prompt));
    return prompts.size() < kMaxItems;
  };
  TRY(ForEach(session, "prompts/list", "prompts", options, take));
  return prompts;
}

Result<std::string> GetPrompt(Session& session, const std::string& name, std::string_view arguments,
                              const RequestOptions& options) {
  auto call = TRY(WithArguments(arguments, options));
  return RequestWithInput(session, "prompts/get", {{"name", name}}, call).map(PromptText);
}

}  // namespace reprise
