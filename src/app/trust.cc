#include "app/trust.h"

#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string_view>
#include <system_error>

#include "app/options.h"
#include "app/program_files.h"
#include "app/prompt_files.h"
#include "app/secrets.h"
#include "app/settings.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/public_address.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "remote/redis/redis_connection.h"
#include "terminal/console.h"
#include "tools/shell/hook_commands.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxList = 4u << 20;
constexpr std::chrono::seconds kLongestWait{10};  // for another writer

Error Damaged(const std::string& path) {
  return MakeError(ErrorCode::kCorruption,
                   path + " is damaged; remove it, and allow your files again with `reprise trust`");
}

bool IsDigest(const Json& value) {
  if (!value.is_string()) return false;
  const std::string_view text = value.get_ref<const std::string&>();
  return text.starts_with("sha256:") && text.size() == 7 + 64;
}

}  // namespace

Result<FileDigests> TrustedFiles::Read() const {
  if (path_.empty()) return FileDigests();
  std::error_code failed;
  if (fs::is_symlink(path_, failed)) {
    // Its target may lie where tools write.
    return Fail(ErrorCode::kForbidden, path_ + " is a symbolic link; put the file itself there");
  }
  const auto text = ReadOwnFile(path_, kMaxList);
  if (!text && text.error().code == ErrorCode::kNotFound) return FileDigests();
  if (!text) return Fail(text.error());
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || json->value("schema", Json()) != 1 || !json->contains("files") ||
      !json->at("files").is_object()) {
    return Fail(Damaged(path_));
  }
  FileDigests files;
  for (const auto& [path, digest] : json->at("files").items()) {
    if (!IsDigest(digest)) return Fail(Damaged(path_));
    files[path] = digest.get<std::string>();
  }
  return files;
}

Result<void> TrustedFiles::Allow(const FileDigests& files) const {
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto all = TRY(Read());
  for (const auto& [path, digest] : files) {
    // JSON would hold another name in its place.
    if (!IsUtf8(path)) {
      return Fail(ErrorCode::kInvalidArgument, "the name of " + VisibleLine(path) + " is not UTF-8; rename it");
    }
    all[path] = digest;
  }
  return Write(all);
}

Result<bool> TrustedFiles::Revoke(const std::string& path) const {
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto all = TRY(Read());
  if (all.erase(path) == 0) return false;
  return Write(all).map([] { return true; });
}

Result<void> TrustedFiles::Write(const FileDigests& files) const {
  if (path_.empty()) {
    return Fail(ErrorCode::kUnavailable, "there is no place for the list of allowed files (HOME is not set)");
  }
  PosixFileSystem disk;
  Json list = Json::object();
  for (const auto& [path, digest] : files) list[path] = digest;
  const std::string text = DumpJsonPretty({{"schema", 1}, {"files", std::move(list)}}) + "\n";
  const std::string folder = ParentDirectory(path_);
  return CreateDirectories(disk, folder).and_then([&](bool) { return ReplaceFile(disk, path_, text); }).and_then([&] {
    return disk.SyncDirectory(folder);
  });
}

std::optional<std::string> ConfigFolder(const Environment& environment) {
  // By the XDG rule a relative path counts as not set.
  const auto absolute = [&](const char* name) {
    auto value = environment(name);
    return value && value->starts_with('/') ? value : std::nullopt;
  };
  if (const auto config = absolute("XDG_CONFIG_HOME")) return *config + "/reprise";
  if (const auto home = absolute("HOME")) return *home + "/.config/reprise";
  return std::nullopt;
}

std::string PlaceOf(const std::string& path) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);
  const fs::path folder = fs::weakly_canonical(absolute.parent_path(), failed);
  return failed ? absolute.lexically_normal().string() : (folder / absolute.filename()).string();
}

bool OpenToTools(const std::string& path, const std::string& workspace, const std::string& config_folder) {
  std::error_code failed;
  const fs::path root = fs::canonical(workspace, failed);
  if (failed) return false;  // no workspace, so no tools
  const fs::path absolute = fs::absolute(path, failed);
  if (!LeadsInto(absolute, root)) return false;
  if (config_folder.empty()) return true;
  const fs::path closed = fs::weakly_canonical(config_folder, failed);
  return failed || !LiesBeneath(fs::weakly_canonical(absolute, failed), closed);
}

