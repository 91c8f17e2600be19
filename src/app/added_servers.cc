#include "app/added_servers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/checks.h"
#include "app/mcp_setup.h"
#include "app/options.h"
#include "app/program_files.h"
#include "app/secrets.h"
#include "app/workspace_folders.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "mcp/server_launch.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxServerText = 16 << 10;
constexpr std::chrono::seconds kTestPatience{10};

Error InvalidServer(std::string message) { return Refused(Reason::kInvalidMember, std::move(message)); }

// With one server alone.
Options Alone(const McpServerOptions& server, const std::string& workspace) {
  Options alone;
  alone.workspace = workspace;
  alone.mcp_servers = {server};
  return alone;
}

std::vector<std::string> SecretsIn(const McpServerOptions& server) {
  const std::array<const char*, 1> no_environment{nullptr};
  return SecretsOf(Alone(server, ""), no_environment.data());
}

// Without passwords and values of its query.
std::string ShownUrl(const std::string& url) {
  const std::string text = url.substr(0, url.find('?'));
  const std::size_t begin = text.find("://") + 3, at = text.substr(0, text.find('/', begin)).rfind('@');
  std::string shown = at == std::string::npos ? text : text.substr(0, begin) + text.substr(at + 1);
  if (url.size() > text.size()) shown += "?***";
  return shown;
}

template <typename Pairs>
std::vector<std::string> PairNames(const Pairs& pairs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : pairs) names.push_back(name);
  return names;
}

}  // namespace

AddedServers::AddedServers(Parts parts)
    : parts_(std::move(parts)), list_(kServersList, {parts_.disk, parts_.options.data_dir, parts_.keys, parts_.audit}) {
  const MutexLock changing(changing_);
  for (const auto& [name, entry] : list_.entries().items()) {
    Kept kept{.digest = TextMember(entry, "digest")};
    auto server = Read(name, MemberOf(entry, "server"));
    if (!server) {
      kept.options.name = name;
      kept.problem = server.error().message;
    } else {
      kept.options = *std::move(server);
      Learn(kept.options);
      const std::string workspace =
          parts_.options.has_workspace() ? Resolved(parts_.options.workspace).string() : std::string();
      if (IsConfigured(name)) {
        kept.problem = "the configuration names a server " + name + ", and it wins";
      } else if (auto placed = CheckPlace(kept.options, workspace); !placed) {
        kept.problem = placed.error().message;
      }
    }
    if (!kept.problem.empty()) LogWarning("an added MCP server is not used", {{"server", name}});
    const MutexLock lock(mutex_);
    kept_[name] = std::move(kept);
  }
}

std::vector<McpServerOptions> AddedServers::InUse() const {
  const MutexLock lock(mutex_);
  std::vector<McpServerOptions> all;
  for (const auto& [name, kept] : kept_) {
    if (kept.problem.empty()) all.push_back(kept.options);
  }
  return all;
}

bool AddedServers::Has(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(name);
  return found != kept_.end() && found->second.problem.empty();
}

