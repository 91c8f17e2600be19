#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/checks.h"
#include "app/mcp_setup.h"
#include "app/options.h"
#include "app/trust.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/server_access.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxConfig = 1 << 20;

const char* StateText(const Result<McpLoginState>& state) {
  if (!state) return "unknown";
  switch (*state) {
    case McpLoginState::kNotNeeded:
      return "none";
    case McpLoginState::kLoggedOut:
      return "logged_out";
    case McpLoginState::kLoggedIn:
      return "logged_in";
  }
  return "unknown";
}

std::string Target(const McpServerOptions& server) {
  if (!server.url.empty()) return server.url;
  std::string text = server.command;
  for (const std::string& argument : server.arguments) text += " " + argument;
  return text;
}

Json NewServer(const McpRequest& request) {
  Json server = Json::object();
  if (!request.url.empty()) {
    server["url"] = request.url;
    if (request.oauth) server["auth"] = {{"type", "oauth"}};
    if (request.oauth && !request.client_id.empty()) server["auth"]["client_id"] = request.client_id;
  } else {
    server["command"] = request.command.front();
    if (request.command.size() > 1)
      server["args"] = std::vector<std::string>(request.command.begin() + 1, request.command.end());
  }
  return server;
}

// Adds the server to the folder's file, or to the configuration file that was read, or to the default one. Returns its
// path.
Result<std::string> AddTo(const Options& options, const Environment& environment, const std::string& name,
                          const Json& server) {
  std::string path = options.folder_file.empty() ? options.config_file : options.folder_file;
  const auto folder = ConfigFolder(environment);
  if (path.empty() && !folder) return Fail(ErrorCode::kUnavailable, "there is no folder for a configuration; set HOME");
  if (path.empty()) path = *folder + "/" + kDefaultConfigFile;
  Json config = Json::object();
  if (auto text = ReadSmallFile(path, kMaxConfig); text) {
    // Rewriting the file would lose comments.
    auto parsed = ParseJson(*text);
    if (!parsed || !parsed->is_object()) {
      return Fail(ErrorCode::kConflict,
                  path + " has comments, or is not JSON, and is left as it is; add to mcpServers: \"" + name +
                      "\": " + DumpJson(server));
    }
    config = *std::move(parsed);
  } else if (text.error().code != ErrorCode::kNotFound) {
    return Fail(text.error());
  }
  config["mcpServers"][name] = server;
  TRY(CreateDirectories(Disk(), ParentDirectory(path)));
  TRY(ReplaceFile(Disk(), path, DumpJsonPretty(config) + "\n"));
  return path;
}

// Uses the data folder's server, if one runs, because it has the token in memory.
Result<bool> LogOut(const Options& options, const McpServerOptions& server) {
  const auto running = FindServer(options);
  if (running && *running) {
    const auto connected = TRY(ConnectTo(**running, options));
    const auto answer = connected->Call("POST", "/tools/servers/" + server.name + "/logout", Json::object());
    if (answer) return MemberOf(*answer, "was_logged_in") == true;
    if (answer.error().code != ErrorCode::kNotFound) return Fail(NotAnswering(answer.error(), *connected));
  }
  return LogOutAtMcp(options, server);
}

}  // namespace

Exited RunMcpAdd(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const McpRequest& request = line.mcp;
  if (request.url.empty() == request.command.empty())
    return Misused("say either --url URL or, behind --, the command that runs the server");
  if (request.url.empty() && (request.oauth || !request.client_id.empty()))
    return Misused("--oauth and --client-id are for a server with --url");
  if (FindMcpServer(options, line.argument) && !line.force)
    return Misused("there is an MCP server " + VisibleLine(line.argument) + " already; --force replaces it");
  McpRequest wanted = request;
  wanted.oauth = wanted.oauth || !wanted.client_id.empty();
  const Json server = NewServer(wanted);
  // Checks it by the rules of the configuration.
  Options probe;
  const Json config = {{"mcpServers", {{line.argument, server}}}};
  if (const auto checked = ApplyConfig(probe, DumpJson(config), environment); !checked)
    return ComplainOfUse(checked.error());
  const auto path = TRY(AddTo(options, environment, line.argument, server));
  return PrintEither(line.json, {{"name", line.argument}, {"file", path}, {"server", server}},
                     "added " + VisibleLine(line.argument) + " to " + VisibleLine(path) +
                         "; servers that run take it up when they are started again\n");
}

Exited RunMcpList(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  Json list = Json::array();
  for (const McpServerOptions& server : options.mcp_servers) {
    const std::string login = StateText(ReadMcpLogin(options, server));
    list.push_back({{"name", server.name},
                    {server.url.empty() ? "command" : "url", server.url.empty() ? server.command : server.url},
                    {"login", login}});
    if (!line.json) {
      const std::string words = login == "logged_in"    ? "  logged in"
                                : login == "logged_out" ? "  logged out"
                                : login == "unknown"    ? "  log-in cannot be read"
                                                        : "";
      Print(VisibleLine(server.name + "  " + Target(server)) + words + "\n");
    }
  }
  if (line.json) PrintDocument({{"servers", list}});
  if (!line.json && list.empty()) Warn("no MCP server is configured (`reprise mcp add` adds one)");
  return kExitOk;
}

Exited RunMcpLogin(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto server = TRY(FindMcpServer(options, line.argument));
  const auto show = [&](const std::string& url) {
    PrintEither(line.json, {{"open", url}},
                "Open this page in a browser of this machine to log in at " + VisibleLine(server.name) + ":\n" +
                    VisibleLine(url) + "\n");
    static_cast<void>(FlushOutput());
  };
  const auto done = LogInAtMcp(options, server, static_cast<std::uint16_t>(line.mcp.port), show);
  if (!done)
    return done.error().code == ErrorCode::kInvalidArgument ? ComplainOfUse(done.error()) : Complain(done.error());
  return PrintEither(line.json, {{"name", server.name}, {"login", "logged_in"}},
                     (*done ? "logged in at " : "already logged in at ") + VisibleLine(server.name) + "\n");
}

Exited RunMcpLogout(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto server = TRY(FindMcpServer(options, line.argument));
  const auto was = TRY(LogOut(options, server));
  return PrintEither(line.json, {{"name", server.name}, {"login", "logged_out"}, {"was_logged_in", was}},
                     (was ? "logged out at " : "there was no log-in at ") + VisibleLine(server.name) + "\n");
}

Exited RunMcpTest(const CommandLine& line, const Environment& environment) {
  auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  if (!line.argument.empty()) {
    auto server = TRY(FindMcpServer(options, line.argument));
    options.mcp_servers = {std::move(server)};
  }
  // Does not run programs that the server would not run.
  TRY(FilesToTrust(options).and_then(
      [&](const FileDigests& files) { return RequireTrust(options, files, /*ask=*/false); }));
  Json list = Json::array();
  bool ok = true;
  for (const Finding& finding : CheckMcpServers(options)) {
    const bool works = finding.verdict != Verdict::kFailure;
    ok = ok && works;
    list.push_back({{"check", finding.check}, {"ok", works}, {"message", finding.words}});
    if (!line.json) Print(VisibleLine((works ? "ok    " : "FAIL  ") + finding.check + ": " + finding.words) + "\n");
  }
  if (line.json) PrintDocument({{"ok", ok}, {"servers", std::move(list)}});
  return ok ? kExitOk : kExitFailure;
}

}  // namespace reprise
