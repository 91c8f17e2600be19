#include "app/trust.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "app/options.h"
#include "app/program_files.h"
#include "app/prompt_folder.h"
#include "app/secrets.h"
#include "base/json.h"
#include "base/path.h"
#include "base/terminal_text.h"
#include "crypto/digest.h"
#include "redis/redis_url.h"
#include "terminal/console.h"
#include "tools/shell/hook_commands.h"

namespace reprise {
namespace {

Error Untrusted(const Options& options, const FileDigests& files) {
  std::string names, hint = "reprise trust";
  for (const auto& [path, digest] : files) names += (names.empty() ? "" : ", ") + path;
  hint += " " + (options.config_file.empty() ? names : options.config_file);
  if (options.workspace != ".") hint += " --workspace " + options.workspace;
  const bool one = files.size() == 1;
  return Error{
      .code = ErrorCode::kForbidden,
      .reason = "untrusted",
      .message =
          names +
          (one ? " is new or has changed since you allowed it, and the agent's tools could have written it; `"
               : " are new or have changed since you allowed them, and the agent's tools could have written them; `") +
          hint + "` shows what the server would do and allows " + (one ? "it" : "them") +
          ", --config FILE uses another configuration"};
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

// Where secrets may be.
std::string WithoutQuery(const std::string& url) { return url.substr(0, url.find('?')); }

// Of redis://USER:PASSWORD@HOST/...
std::string HostOf(const std::string& url) {
  const auto parsed = RedisUrl::Parse(url);
  return parsed ? parsed->name() : "an address that cannot be read";
}

std::string SecondsOf(std::chrono::milliseconds time) {
  const std::int64_t whole = time.count() / 1000, rest = time.count() % 1000;
  return std::to_string(whole) + (rest == 0 ? "" : "." + std::to_string(1000 + rest).substr(1)) + " s";
}

std::string ServerLine(const McpServerOptions& server) {
  const std::string more =
      (server.roots ? ", and is told to work in " + (server.roots->empty() ? "no folder" : Words(*server.roots)) : "") +
      std::string(server.trust_annotations ? ", and believes what it says of its tools (trust_annotations)" : "") +
      (server.startup_timeout == McpServerOptions().startup_timeout
           ? ""
           : ", and waits " + SecondsOf(server.startup_timeout) + " for its start");
  if (!server.url.empty()) {
    return "speaks to the MCP server " + server.name + " at " + WithoutQuery(server.url) +
           (server.headers.empty() ? "" : ", with headers: " + Names(server.headers)) + more;
  }
  std::vector<std::string> words = {server.command};
  words.insert(words.end(), server.arguments.begin(), server.arguments.end());
  return "runs the MCP server " + server.name + ": " + Words(words) +
         (server.cwd.empty() ? "" : " (in " + server.cwd + ")") +
         (server.environment.empty() ? "" : ", with variables: " + Names(server.environment)) + more;
}

// Who is sent what stands under this key of the configuration; empty: nobody outside of the server. Names may have
// dots: where a key may be of several, all are told.
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
    for (const std::string& url : options.redis.urls) add(HostOf(url));
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
    case ApprovalMode::kApproveAll:
      return "approve_all (NOTHING asks)";
    case ApprovalMode::kDenyAll:
      return "deny_all";
  }
  return "ask";
}

std::string Limit(auto limit) { return limit == 0 ? "0 (no limit)" : std::to_string(limit); }

std::string Amount(double amount) {
  std::ostringstream text;
  text << amount;
  return text.str();
}

std::string_view NameOf(WorkspaceMode mode) {
  switch (mode) {
    case WorkspaceMode::kUsual:
      return "";
    case WorkspaceMode::kLocal:
      return "local";
    case WorkspaceMode::kShared:
      return "shared";
    case WorkspaceMode::kNone:
      return "none";
  }
  return "";
}

std::string YesOrNo(bool yes) { return yes ? "true" : "false"; }

std::string AuthOf(const AuthOptions& auth) {
  if (!auth.has_people()) return {};
  const std::string file = auth.tokens_file.empty() ? "" : ", from " + auth.tokens_file;
  if (auth.type == AuthOptions::Type::kTokens) return "OTHER USERS may use the server, with tokens" + file;
  return "OTHER USERS may use the server, with access tokens of " + auth.issuer + " for " + auth.audience +
         (auth.org_claim.empty() ? "" : ", org: " + auth.org_claim) +
         (auth.roles_claim.empty() ? "" : ", admins: " + auth.admin_role + " in " + auth.roles_claim) +
         ", and with tokens" + file;
}

std::string ThinkingOf(const ModelFacts& facts) {
  switch (facts.thinking) {
    case ThinkingMode::kDefault:
      return {};
    case ThinkingMode::kOff:
      return ", thinking off";
    case ThinkingMode::kAdaptive:
      return ", thinking adaptive";
    case ThinkingMode::kBudget:
      return ", thinking with " + std::to_string(facts.thinking_budget) + " tokens";
  }
  return {};
}

std::string EffortOf(const ModelFacts& facts) {
  return facts.effort == Effort::kDefault ? "" : ", effort " + std::string(ToString(facts.effort));
}

std::string CacheOf(const ModelFacts& facts) {
  switch (facts.cache) {
    case PromptCache::kDefault:
      return {};
    case PromptCache::kNone:
      return ", no caching of prompts";
    case PromptCache::kShort:
      return ", short caching of prompts";
    case PromptCache::kLong:
      return ", long caching of prompts";
  }
  return {};
}

std::string AbilitiesOf(const ModelFacts& facts) {
  std::string text;
  for (const AbilityName& ability : kAbilityNames) {
    if (const auto has = facts.abilities.*ability.member) {
      text += (*has ? ", takes " : ", does not take ") + std::string(ability.name);
    }
  }
  return text;
}

// Keys of the configuration and what they are, in the order in which they are shown. What WhatItWouldDo says in words
// of its own is not among them.
using Values = std::vector<std::pair<std::string, std::string>>;

// Above all else, since they take the walls away that tools are behind.
Values WaysOutOfTheSandbox(const Options& options) {
  return {{"tools.sandbox_paths.write", Words(options.tools.sandbox_write)},
          {"tools.sandbox_paths.read", Words(options.tools.sandbox_read)}};
}

// Of the server, whatever it is asked to do.
Values ValuesOfServer(const Options& options) {
  const std::string reach = IsLoopback(options.host) ? "" : " (OTHER MACHINES can reach the server)";
  return {{"host", options.host + reach},
          {"port", std::to_string(options.port)},
          {"public_hosts", Words(options.public_hosts)},
          {"token_file", options.token_file},
          {"passphrase_file", options.passphrase_file},
          {"log_file", options.log_file},
          {"log_level", options.log_level},
          {"log_format", options.log_format},
          {"drain_s", options.drain ? SecondsOf(*options.drain) : "as usual"}};
}

Values OtherValues(const Options& options) {
  const ToolPolicy& tools = options.tools;
  const TelemetryOptions& telemetry = options.telemetry;
  Values values = {
      {"telemetry.otlp_endpoint", WithoutQuery(telemetry.traces.url)},
      {"telemetry.headers", Names(telemetry.traces.headers)},
      {"telemetry.service_name", telemetry.service_name},
      {"telemetry.content", telemetry.content ? "true (what people, models and tools say is sent there)" : "false"},
      {"telemetry.trace_providers", YesOrNo(telemetry.trace_providers)},
      {"auth", AuthOf(options.auth)},
      {"workspace_mode", std::string(NameOf(options.workspace_mode))},
      {"key_file", options.key_file},
      {"plain", options.plain ? "true (chats are stored unencrypted)" : "false"},
      {"prompt_dir", options.prompt_dir},
      {"workspace_history", YesOrNo(options.workspace_history)},
      {"system_prompt", YesOrNo(options.system_prompt)},
      {"store.type",
       options.store.type == StoreOptions::Type::kPostgres ? "postgres (chats are kept in a database)" : "files"},
      {"store.url", WithoutPassword(options.store.url)},
      {"store.listen_url", WithoutPassword(options.store.listen_url)},
      {"redis.ca_file", options.redis.ca_file},
      {"guardrails.input", Words(options.guardrails.input)},
      {"guardrails.output", Words(options.guardrails.output)},
      {"tools.allow", Words(tools.allow)},
      {"tools.deny", Words(tools.deny)},
      {"tools.require_approval", Words(tools.require_approval)},
      {"tools.timeout_s", SecondsOf(tools.timeout)},
      {"tools.limits.memory_mb", Limit(tools.limits.memory_mb)},
      {"tools.limits.processes", Limit(tools.limits.processes)},
      {"tools.limits.file_size_mb", Limit(tools.limits.file_size_mb)},
      {"tools.limits.tmp_mb", Limit(tools.limits.tmp_mb)},
      {"audio.transcription", options.audio.transcription},
      {"audio.speech", options.audio.speech},
      {"audio.voice", options.audio.voice},
      {"files.max_file_bytes", std::to_string(options.files.file_bytes)},
      {"files.max_chat_bytes", std::to_string(options.files.chat_bytes)},
      {"files.max_image_bytes", std::to_string(options.parts.image_bytes)},
      {"files.max_request_bytes", std::to_string(options.parts.request_bytes)},
      {"files.max_pdf_pages", std::to_string(options.parts.pages)},
      {"files.document_timeout_s", SecondsOf(options.document_timeout)},
      {"approval_expiry_s", SecondsOf(options.approval_expiry)},
      {"max_rounds", std::to_string(options.max_rounds)},
      {"max_retries", std::to_string(options.max_retries)},
      {"max_tool_calls_per_minute", std::to_string(options.max_tool_calls_per_minute)},
      {"provider_idle_timeout_s", SecondsOf(options.provider_idle_timeout)},
      {"disconnect_grace_s", SecondsOf(options.disconnect_grace)},
      {"budget.max_tokens_per_interaction", Limit(options.budget.max_tokens_per_interaction)},
      {"budget.max_tokens_per_chat", Limit(options.budget.max_tokens_per_chat)},
      {"budget.max_tokens_per_day", Limit(options.budget.max_tokens_per_day)},
      {"budget.max_cost_per_chat", Amount(options.budget.max_cost_per_chat)},
  };
  for (const auto& [name, facts] : options.models) {
    values.emplace_back("models." + name, "context window " + std::to_string(facts.context_window) + ", output " +
                                              std::to_string(facts.max_output_tokens) + ThinkingOf(facts) +
                                              EffortOf(facts) + CacheOf(facts) + AbilitiesOf(facts));
  }
  for (const auto& [name, price] : options.prices) {
    std::string text = Amount(price.input) + " for input, " + Amount(price.output) + " for output";
    if (price.cache_read) text += ", " + Amount(*price.cache_read) + " for cache_read";
    if (price.cache_write) text += ", " + Amount(*price.cache_write) + " for cache_write";
    values.emplace_back("the price of " + name, text);
  }
  return values;
}

// Those of `values` that are not as they are by default.
Values OtherThan(const Values& defaults, Values values) {
  std::erase_if(
      values, [&](const auto& value) { return std::find(defaults.begin(), defaults.end(), value) != defaults.end(); });
  return values;
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
  const auto add_values = [&](const Values& values) {
    for (const auto& [key, value] : values) add(key + ": " + (value.empty() ? "none" : value));
  };
  const Options defaults;
  add_values(OtherThan(WaysOutOfTheSandbox(defaults), WaysOutOfTheSandbox(options)));
  for (const McpServerOptions& server : options.mcp_servers) add(ServerLine(server));
  for (const HookOptions& hook : options.hooks) {
    const HookOptions usual;
    add("runs the hook " + std::string(HookEventName(hook.event)) + ": " + Words(hook.command) +
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
  add("approval_mode: " + std::string(NameOf(options.approval_mode)));
  for (const ToolRule& rule : options.tools.rules) add("tools.rules: " + RuleLine(rule));
  add("model: " + options.model);
  if (options.bucket) {
    add("keeps the files of chats, sealed, in the bucket " + options.bucket->bucket + " at " +
        options.bucket->endpoint + " (region " + options.bucket->region + ")");
  }
  for (const std::string& url : options.redis.urls) {
    add("tells other servers of the same database where to look through Redis at " + HostOf(url));
  }
  for (const ProviderOptions& provider : options.providers) {
    // Of those that are there without a configuration, one that has no key is asked nothing.
    const bool is_usual = (provider.name == "openai" && provider.base_url == "https://api.openai.com/v1") ||
                          (provider.name == "anthropic" && provider.base_url == "https://api.anthropic.com");
    if (is_usual && provider.api_key.empty() && provider.headers.empty() && provider.query.empty()) continue;
    add("may send prompts to " + provider.name + " at " + provider.base_url +
        (provider.api_key.empty() ? "" : ", with a key") +
        (provider.headers.empty() ? "" : ", with headers: " + Names(provider.headers)) +
        (provider.query.empty() ? "" : ", with query: " + Names(provider.query)));
  }
  add("workspace: " + Resolved(options.workspace).string() + ", data folder: " + PlaceOf(options.data_dir));
  add_values(OtherThan(ValuesOfServer(defaults), ValuesOfServer(options)));
  add_values(OtherThan(OtherValues(defaults), OtherValues(options)));
  for (const auto& [path, digest] : files) add("uses " + path);
  return text;
}

std::vector<std::pair<std::string, std::string>> ValuesOfTurns(const Options& options) {
  Values values = OtherValues(options);
  for (auto& way_out : WaysOutOfTheSandbox(options)) values.push_back(std::move(way_out));
  values.emplace_back("approval_mode", ToString(options.approval_mode));
  return values;
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