std::optional<AddedServers::Kept> AddedServers::Find(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = kept_.find(name);
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

bool AddedServers::IsConfigured(const std::string& name) const {
  return std::ranges::any_of(parts_.options.mcp_servers, [&](const auto& each) { return each.name == name; });
}

void AddedServers::Learn(const McpServerOptions& server) const {
  for (const std::string& secret : SecretsIn(server)) parts_.secrets.Add(secret);
}

// By the rules of the configuration, but without variables: whoever may add a server could send them anywhere.
Result<McpServerOptions> AddedServers::Read(const std::string& name, const Json& members) const {
  if (!members.is_object()) return Fail(InvalidServer("a server must be a JSON object"));
  const std::string text = DumpJson({{"mcpServers", {{name, members}}}});
  if (text.size() > kMaxServerText) return Fail(InvalidServer("the server has too much text"));
  if (text.find("${") != std::string::npos) {
    return Fail(InvalidServer("variables (${...}) are for the configuration's file; give the value itself"));
  }
  Options options;
  const auto applied = ApplyConfig(options, text, [](const std::string&) { return std::nullopt; });
  if (!applied) return Fail(InvalidServer(applied.error().message));
  return options.mcp_servers.at(0);
}

Result<std::string> AddedServers::DigestOf(const McpServerOptions& server) const {
  // Its own folder, where it starts, is empty, so relative words lead nowhere.
  auto digest =
      LaunchDigest(server, server.cwd.empty() ? "/nowhere" : server.cwd, Resolved(parts_.options.workspace).string());
  if (!digest) return Fail(InvalidServer(digest.error().message));
  return digest;
}

// An added server has no list of allowed files (app/trust.h), so none of its files may need one.
Result<void> AddedServers::CheckPlace(const McpServerOptions& server, const std::string& workspace) const {
  if (server.command.empty()) return {};
  if (!parts_.options.has_workspace()) {
    return Fail(Reason::kForbidden, "without a workspace this server runs no programs (workspace_mode)");
  }
  const auto files = FilesOfPrograms(Alone(server, workspace));
  if (files && files->empty()) return {};
  const std::string why = files ? files->front() + " lies in a folder where chats work" : files.error().message;
  return Fail(Reason::kUntrusted, "the program of the MCP server " + server.name +
                                      " could be replaced by tools, so the configuration must name it: " + why);
}

Result<void> AddedServers::CheckFolder(const std::string& workspace) const {
  for (const McpServerOptions& server : InUse()) {
    auto placed = CheckPlace(server, workspace);
    if (placed) continue;
    // A tenant may have chosen the folder, and need not know what the operator runs.
    Error error = std::move(placed.error());
    error.detail = std::exchange(error.message, "chats may not work in a folder that holds a program of this server");
    return Fail(std::move(error));
  }
  return {};
}

// What only the local user may change.
Result<void> AddedServers::Check(const McpServerOptions& server, const Consent& consent) const {
  if (server.command.empty() || consent.is_local) return {};
  return Fail(Reason::kForbiddenUser,
              "an MCP server that runs a program is added and removed only by the user who runs this server, on its "
              "machine");
}

namespace {

Result<void> CheckDigest(const McpServerOptions& server, const std::string& digest, const Consent& consent) {
  if (server.command.empty() || consent.digest == digest) return {};
  return Fail(Reason::kDigestMismatch,
              "the program is not what was shown, or was not shown; look at the command line and its digest again");
}

}  // namespace

AddedServers::Server AddedServers::Shown(const Kept& kept) const {
  const McpServerOptions& server = kept.options;
  Server shown{.name = server.name,
               .headers = PairNames(server.headers),
               .variables = PairNames(server.environment),
               .cwd = server.cwd,
               .has_auth = server.auth.has_value(),
               .digest = kept.digest,
               .problem = kept.problem};
  if (!server.url.empty()) shown.url = ShownUrl(server.url);
  if (!server.command.empty()) {
    shown.command = {server.command};
    shown.command.insert(shown.command.end(), server.arguments.begin(), server.arguments.end());
  }
  return shown;
}

Result<std::vector<AddedServers::Server>> AddedServers::List() {
  std::vector<Server> all;
  for (const McpServerOptions& server : parts_.options.mcp_servers) {
    Server shown = Shown({.options = server, .digest = {}, .problem = {}});
    shown.is_configured = true;
    // Its words may hold secrets of the environment, which the file names as ${...}.
    shown.url = shown.url.substr(0, shown.url.find('/', shown.url.find("://") + 3));
    shown.command.resize(std::min<std::size_t>(shown.command.size(), 1));
    shown.source = server.of_folder ? parts_.options.folder_file : parts_.options.config_file;
    all.push_back(std::move(shown));
  }
  const MutexLock lock(mutex_);
  for (const auto& [name, kept] : kept_) all.push_back(Shown(kept));
  return all;
}

Result<AddedServers::Server> AddedServers::Add(const Wanted& wanted) {
  const auto members = TRY(ParseJson(wanted.members));
  Kept kept{.options = TRY(Read(wanted.name, members))};
  if (IsConfigured(wanted.name)) {
    return Fail(ErrorCode::kConflict,
                "the configuration names an MCP server " + wanted.name + ", and it wins; change it there");
  }
  Learn(kept.options);  // also if it fails: what somebody has typed is a secret
  TRY(Check(kept.options, wanted.consent));
  kept.digest = TRY(DigestOf(kept.options));
  for (const std::string& path : folders_->OpenPaths()) TRY(CheckPlace(kept.options, path));
  if (wanted.dry_run) return Shown(kept);
  TRY(CheckDigest(kept.options, kept.digest, wanted.consent));

  const MutexLock changing(changing_);
  const auto before = Find(wanted.name);
  if (before) TRY(Check(before->options, wanted.consent));
  TRY(list_.CheckWritable());
  Json entries = list_.entries();
  entries[wanted.name] = {{"server", members}, {"digest", kept.digest}};
  TRY(list_.Change(AuditEntry::Event::kServerAdded, wanted.name, kept.digest, std::move(entries)));
  if (before && before->problem.empty()) folders_->RemoveServer(wanted.name);
  {
    const MutexLock lock(mutex_);
    kept_[wanted.name] = kept;
  }
  // A chat may have come to work there meanwhile; one that comes from now on sees the program (CheckFolder).
  for (const std::string& path : folders_->OpenPaths()) {
    auto placed = CheckPlace(kept.options, path);
    if (placed) continue;
    const MutexLock lock(mutex_);
    kept_[wanted.name].problem = placed.error().message;
    return Fail(std::move(placed.error()));
  }
  TRY(folders_->AddServer(kept.options));
  return Shown(kept);
}

Result<void> AddedServers::Remove(const std::string& name, const Consent& consent) {
  const MutexLock changing(changing_);
  TRY(list_.CheckWritable());
  const auto kept = Find(name);
  if (!kept) return Fail(ErrorCode::kNotFound, "no MCP server of this name was added in the page");
  TRY(Check(kept->options, consent));
  TRY(CheckDigest(kept->options, kept->digest, consent));
  Json entries = list_.entries();
  entries.erase(name);
  TRY(list_.Change(AuditEntry::Event::kServerRemoved, name, kept->digest, std::move(entries)));
  if (kept->problem.empty()) folders_->RemoveServer(name);
  const MutexLock lock(mutex_);
  kept_.erase(name);
  return {};
}

Result<std::string> AddedServers::Test(const std::string& name) {
  McpServerOptions server;
  for (const McpServerOptions& each : parts_.options.mcp_servers) {
    if (each.name == name) server = each;
  }
  if (server.name.empty()) {
    const auto kept = Find(name);
    if (!kept) return Fail(ErrorCode::kNotFound, "there is no such MCP server");
    if (!kept->problem.empty()) return Fail(ErrorCode::kUnavailable, kept->problem);
    server = kept->options;
  }
  if (!server.command.empty() && !parts_.options.has_workspace()) {
    return Fail(ErrorCode::kUnavailable, "without a workspace this server runs no programs (workspace_mode)");
  }
  server.startup_timeout = std::min<std::chrono::milliseconds>(server.startup_timeout, kTestPatience);
  const Finding found = CheckMcpServer(server, parts_.transport, folders_->home()->servers()->memory()->credentials,
                                       Resolved(parts_.options.workspace).string(),
                                       server.command.empty() ? "" : McpFolder(parts_.options));
  if (found.verdict == Verdict::kFailure) return Fail(ErrorCode::kUnavailable, found.words);
  return found.words;
}

}  // namespace reprise
