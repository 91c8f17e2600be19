#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "app/chat_bucket.h"
#include "app/checks.h"
#include "app/embedded.h"
#include "app/factories.h"
#include "app/keys.h"
#include "app/mcp_setup.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "mcp/client.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/server_launch.h"
#include "mcp/session.h"
#include "net/curl_transport.h"
#include "people/issuer_keys.h"
#include "remote/postgres/database.h"
#include "remote/postgres/schema.h"
#include "remote/redis/redis_signals.h"
#include "store/file_names.h"

namespace reprise {
namespace {

Finding NotUsable(const char* check, const Error& error, const std::string& what = {}) {
  const std::string& detail = error.detail;
  return {check, Verdict::kFailure, what + error.message + (detail.empty() ? "" : " (" + detail + ")")};
}

constexpr const char* kDatabaseCheck = "database";
constexpr const char* kListenCheck = "database for listening";
constexpr const char* kRowSecurityCheck = "row-level security";

// Row-level security, the second barrier between users, does not bind a superuser.
Finding CheckRowSecurity(Database& database) {
  const auto role = database.Execute(
      {.sql = "select current_user::text, rolsuper or rolbypassrls from pg_roles where rolname = current_user"});
  if (!role) return NotUsable(kRowSecurityCheck, role.error());
  if (!role->empty() && role->truth(0, 1)) {
    return {kRowSecurityCheck, Verdict::kWarning,
            "does not hold the database's role " + std::string(role->text(0, 0)) +
                ", which may see all rows: give the server one that is no superuser"};
  }
  return {kRowSecurityCheck, Verdict::kOk, "holds the database's role"};
}

// Checks LISTEN, by which servers hear of each other without Redis.
Finding CheckListening(const std::string& url) {
  const auto database = Database::Open({.url = url});
  if (!database) return NotUsable(kListenCheck, database.error());
  const auto answer = (*database)->Execute({.sql = "select 1"});
  if (!answer) return NotUsable(kListenCheck, answer.error());
  return {kListenCheck, Verdict::kOk, "store.listen_url lets this server in"};
}

std::vector<Finding> CheckDatabase(const Options& options) {
  if (options.store.type != StoreOptions::Type::kPostgres) return {};
  const auto database = Database::Open({.url = options.store.url});
  if (!database) return {NotUsable(kDatabaseCheck, database.error())};
  const auto tables = CheckSchema(**database);
  if (!tables) return {NotUsable(kDatabaseCheck, tables.error())};
  std::vector<Finding> findings = {{kDatabaseCheck, Verdict::kOk, "it lets this server in, and has its tables"},
                                   CheckRowSecurity(**database)};
  if (!options.store.listen_url.empty()) findings.push_back(CheckListening(options.store.listen_url));
  return findings;
}

Finding CheckBucket(const Options& options) {
  const auto bucket = ChatBucket::Open(options);
  if (!bucket) return {"bucket", Verdict::kFailure, bucket.error().message};
  const std::string name = options.bucket->bucket + " at " + options.bucket->endpoint;
  const auto checked = (*bucket)->Check();
  if (!checked) return NotUsable("bucket", checked.error(), name + ": ");
  return {"bucket", Verdict::kOk, name + " lets this server in"};
}

// Servers work without it, more slowly.
Finding CheckRedis(const RedisOptions& redis) {
  const auto checked = RedisSignals::Check({.urls = redis.urls, .ca_file = redis.ca_file, .otherwise = nullptr});
  if (checked) return {"redis", Verdict::kOk, "Redis lets this server in"};
  Finding finding = NotUsable("redis", checked.error());
  finding.verdict = Verdict::kWarning;
  return finding;
}

constexpr std::chrono::milliseconds kIssuerTimeout{5'000};
constexpr const char* kIssuerCheck = "issuer";
constexpr const char* kTokensCheck = "API tokens";

Finding CheckIssuer(const AuthOptions& auth) {
  CurlTransport transport;
  const auto keys = FetchIssuerKeys(transport, auth.issuer, kIssuerTimeout, std::stop_token());
  if (!keys) return {kIssuerCheck, Verdict::kFailure, auth.issuer + ": " + keys.error().message};
  if (keys->empty()) return {kIssuerCheck, Verdict::kFailure, auth.issuer + " has no key for RS256, ES256 or EdDSA"};
  return {kIssuerCheck, Verdict::kOk, auth.issuer + ", " + std::to_string(keys->size()) + " keys"};
}

Finding CheckTokens(const Options& options) {
  const auto tokens = OpenTokens(options);
  const auto content = tokens ? (*tokens)->Read() : Fail(tokens.error());
  if (!content) return {kTokensCheck, Verdict::kFailure, content.error().message};
  const auto counts = std::ranges::count_if(
      content->tokens, [](const ApiToken& token) { return !token.expires_at || Now() < *token.expires_at; });
  if (counts == 0 && options.auth.type == AuthOptions::Type::kTokens) {
    return {kTokensCheck, Verdict::kWarning,
            "there is none, so nobody can use the server: reprise users token add NAME"};
  }
  return {kTokensCheck, Verdict::kOk, std::to_string(counts) + " that count"};
}

std::vector<Finding> CheckPeople(const Options& options) {
  std::vector<Finding> findings;
  if (!options.auth.has_people()) return findings;
  if (options.auth.type == AuthOptions::Type::kOidc) findings.push_back(CheckIssuer(options.auth));
  findings.push_back(CheckTokens(options));
  if (options.workspace_mode == WorkspaceMode::kShared) {
    findings.push_back(
        {"workspace", Verdict::kWarning, "is shared: each user may see and change what the others do there"});
  }
  return findings;
}

}  // namespace

Finding CheckMcpServer(const McpServerOptions& server, Transport& transport, OAuthCredentials& credentials,
                       const std::string& workspace, const std::string& folders) {
  const std::string check = "MCP server " + server.name;
  const auto failed = [&](const Error& error) { return Finding{check, Verdict::kFailure, error.message}; };
  std::optional<ServerFolder> folder;
  if (!server.command.empty() && server.cwd.empty()) {
    auto made = ServerFolder::Make(folders, server.name);
    if (!made) return failed(made.error());
    folder.emplace(*std::move(made));
  }
  const auto open = [&] {
    return OpenServerChannel(server, transport, folder ? folder->path() : server.cwd, workspace,
                             AuthorizerFor(server, transport, credentials, "", nullptr));
  };
  auto channel = open();
  if (!channel) return failed(channel.error());
  SessionHooks hooks;
  hooks.roots = RootsFor(server, workspace);
  std::optional<Session> connected(std::in_place, *std::move(channel), hooks);
  const RequestOptions options{.timeout = server.startup_timeout};
  auto facts = Greet(*connected, std::string(Version()), McpEra::kUnknown, options);
  if (!facts && facts.error().Is(Reason::kMcpProbeRefused) && !server.command.empty()) {
    channel = open();
    if (!channel) return failed(channel.error());
    connected.emplace(*std::move(channel), hooks);
    facts = Greet(*connected, std::string(Version()), McpEra::kHandshake, options);
  }
  Session& session = *connected;
  if (!facts) return failed(session.closed().value_or(facts.error()));
  std::string words = facts->name + " " + facts->version + " answers (protocol " + facts->protocol + ")";
  if (facts->tools) {
    const auto tools = ListTools(session, options);
    if (!tools) return failed(session.closed().value_or(tools.error()));
    words += " and has " + Counted(tools->size(), "tool");
  }
  if (server.trust_annotations) words += "; it is believed about which of them only read";
  return {check, Verdict::kOk, std::move(words)};
}

std::vector<Finding> CheckServices(const Options& options) {
  std::vector<Finding> findings = CheckDatabase(options);
  if (options.bucket) findings.push_back(CheckBucket(options));
  if (!options.redis.urls.empty()) findings.push_back(CheckRedis(options.redis));
  for (Finding& finding : CheckPeople(options)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> CheckMcpServers(const Options& options) {
  std::vector<Finding> findings;
  CurlTransport transport;
  std::error_code failed;
  const std::string workspace = std::filesystem::weakly_canonical(options.workspace, failed).string();
  const std::string folders = options.mcp_servers.empty() ? "" : McpFolder(options);
  auto keys = KeysFor(options);
  OAuthCredentials credentials(Disk(), McpLoginsFile(options.data_dir), keys ? *std::move(keys) : nullptr);
  for (const McpServerOptions& server : options.mcp_servers) {
    findings.push_back(CheckMcpServer(server, transport, credentials, workspace, folders));
  }
  return findings;
}

}  // namespace reprise