namespace {

Error Untrusted(const Options& options, const FileDigests& files) {
  std::string hint = "reprise trust";
  const std::string names = Joined(std::views::keys(files), ", ");
  const std::string& config = options.folder_file.empty() ? options.config_file : options.folder_file;
  hint += " " + (config.empty() ? names : config);
  if (options.workspace != ".") hint += " --workspace " + options.workspace;
  const bool one = files.size() == 1;
  return Refused(
      Reason::kUntrusted,
      names +
          (one ? " is new or has changed since you allowed it, and the agent's tools could have written it; `"
               : " are new or have changed since you allowed them, and the agent's tools could have written them; `") +
          hint + "` shows what the server would do and allows " + (one ? "it" : "them"));
}

// Keys typed before the question appeared are discarded.
bool AnswersYes(std::string_view question) {
  const std::string text(question);
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return false;
  ::tcflush(STDIN_FILENO, TCIFLUSH);
  std::string line;
  for (char c = 0;;) {
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || line.size() > 16) return false;
    if (c == '\n' || c == '\r') break;
    line += c;
  }
  return line == "y" || line == "Y" || line == "yes" || line == "Yes";
}

bool IsPersonThere() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

// A query may hold secrets.
std::string WithoutQuery(const std::string& url) { return url.substr(0, url.find('?')); }

// The host in redis://USER:PASSWORD@HOST/...
std::string RedisHostOf(const std::string& url) {
  const auto parsed = RedisUrl::Parse(url);
  return parsed ? parsed->name() : "an address that cannot be read";
}

std::string ServerLine(const McpServerOptions& server) {
  const std::string more =
      (server.roots ? ", and is told to work in " + (server.roots->empty() ? "no folder" : QuotedWords(*server.roots))
                    : "") +
      std::string(server.shared ? ", once for all folders" : "") +
      std::string(server.trust_annotations ? ", and believes what it says of its tools (trust_annotations)" : "") +
      (server.startup_timeout == McpServerOptions().startup_timeout
           ? ""
           : ", and waits " + SecondsOf(server.startup_timeout) + " for its start");
  if (!server.url.empty()) {
    return "speaks to the MCP server " + server.name + " at " + WithoutQuery(server.url) +
           (server.headers.empty() ? "" : ", with headers: " + NamesOf(server.headers)) + more;
  }
  std::vector<std::string> words = {server.command};
  words.insert(words.end(), server.arguments.begin(), server.arguments.end());
  return "runs the MCP server " + server.name + ": " + QuotedWords(words) +
         (server.cwd.empty() ? "" : " (in " + server.cwd + ")") +
         (server.environment.empty() ? "" : ", with variables: " + NamesOf(server.environment)) + more;
}

std::string SearchOf(const WebSearchOptions& search) {
  if (!search.is_on) return {};
  const std::string most =
      search.max_uses > 0 ? ", at most " + std::to_string(search.max_uses) + " times a response" : "";
  return ", and lets it search the web" + most +
         (search.allowed_domains.empty() ? "" : ", only on " + QuotedWords(search.allowed_domains)) +
         (search.blocked_domains.empty() ? "" : ", not on " + QuotedWords(search.blocked_domains));
}

// The server that receives the value of this key of the configuration; empty if none outside. Names may have dots, so
// if a key can belong to several, all are named.
std::string ReceiverOf(const Options& options, std::string_view key) {
  const auto is_of = [&](std::string_view section, const std::string& name) {
    return key.starts_with(std::string(section) + name + ".");
  };
  std::string receivers;
  const auto add = [&](const std::string& receiver) { receivers += (receivers.empty() ? "" : " or ") + receiver; };
  for (const ProviderOptions& provider : options.providers) {
    if (is_of("providers.", provider.name)) add(WithoutQuery(provider.base_url));
  }
  for (const McpServerOptions& server : options.mcp_servers) {
    if (!is_of("mcpServers.", server.name)) continue;
    add(server.url.empty() ? "the MCP server " + server.name : WithoutQuery(server.url));
  }
  if (key.starts_with("telemetry.")) return WithoutQuery(options.telemetry.traces.url);
  if (key.starts_with("files.") && options.bucket) return options.bucket->endpoint;
  if (key.starts_with("store.")) return WithoutPassword(options.store.url);
  if (key.starts_with("redis.")) {
    for (const std::string& url : options.redis.urls) add(RedisHostOf(url));
  }
  if (key.starts_with("hooks")) return "the hooks";
  return receivers;
}

std::string RuleLine(const ToolRule& rule) {
  return std::string(ToString(rule.action)) + " " + rule.tool + (rule.pattern ? ": " + *rule.pattern : "");
}

