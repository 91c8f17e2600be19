// A client for the client scenarios of @modelcontextprotocol/conformance: connects to the server at the URL that is its
// last argument, lists what it has, calls each tool once with plausible arguments (or those that the scenario names in
// MCP_CONFORMANCE_CONTEXT) and reads each resource and prompt. Questions are accepted without content, so that the
// defaults apply. Exit status 0 if everything that was tried worked.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/posix_file_system.h"
#include "mcp/client.h"
#include "mcp/http_channel.h"
#include "mcp/oauth_authorizer.h"
#include "net/curl_transport.h"

namespace reprise {
namespace {

std::string PlausibleArguments(const std::string& schema) {
  Json arguments = Json::object();
  const auto parsed = ParseJson(schema);
  if (!parsed || !parsed->contains("properties")) return "{}";
  for (const auto& [name, member] : (*parsed)["properties"].items()) {
    const std::string type = member.value("type", "string");
    if (type == "number" || type == "integer") {
      arguments[name] = 2;
    } else if (type == "boolean") {
      arguments[name] = true;
    } else if (type == "string") {
      arguments[name] = "text";
    }
  }
  return DumpJson(arguments);
}

const McpToolDefinition& OtherThan(const std::vector<McpToolDefinition>& tools, const McpToolDefinition& tool) {
  return tools[0].name == tool.name ? tools[1] : tools[0];
}

// What the scenario wants to be called, by the name of the tool: as a person who uses the client would.
std::vector<std::pair<std::string, std::string>> WantedCalls() {
  std::vector<std::pair<std::string, std::string>> calls;
  const char* context = std::getenv("MCP_CONFORMANCE_CONTEXT");
  const auto parsed = ParseJson(context == nullptr ? "{}" : context);
  if (!parsed || !MemberOf(*parsed, "toolCalls").is_array()) return calls;
  for (const Json& call : (*parsed)["toolCalls"])
    calls.emplace_back(TextMember(call, "name"), DumpJson(MemberOf(call, "arguments")));
  return calls;
}

int Complain(const Error& error) {
  std::cerr << error.message << "\n";
  return 1;
}

Result<void> CallTools(Session& session, const std::vector<McpToolDefinition>& tools, RequestOptions options) {
  const auto wanted = WantedCalls();
  for (const McpToolDefinition& tool : tools) {
    options.header_parameters = &tool.header_parameters;
    std::vector<std::string> calls;
    for (const auto& [name, arguments] : wanted) {
      if (name == tool.name) calls.push_back(arguments);
    }
    // One scenario checks the schema of its other tool.
    if (calls.empty()) {
      calls.push_back(tool.name == "json_schema_echo" && tools.size() > 1
                          ? "{\"schema\":" + OtherThan(tools, tool).input_schema + "}"
                          : PlausibleArguments(tool.input_schema));
    }
    for (const std::string& arguments : calls) {
      const auto outcome = CallTool(session, tool.name, arguments, options);
      if (!outcome) return Fail(outcome.error());
      std::cout << tool.name << ": " << outcome->output << "\n";
    }
  }
  return {};
}

int Play(CurlTransport& transport, HttpServerAddress address) {
  Session session(OpenHttpChannel(transport, std::move(address)), {});
  RequestOptions options;
  const auto facts = Greet(session, "1.0.0", McpEra::kUnknown, options);
  if (!facts) return Complain(facts.error());
  WatchTools(session, *facts);
  options.ask = [](const ToolQuestion&, const std::stop_token&) {
    return ToolAnswer{.action = ToolAnswer::Action::kAccept};
  };
  // Not every scenario's server announces tools.
  const auto tools = ListTools(session, options);
  if (!tools && facts->tools) return Complain(tools.error());
  if (tools) {
    if (const auto called = CallTools(session, *tools, options); !called) return Complain(called.error());
  }
  if (facts->resources) {
    const auto resources = ListResources(session, options);
    if (!resources) return Complain(resources.error());
    for (const McpResource& resource : *resources) {
      if (const auto text = ReadResource(session, resource.uri, options); !text) return Complain(text.error());
    }
  }
  if (facts->prompts) {
    const auto prompts = ListPrompts(session, options);
    if (!prompts) return Complain(prompts.error());
    for (const McpPrompt& prompt : *prompts) {
      Json arguments = Json::object();
      for (const auto& [name, required] : prompt.arguments) arguments[name] = "text";
      const auto text = GetPrompt(session, prompt.name, DumpJson(arguments), options);
      if (!text) return Complain(text.error());
    }
  }
  return 0;
}

// Follows the authorization server's redirect, as a browser does that finds the person logged in already.
class Redirect final : public HttpResponseHandler {
 public:
  void OnHead(int, const HttpHeaders& headers) override {
    for (const auto& [name, value] : headers) {
      if (name == "location") location = value;
    }
  }
  bool OnData(std::string_view) override { return true; }
  std::string location;
};

constexpr const char* kRedirectUri = "http://127.0.0.1:3000/mcp/callback";

OAuthClientOptions ClientOptions() {
  const char* context = std::getenv("MCP_CONFORMANCE_CONTEXT");
  const auto parsed = ParseJson(context == nullptr ? "{}" : context);
  OAuthClientOptions options{.client_metadata_url = "https://conformance-test.local/client-metadata.json"};
  if (parsed) {
    options.client_id = TextMember(*parsed, "client_id");
    options.client_secret = TextMember(*parsed, "client_secret");
  }
  return options;
}

int Run(const std::string& url) {
  CurlTransport transport;
  PosixFileSystem disk;
  std::string folder = "/tmp/mcp_conformance.XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  OAuthCredentials credentials(disk, folder + "/mcp_logins.json", nullptr);
  const OAuthBrowser browser = [&](const OAuthAttempt& attempt, const std::stop_token& stop) -> Result<std::string> {
    HttpRequest request;
    request.url = attempt.url;
    Redirect redirect;
    if (auto sent = transport.Perform(std::move(request), redirect, stop); !sent) return Fail(sent.error());
    const std::size_t query = redirect.location.find('?');
    if (!redirect.location.starts_with(kRedirectUri) || query == std::string::npos)
      return Fail(ErrorCode::kForbidden, "the browser was sent elsewhere");
    return redirect.location.substr(query + 1);
  };
  const auto authorizer = std::make_shared<OAuthAuthorizer>(OAuthAuthorizer::Parts{.transport = transport,
                                                                                   .credentials = credentials,
                                                                                   .server = "conformance",
                                                                                   .url = url,
                                                                                   .options = ClientOptions(),
                                                                                   .redirect_uri = kRedirectUri,
                                                                                   .browser = browser});
  const int status = Play(transport, {.url = url, .headers = {}, .authorizer = authorizer});
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return status;
}
}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: mcp_conformance_client URL\n";
    return 2;
  }
  return reprise::Run(argv[argc - 1]);
}
