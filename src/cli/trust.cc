#include "cli/trust.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/console.h"
#include "cli/private_file.h"
#include "cli/program_files.h"
#include "cli/prompt_folder.h"
#include "cli/terminal_text.h"
#include "crypto/digest.h"
#include "tools/hook_commands.h"

namespace reprise {
namespace {

Error Untrusted(const Options& options, const FileDigests& files) {
  std::string names, hint = "reprise trust";
  for (const auto& [path, digest] : files) names += (names.empty() ? "" : ", ") + path;
  hint += " " + (options.config_file.empty() ? names : options.config_file);
  if (options.workspace != ".") hint += " --workspace " + options.workspace;
  return Error{.code = ErrorCode::kForbidden,
               .reason = "untrusted",
               .message = names + (files.size() == 1 ? " is new or has" : " are new or have") +
                          " changed since you allowed it, and the agent's tools could have written it; `" + hint +
                          "` shows what the server would do and allows it, --config FILE uses another configuration"};
}

// Nothing that was typed before the question was drawn answers it.
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

std::string Words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\r\n'\"") == std::string::npos;
    line += (line.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return line;
}

std::string Names(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string names;
  for (const auto& [name, value] : pairs) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string ServerLine(const McpServerOptions& server) {
  if (!server.url.empty()) {
    return "speaks to the MCP server " + server.name + " at " + server.url.substr(0, server.url.find('?')) +
           (server.headers.empty() ? "" : ", with headers: " + Names(server.headers));
  }
  std::vector<std::string> words = {server.command};
  words.insert(words.end(), server.arguments.begin(), server.arguments.end());
  return "runs the MCP server " + server.name + ": " + Words(words) +
         (server.cwd.empty() ? "" : " (in " + server.cwd + ")") +
         (server.environment.empty() ? "" : ", with variables: " + Names(server.environment));
}

std::string_view NameOf(ApprovalMode mode) {
  switch (mode) {
    case ApprovalMode::kAsk:
      return "ask";
    case ApprovalMode::kReadOnly:
      return "read_only (what only reads does not ask)";
    case ApprovalMode::kApproveAll:
      return "approve_all (NOTHING asks)";
    case ApprovalMode::kDenyAll:
      return "deny_all";
  }
  return "ask";
}

// Each setting of a configuration by its path, "tools.sandbox_paths.write: [\"/srv\"]", that nothing else tells of.
void AddSettings(const Json& object, const std::string& prefix, std::vector<std::string>& lines) {
  static const std::vector<std::string_view> told = {"$schema", "mcpServers", "hooks",    "providers",
                                                     "model",   "workspace",  "data_dir", "approval_mode"};
  constexpr std::size_t kShownValue = 300;
  for (const auto& [name, value] : object.items()) {
    if (prefix.empty() && std::find(told.begin(), told.end(), name) != told.end()) continue;
    if (value.is_object() && !value.empty()) {
      AddSettings(value, prefix + name + ".", lines);
    } else {
      lines.push_back(prefix + name + ": " + Shortened(DumpJson(value), kShownValue));
    }
  }
}

// What commands may reach comes first.
std::vector<std::string> SettingsOf(const std::string& config_file) {
  constexpr std::size_t kMost = 1 << 20;
  std::vector<std::string> lines;
  const auto text = ReadSmallFile(config_file, kMost);
  const auto root = text ? ParseJsonWithComments(*text) : Fail(text.error());
  if (root && root->is_object()) AddSettings(*root, "", lines);
  std::stable_partition(lines.begin(), lines.end(),
                        [](const std::string& line) { return line.starts_with("tools.sandbox_paths"); });
  return lines;
}

}  // namespace

Result<FileDigests> FilesToTrust(const Options& options) {
  auto paths = FilesOfPrograms(options);
  if (!paths) return Fail(paths.error());
  for (std::string& module : PromptModulesOpenToTools(options)) paths->push_back(std::move(module));
  FileDigests files;
  for (const std::string& path : *paths) {
    auto digest = Sha256OfFile(path);
    if (!digest) return Fail(digest.error());
    files[PlaceOf(path)] = *std::move(digest);
  }
  return files;
}

std::string WhatItWouldDo(const Options& options, const FileDigests& files) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "  " + VisibleLine(line) + "\n"; };
  for (const McpServerOptions& server : options.mcp_servers) add(ServerLine(server));
  for (const HookOptions& hook : options.hooks) {
    add("runs the hook " + std::string(HookEventName(hook.event)) + ": " + Words(hook.command));
  }
  add("approval_mode: " + std::string(NameOf(options.approval_mode)));
  add("model: " + options.model);
  for (const ProviderOptions& provider : options.providers) {
    add("sends what models are told to " + provider.name + " at " + provider.base_url +
        (provider.api_key.empty() ? "" : ", with a key"));
  }
  if (!options.config_file.empty()) {
    for (const std::string& line : SettingsOf(options.config_file)) add(line);
  }
  std::error_code failed;
  const std::string workspace = std::filesystem::weakly_canonical(options.workspace, failed).string();
  add("workspace: " + (failed ? options.workspace : workspace) + ", data folder: " + PlaceOf(options.data_dir));
  for (const auto& [path, digest] : files) add("uses " + path);
  return text;
}

Result<void> RequireTrust(const Options& options, const FileDigests& files, bool ask) {
  const TrustedFiles trusted(options.trust_file);
  const auto allowed = trusted.Read();
  if (!allowed) return Fail(allowed.error());
  FileDigests missing;
  for (const auto& [path, digest] : files) {
    const auto found = allowed->find(path);
    if (found == allowed->end() || found->second != digest) missing[path] = digest;
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