std::string_view NameOf(ApprovalMode mode) {
  switch (mode) {
    case ApprovalMode::kAsk:
      return "ask";
    case ApprovalMode::kReadOnly:
      return "read_only (what only reads does not ask)";
    case ApprovalMode::kPlan:
      return "plan (nothing is changed before you have approved a plan)";
    case ApprovalMode::kAuto:
      return "auto (changes of the workspace and commands in the sandbox do not ask)";
    case ApprovalMode::kApproveAll:
      return "approve_all (NOTHING asks)";
    case ApprovalMode::kDenyAll:
      return "deny_all";
  }
  return "ask";
}

std::string AuthOf(const AuthOptions& auth) {
  if (!auth.has_people()) return {};
  const std::string file = auth.tokens_file.empty() ? "" : ", from " + auth.tokens_file;
  if (auth.type == AuthOptions::Type::kTokens) return "OTHER USERS may use the server, with tokens" + file;
  return "OTHER USERS may use the server, with access tokens of " + auth.issuer + " for " + auth.audience +
         (auth.org_claim.empty() ? "" : ", org: " + auth.org_claim) +
         (auth.roles_claim.empty() ? "" : ", admins: " + auth.admin_role + " in " + auth.roles_claim) +
         ", and with tokens" + file;
}

// " (otherwise deny_all)"; empty if there is nothing to say of the key.
std::string RemarkOn(const Options& options, const std::string& key) {
  const auto asked = options.asked_keys.find(key);
  return asked == options.asked_keys.end() || asked->second.empty() ? "" : " (" + asked->second + ")";
}

// Keys of the configuration and their values.
using Values = std::vector<std::pair<std::string, std::string>>;

// The values that are shown in this way; with `other`, only those that differ from the defaults.
Values ValuesOf(const Options& options, Told told, bool other) {
  Values values;
  Options usual;
  SettingsDraft usual_draft;
  ForEachSetting(options, [&](const std::string& key, const Setting& setting, const SettingValue& value) {
    if (setting.rules.told != told) return;
    std::string text = ShownValue(setting, value);
    const bool is_usual = text == ShownValue(setting, setting.at(usual, usual_draft));
    const bool is_of_element = key != setting.key;
    const auto asked = options.asked_keys.find(key);
    if (is_usual && (other || is_of_element) && asked == options.asked_keys.end()) return;
    const bool is_harmless = is_usual || (setting.key == "host" && IsLoopbackHost(options.host));
    if (other && !setting.rules.note.empty() && !is_harmless) text += " (" + std::string(setting.rules.note) + ")";
    if (asked != options.asked_keys.end()) text = (text.empty() ? "none" : text) + RemarkOn(options, key);
    values.emplace_back(key, std::move(text));
  });
  return values;
}

}  // namespace

Result<FileDigests> FilesToTrust(const Options& options) {
  auto paths = TRY(FilesOfPrograms(options));
  for (std::string& module : PromptModulesOpenToTools(options)) paths.push_back(std::move(module));
  FileDigests files;
  for (const std::string& path : paths) {
    files[PlaceOf(path)] = TRY(Sha256OfFile(path));
  }
  return files;
}

