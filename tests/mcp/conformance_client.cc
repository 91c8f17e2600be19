// A client for the client scenarios of @modelcontextprotocol/conformance: connects to the server at the URL that is its
// last argument, lists its tools and calls each once with plausible arguments. Questions are accepted without content,
// so that the defaults apply. Exit status 0 if everything that was tried worked.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "mcp/client.h"
#include "mcp/http_channel.h"
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

int Complain(const Error& error) {
  std::cerr << error.message << "\n";
  return 1;
}

int Run(const std::string& url) {
  CurlTransport transport;
  Session session(OpenHttpChannel(transport, {.url = url}), {});
  RequestOptions options;
  const auto facts = Initialize(session, "1.0.0", options);
  if (!facts) return Complain(facts.error());
  const auto tools = ListTools(session, options);
  if (!tools && facts->tools) return Complain(tools.error());
  options.ask = [](const ToolQuestion&, const std::stop_token&) {
    return ToolAnswer{.action = ToolAnswer::Action::kAccept};
  };
  if (!tools) return 0;
  for (const McpToolDefinition& tool : *tools) {
    // One scenario wants to see what has become of the schema of its other tool.
    const std::string arguments = tool.name == "json_schema_echo" && tools->size() > 1
                                      ? "{\"schema\":" + OtherThan(*tools, tool).input_schema + "}"
                                      : PlausibleArguments(tool.input_schema);
    const auto outcome = CallTool(session, tool.name, arguments, options);
    if (!outcome) return Complain(outcome.error());
    std::cout << tool.name << ": " << outcome->output << "\n";
  }
  return 0;
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
