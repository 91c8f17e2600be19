#include "app/mcp_setup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "app/embedded.h"
#include "app/keys.h"
#include "base/atomic_write.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/server_login.h"
#include "net/curl_transport.h"
#include "store/data_folder.h"
#include "store/file_names.h"

namespace reprise {
namespace {

// Empty if it is not set; by the XDG rule a relative path counts as not set.
std::string Directory(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? value : "";
}

// Whether it is a folder, not a link, that nobody else can enter.
bool IsOursAlone(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

}  // namespace

std::string McpFolder(const Options& options) {
  std::error_code failed;
  const std::filesystem::path workspace = std::filesystem::canonical(options.workspace, failed);
  if (failed) return {};
  std::vector<std::string> places;
  if (const std::string runtime = Directory("XDG_RUNTIME_DIR"); !runtime.empty() && IsOursAlone(runtime)) {
    places.push_back(runtime + "/reprise/mcp");
  }
  const std::string cache = Directory("XDG_CACHE_HOME"), home = Directory("HOME"), temporary = Directory("TMPDIR");
  if (!cache.empty()) {
    places.push_back(cache + "/reprise/mcp");
  } else if (!home.empty()) {
    places.push_back(home + "/.cache/reprise/mcp");
  }
  const std::string own = "/reprise-" + std::to_string(::getuid()) + "/mcp";
  if (!temporary.empty()) places.push_back(temporary + own);
  places.push_back("/tmp" + own);
  PosixFileSystem disk;
  for (const std::string& place : places) {
    if (LeadsInto(place, workspace) || !CheckPrivateDirectory(place)) continue;
    if (CreateDirectories(disk, place) && CheckPrivateDirectory(place) && IsOursAlone(place)) return place;
  }
  return {};
}

Result<McpServerOptions> FindMcpServer(const Options& options, const std::string& name) {
  for (const McpServerOptions& server : options.mcp_servers) {
    if (server.name == name) return server;
  }
  return Fail(ErrorCode::kNotFound,
              "no MCP server " + name + " is configured; \"reprise mcp list\" shows those that are");
}

namespace {

// A fresh home has neither this file nor a key for it.
bool AreThereLogins(const Options& options) {
  std::error_code failed;
  return std::filesystem::exists(McpLoginsFile(options.data_dir), failed) || failed;
}

}  // namespace

Result<McpLoginState> ReadMcpLogin(const Options& options, const McpServerOptions& server) {
  if (!server.auth) return McpLoginState::kNotNeeded;
  if (!AreThereLogins(options)) return McpLoginState::kLoggedOut;
  auto keys = TRY(KeysFor(options));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  const auto login = TRY(credentials.Look(server.name, server.url));
  return login.tokens.access_token.empty() ? McpLoginState::kLoggedOut : McpLoginState::kLoggedIn;
}

Result<bool> LogInAtMcp(const Options& options, const McpServerOptions& server, std::uint16_t port,
                        const std::function<void(const std::string& url)>& show) {
  auto keys = TRY(KeysForWriting(options, options.data_dir));
  TRY(CheckPrivateDirectory(options.data_dir));
  TRY(CreateDirectories(Disk(), options.data_dir));  // no server may have run here yet
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  CurlTransport transport;
  const ServerLogin login{.transport = transport,
                          .credentials = credentials,
                          .workspace = options.workspace,
                          .client_version = std::string(Version()),
                          .port = port};
  return LogInAtServer(server, login, show, {});
}

Result<bool> LogOutAtMcp(const Options& options, const McpServerOptions& server) {
  if (!AreThereLogins(options)) return false;
  auto keys = TRY(KeysFor(options));
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), std::move(keys));
  return credentials.Forget(server.name);
}

}  // namespace reprise