std::string WhatItWouldDo(const Options& loaded, const FileDigests& files) {
  const Options& options = loaded.asked ? *loaded.asked : loaded;
  std::string text;
  const auto add = [&](const std::string& line) { text += "  " + VisibleLine(line) + "\n"; };
  const auto add_values = [&](Told told) {
    for (const auto& [key, value] : ValuesOf(options, told, /*other=*/true)) {
      add(key + ": " + (value.empty() ? "none" : value));
    }
  };
  add_values(Told::kFirst);
  for (const McpServerOptions& server : options.mcp_servers) add(ServerLine(server));
  for (const HookOptions& hook : options.hooks) {
    const HookOptions usual;
    add("runs the hook " + std::string(HookEventName(hook.event)) + ": " + QuotedWords(hook.command) +
        (hook.tool == usual.tool ? "" : ", for the tool " + hook.tool) +
        (hook.timeout == usual.timeout ? "" : ", for at most " + SecondsOf(hook.timeout)));
  }
  for (const auto& [key, names] : options.variables) {
    const std::string receiver = ReceiverOf(options, key);
    for (const std::string& name : names) {
      add((receiver.empty() ? "reads the variable " + name : "sends the variable " + name + " to " + receiver) + ": " +
          key);
    }
  }
  add("approval_mode: " + std::string(NameOf(options.approval_mode)) + RemarkOn(options, "approval_mode"));
  for (const ToolRule& rule : options.tools.rules) add("tools.rules: " + RuleLine(rule));
  add("model: " + options.model + RemarkOn(options, "model"));
  if (!options.bucket && options.asked_keys.contains("files.type")) add("keeps the files of chats with the chats");
  if (options.bucket) {
    add("keeps the files of chats, sealed, in the bucket " + options.bucket->bucket + " at " +
        options.bucket->endpoint + " (region " + options.bucket->region + ")");
  }
  for (const std::string& url : options.redis.urls) {
    add("tells other servers of the same database where to look through Redis at " + RedisHostOf(url));
  }
  const std::string undone = RemarkOn(options, "providers");
  if (!undone.empty()) add("providers: " + NamesOfUsed(options.providers) + undone);
  for (const ProviderOptions& provider : options.providers) {
    if (!GetsRequests(provider)) continue;
    add("may send prompts to " + provider.name + " at " + WithoutQuery(provider.base_url) +
        (provider.api_key.empty() ? "" : ", with a key") +
        (provider.headers.empty() ? "" : ", with headers: " + NamesOf(provider.headers)) +
        (provider.query.empty() ? "" : ", with query: " + NamesOf(provider.query)) + SearchOf(provider.web_search));
  }
  add("workspace: " + Resolved(options.workspace).string() + ", data folder: " + PlaceOf(options.data_dir) +
      RemarkOn(options, "data_dir"));
  add_values(Told::kAsOfServer);
  if (options.auth.has_people()) add("auth: " + AuthOf(options.auth));
  add_values(Told::kAsOfTurns);
  for (const auto& [path, digest] : files) add("uses " + path);
  return text;
}

FileDigests FolderToTrust(const std::string& folder) {
  const std::string path = Resolved(folder).string();
  return {{path, Sha256Digest({path})}};
}

bool IsHomeFolder(const std::string& folder, const Environment& environment) {
  const auto home = environment("HOME");
  return home && home->starts_with('/') && Resolved(folder) == Resolved(*home);
}

bool IsFolderAllowed(const std::string& trust_file, const std::string& folder) {
  const auto allowed = TrustedFiles(trust_file).Read();
  if (!allowed) return false;
  const FileDigests wanted = FolderToTrust(folder);
  const auto found = allowed->find(wanted.begin()->first);
  return found != allowed->end() && found->second == wanted.begin()->second;
}

Result<void> RequireHomeConsent(const Options& options, const Environment& environment, bool ask) {
  if (!options.has_workspace() || !IsHomeFolder(options.workspace, environment) ||
      IsFolderAllowed(options.trust_file, options.workspace)) {
    return {};
  }
  const std::string why =
      VisibleLine(Resolved(options.workspace).string()) +
      " is your home folder: the agent's tools could read and change whatever you keep there, such as other projects "
      "and the programs that your shell runs";
  if (!ask || !IsPersonThere() || !AnswersYes("reprise: " + why + ".\nWork here, now and later? [y/N] ")) {
    return Fail(Reason::kWorkspaceNotAllowed,
                why + "; `reprise trust ~` allows that, --workspace DIR names another folder");
  }
  return TrustedFiles(options.trust_file).Allow(FolderToTrust(options.workspace));
}

std::vector<std::pair<std::string, std::string>> ValuesOfTurns(const Options& options) {
  Values values = ValuesOf(options, Told::kAsOfTurns, /*other=*/false);
  for (auto& way_out : ValuesOf(options, Told::kFirst, /*other=*/false)) values.push_back(std::move(way_out));
  values.emplace_back("auth", AuthOf(options.auth));
  values.emplace_back("approval_mode", ToString(options.approval_mode));
  return values;
}

Result<void> RequireTrust(const Options& options, const FileDigests& files, bool ask) {
  const TrustedFiles trusted(options.trust_file);
  const auto allowed = TRY(trusted.Read());
  FileDigests missing;
  for (const auto& [path, digest] : files) {
    const auto found = allowed.find(path);
    if (found == allowed.end() || found->second != digest) missing[path] = digest;
  }
  if (missing.empty()) return {};
  if (!ask || !IsPersonThere()) return Fail(Untrusted(options, missing));
  std::string question = "reprise: not allowed yet, and tools could have written it:\n";
  for (const auto& [path, digest] : missing) question += "  " + VisibleLine(path) + "\n";
  question += "With it, the server:\n" + WhatItWouldDo(options, missing) + "Allow this? [y/N] ";
  if (!AnswersYes(question)) return Fail(Untrusted(options, missing));
  return trusted.Allow(missing);
}

}  // namespace reprise
