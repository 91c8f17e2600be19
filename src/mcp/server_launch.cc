#include "mcp/server_launch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "mcp/http_channel.h"

namespace reprise {

namespace {

constexpr std::array<const char*, 10> kInherited = {"PATH", "HOME",   "USER", "LOGNAME", "SHELL",
                                                    "LANG", "LC_ALL", "TERM", "TZ",      "TMPDIR"};
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

bool IsProgram(const std::string& path) {
  std::error_code failed;
  return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, failed);
}

// Empty if there is none.
std::string FindProgram(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) {
    std::error_code failed;
    const std::string program = std::filesystem::absolute(name, failed).string();
    return !failed && IsProgram(program) ? program : "";
  }
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string directory(path.substr(0, colon));
    // Skips empty and relative entries: they depend on the current directory, which is no safe source of programs.
    if (directory.starts_with('/') && IsProgram(directory + "/" + name)) return directory + "/" + name;
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
  }
  return "";
}

// "python" for "/usr/bin/python3.11".
std::string StemOf(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename().string();
  return name.substr(0, name.find_first_of("0123456789."));
}

// The files among the arguments that are part of what runs.
std::vector<std::filesystem::path> ArgumentFiles(const Command& command, const std::string& workspace) {
  std::vector<std::filesystem::path> files;
  bool script_found = !IsInterpreter(command.argv.front());
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& word = command.argv[i];
    const std::size_t equals = word.find('=');
    for (const std::string& part : {word, equals == std::string::npos ? std::string() : word.substr(equals + 1)}) {
      if (part.empty()) continue;
      const std::filesystem::path path = std::filesystem::path(command.directory) / part;
      std::error_code failed;
      if (!std::filesystem::is_regular_file(path, failed)) continue;
      if (script_found && (workspace.empty() || IsDataFile(path) || !LeadsInto(path, workspace))) continue;
      files.push_back(path);
      script_found = script_found || !word.starts_with('-');
    }
  }
  return files;
}

}  // namespace

bool IsInterpreter(const std::string& program) {
  constexpr std::array<std::string_view, 7> kNames = {"ruby", "perl", "php", "sh", "bash", "dash", "java"};
  const std::string name = StemOf(program);
  return RunsFolders(program) || std::ranges::find(kNames, name) != kNames.end();
}

bool RunsFolders(const std::string& program) {
  constexpr std::array<std::string_view, 10> kNames = {"python", "pypy", "node", "nodejs", "deno",
                                                       "bun",    "npx",  "uv",   "uvx",    "tsx"};
  return std::ranges::find(kNames, StemOf(program)) != kNames.end();
}

bool IsDataFile(const std::filesystem::path& file) {
  constexpr std::array<std::string_view, 19> kSuffixes = {
      ".db", ".sqlite", ".sqlite3", ".duckdb", ".csv", ".tsv",  ".parquet", ".jsonl", ".ndjson", ".txt",
      ".md", ".log",    ".pdf",     ".png",    ".jpg", ".jpeg", ".gif",     ".webp",  ".pid"};
  return std::ranges::find(kSuffixes, file.extension().string()) != kSuffixes.end();
}

Result<Command> ServerCommand(const McpServerOptions& options, const std::string& directory,
                              const std::string& workspace) {
  std::map<std::string, std::string> environment = {{"PATH", std::string(kDefaultPath)}};
  for (const char* name : kInherited) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  for (const auto& [name, value] : options.environment) environment[name] = value;
  environment["PATH"] = SearchPathOutside(environment["PATH"], workspace);
  const std::string program = FindProgram(options.command, environment["PATH"]);
  if (program.empty()) return Fail(ErrorCode::kNotFound, "there is no program " + options.command);
  std::error_code failed;
  if (!options.cwd.empty() && !std::filesystem::is_directory(options.cwd, failed)) {
    return Fail(ErrorCode::kNotFound, "there is no folder " + options.cwd);
  }
  Command command{.argv = {program}, .environment = {}, .directory = options.cwd.empty() ? directory : options.cwd};
  command.argv.insert(command.argv.end(), options.arguments.begin(), options.arguments.end());
  for (const auto& [name, value] : environment) command.environment.push_back(name + "=" + value);
  return command;
}

Result<std::string> LaunchDigest(const McpServerOptions& options, const std::string& directory,
                                 const std::string& workspace) {
  Json launch = {
      {"command", options.command}, {"args", options.arguments}, {"env", options.environment}, {"url", options.url}};
  launch["workspace"] = workspace;  // because the server is given it as a root
  if (options.roots) launch["roots"] = *options.roots;
  if (!options.url.empty()) return Sha256Digest({DumpJson(launch)});
  const auto command = TRY(ServerCommand(options, directory, workspace));
  std::error_code failed;
  std::vector<std::filesystem::path> files = {std::filesystem::canonical(command.argv.front(), failed)};
  if (failed) return Fail(ErrorCode::kNotFound, "there is no program " + options.command);
  for (std::filesystem::path& file : ArgumentFiles(command, workspace)) files.push_back(std::move(file));
  launch["cwd"] = options.cwd;
  launch["files"] = Json::array();
  for (const std::filesystem::path& file : files) {
    const auto digest = TRY(Sha256OfFile(file.string()));
    launch["files"].push_back({file.string(), digest});
  }
  return Sha256Digest({DumpJson(launch)});
}

Result<ServerFolder> ServerFolder::Make(const std::string& parent, const std::string& name) {
  if (parent.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "there is no folder outside the workspace to start it in; give mcpServers." + name + ".cwd");
  }
  std::string path = parent + "/" + name + ".XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return Fail(ErrorCode::kUnavailable, "its folder cannot be made: " + std::generic_category().message(errno),
                parent);
  }
  ServerFolder folder(std::move(path));
  PosixFileSystem disk;
  TRY(disk.CreateFile(folder.path_ + "/package.json").and_then([](std::unique_ptr<WritableFile> file) {
    return file->Append("{}\n").and_then([&] { return file->Close(); });
  }));
  return folder;
}

ServerFolder::ServerFolder(ServerFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

ServerFolder::~ServerFolder() {
  std::error_code ignored;  // at worst a server's files stay behind
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::shared_ptr<HttpAuthorizer> AuthorizerFor(const McpServerOptions& options, Transport& transport,
                                              OAuthCredentials& credentials, std::string redirect_uri,
                                              OAuthBrowser browser) {
  if (!options.auth) return nullptr;
  OAuthClientOptions client{.client_id = options.auth->client_id,
                            .client_secret = options.auth->client_secret,
                            .client_metadata_url = options.auth->client_metadata_url,
                            .issuer = options.auth->issuer,
                            .scopes = {}};
  for (const std::string& scope : options.auth->scopes) client.scopes = ScopeUnion(client.scopes, scope);
  return std::make_shared<OAuthAuthorizer>(OAuthAuthorizer::Parts{.transport = transport,
                                                                  .credentials = credentials,
                                                                  .server = options.name,
                                                                  .url = options.url,
                                                                  .options = std::move(client),
                                                                  .redirect_uri = std::move(redirect_uri),
                                                                  .browser = std::move(browser)});
}

std::vector<SessionRoot> RootsFor(const McpServerOptions& options, const std::string& workspace) {
  if (!options.roots) return {{.path = workspace, .name = "workspace"}};
  std::vector<SessionRoot> roots;
  for (const std::string& path : *options.roots) {
    roots.push_back({.path = path, .name = path.substr(path.find_last_of('/') + 1)});
  }
  return roots;
}

Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace,
                                                   std::shared_ptr<HttpAuthorizer> authorizer) {
  if (!options.url.empty()) {
    return OpenHttpChannel(transport,
                           {.url = options.url, .headers = options.headers, .authorizer = std::move(authorizer)});
  }
  const auto command = TRY(ServerCommand(options, directory, workspace));
  return OpenStdioChannel(command);
}

}  // namespace reprise
