#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>

#include "app/auto_export.h"
#include "app/secrets.h"
#include "app/settings.h"
#include "base/public_address.h"
#include "base/text.h"
#include "engine/run_guard.h"
#include "mcp/oauth_documents.h"
#include "people/access_token.h"
#include "people/issuer_keys.h"
#include "remote/postgres/database.h"
#include "remote/redis/redis_connection.h"
#include "tools/network/host_rules.h"
#include "wire/gate.h"

namespace reprise {
namespace {

// The value of a member; created if the member is optional and will be written.
template <typename T>
T& ValueIn(T& member) {
  return member;
}
template <typename T>
T& ValueIn(std::optional<T>& member) {
  return member ? *member : member.emplace();
}

template <typename T>
double AsNumber(const T& value) {
  return static_cast<double>(value);
}
double AsNumber(const std::chrono::milliseconds& time) { return static_cast<double>(time.count()) / 1000; }
template <typename T>
std::optional<double> AsNumber(const std::optional<T>& value) {
  return value ? std::optional(AsNumber(*value)) : std::nullopt;
}

template <typename T>
SettingValue ValueAt(T& member) {
  using Value = std::remove_reference_t<decltype(ValueIn(member))>;
  constexpr bool kIsTime = std::is_same_v<Value, std::chrono::milliseconds>;
  constexpr bool kIsText = std::is_same_v<Value, std::string> || std::is_same_v<Value, Texts>;
  if constexpr (kIsText || std::is_same_v<Value, NamedTexts>) {
    return &ValueIn(member);
  } else {
    constexpr Scalar::Kind kKind = kIsTime                           ? Scalar::Kind::kSeconds
                                   : std::is_enum_v<Value>           ? Scalar::Kind::kName
                                   : std::is_same_v<Value, bool>     ? Scalar::Kind::kBool
                                   : std::is_floating_point_v<Value> ? Scalar::Kind::kNumber
                                                                     : Scalar::Kind::kInteger;
    return Scalar{kKind, &member,
                  [](const void* at) -> std::optional<double> { return AsNumber(*static_cast<const T*>(at)); },
                  [](void* at, double number) {
                    if constexpr (kIsTime) {
                      *static_cast<T*>(at) = std::chrono::milliseconds(std::llround(number * 1000));
                    } else {
                      *static_cast<T*>(at) = static_cast<Value>(number);
                    }
                  }};
  }
}

// 0: off, 1: adaptive, else a budget in tokens.
SettingValue ThinkingOf(ModelFacts& facts) {
  return Scalar{Scalar::Kind::kInteger, &facts,
                [](const void* at) -> std::optional<double> {
                  const ModelFacts& model = *static_cast<const ModelFacts*>(at);
                  if (model.thinking == ThinkingMode::kDefault) return std::nullopt;
                  if (model.thinking == ThinkingMode::kBudget) return AsNumber(model.thinking_budget);
                  return model.thinking == ThinkingMode::kOff ? 0 : 1;
                },
                [](void* at, double number) {
                  ModelFacts& model = *static_cast<ModelFacts*>(at);
                  model.thinking = number == 0   ? ThinkingMode::kOff
                                   : number == 1 ? ThinkingMode::kAdaptive
                                                 : ThinkingMode::kBudget;
                  if (number > 1) model.thinking_budget = static_cast<std::int64_t>(number);
                }};
}

using enum Told;
using enum Layer;

constexpr const char* kNotALine = "must be a text without control characters";

// Any text that can be an argument of a program.
std::string WrongWord(const std::string& text) {
  return text.find('\0') == std::string::npos ? "" : "must not hold a NUL character";
}

std::string WrongValue(const std::string& text) {
  return HasControlCharacter(text) ? "must not hold a control character" : "";
}

std::string WrongLine(const std::string& text) { return text.empty() || HasControlCharacter(text) ? kNotALine : ""; }

std::string WrongUrl(const std::string& text) {
  if (HasControlCharacter(text)) return kNotALine;
  if (!text.starts_with("http://") && !text.starts_with("https://")) return "must begin with http:// or https://";
  return HostOf(text).empty() ? "must name a server after http:// or https://" : "";
}

std::string WrongHttpsUrl(const std::string& text) {
  if (HasControlCharacter(text)) return kNotALine;
  return text.starts_with("https://") ? "" : "must begin with https://";
}

std::string WrongContact(const std::string& text) {
  const bool is_one = text.starts_with("https://") || text.starts_with("mailto:");
  return is_one && WrongLine(text).empty() && text.find(' ') == std::string::npos
             ? ""
             : "must begin with https:// or mailto:";
}

std::string WrongOAuthUrl(const std::string& text) {
  if (HasControlCharacter(text)) return kNotALine;
  return IsSafeOAuthUrl(text) ? "" : "must begin with https://";
}

std::string WrongFolder(const std::string& text) {
  return text.starts_with('/') && !HasControlCharacter(text) ? "" : "must be the full path of a folder";
}

std::string WrongSandboxPath(const std::string& text) {
  return text.starts_with('/') ? "" : "must be an absolute path, or begin with ~/";
}

std::string WrongHostRule(const std::string& text) {
  const auto rules = HostRules::Parse({text}, {});
  return rules ? "" : rules.error().message;
}

std::string WrongPattern(const std::string& text) {
  const auto usable = Guardrails::Check(text);
  return usable ? "" : usable.error().message;
}

std::string WrongPublicHost(const std::string& text) {
  const auto host = ParsePublicHost(text);
  return host ? "" : host.error().message;
}

std::string WrongIssuer(const std::string& text) {
  if (HasControlCharacter(text)) return kNotALine;
  return IsSafeIssuerUrl(text) ? "" : "must be a URL with https (or http to this machine)";
}

std::string WrongClaim(const std::string& text) {
  if (std::string wrong = WrongLine(text); !wrong.empty()) return wrong;
  return IsClaimName(text) ? "" : "must be a claim's name, or a JSON pointer";
}

std::string WrongDatabaseUrl(const std::string& text) {
  const auto checked = Database::CheckUrl(text);
  return checked || checked.error().code != ErrorCode::kInvalidArgument ? "" : checked.error().message;
}

std::string WrongRedisUrl(const std::string& text) {
  const auto parsed = RedisUrl::Parse(text);
  return parsed ? "" : parsed.error().message;
}

std::string WrongModelName(const std::string& text) {
  if (text.empty()) return "must not be empty";
  const std::size_t slash = text.find('/');
  const bool has_both = slash != std::string::npos && slash != 0 && slash + 1 != text.size();
  return has_both ? "" : "must be PROVIDER/MODEL";
}

// Whether the text has only letters, digits, '_' and the characters of `more`.
bool IsMadeOf(std::string_view text, std::string_view more, std::size_t least, std::size_t most) {
  return text.size() >= least && text.size() <= most && std::ranges::all_of(text, [&](char c) {
           return IsNameCharacter(c) || more.find(c) != std::string_view::npos;
         });
}

std::string WrongBucketEndpoint(const std::string& text) {
  std::string_view server = text;
  if (server.ends_with('/')) server.remove_suffix(1);
  server.remove_prefix(std::min(server.find("//") + 2, server.size()));
  return WrongUrl(text).empty() && IsMadeOf(server, ".-:[]", 1, 300)
             ? ""
             : "must be http:// or https:// and a server's name, perhaps with a port";
}

std::string WrongBucketName(const std::string& text) {
  return IsMadeOf(text, ".-", 3, 63) ? "" : "must be the name of a bucket (3 to 63 letters, digits, '.', '-', '_')";
}

std::string WrongExportPlace(const std::string& text) {
  if (text.starts_with('/') && !HasControlCharacter(text)) return "";
  if (const auto place = BucketPlace::Parse(text))
    return HasControlCharacter(text) ? kNotALine : WrongBucketName(place->bucket);
  if (text.starts_with("http")) return WrongUrl(text);
  return "must be the full path of a folder, or begin with http://, https:// or s3://";
}

std::string WrongBucketRegion(const std::string& text) {
  return IsMadeOf(text, "-", 1, 64) ? "" : "must be the name of a region";
}

std::string WrongBucketKey(const std::string& text) {
  const bool sound = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  return sound ? "" : "has characters that no key has (a space, a line end?)";
}

bool IsHeaderName(const std::string& name) { return IsMadeOf(name, "-", 1, std::string::npos); }

// Headers that frame a message or describe its content cannot be configured.
bool IsProviderHeaderName(const std::string& name) {
  static constexpr std::array<std::string_view, 12> kOurs{
      "host",    "content-length", "transfer-encoding", "connection", "content-type",    "te", "trailer",
      "upgrade", "expect",         "content-encoding",  "keep-alive", "proxy-connection"};
  return IsHeaderName(name) && std::ranges::find(kOurs, LowerCase(name)) == kOurs.end();
}

bool IsQueryName(const std::string& name) { return !name.empty() && !HasControlCharacter(name); }

// Of a search's results: without a scheme, perhaps with the beginning of a path.
std::string WrongDomain(const std::string& text) {
  return IsMadeOf(text, ".-/~", 1, 253) && text.find('.') != std::string::npos && text.find("//") == std::string::npos
             ? ""
             : "must be a domain such as example.org, without http:// or https://";
}

bool IsVariableName(const std::string& name) {
  return IsMadeOf(name, "", 1, std::string::npos) && (name[0] < '0' || name[0] > '9');
}

// Members of the options, and of a list's element.
#define OF(member) [](Options& options, SettingsDraft&) -> SettingValue { return ValueAt(options.member); }
#define EACH(member) [](Options&, SettingsDraft& draft) -> SettingValue { return ValueAt(draft.member); }

constexpr NumberRange kTokens{1, kNoHighest}, kAmount{0, 1e9}, kAnyLimit{0, 1 << 30}, kFileBytes{1, 64 << 20};
constexpr NumberRange kHour{0, 3600, /*above=*/true}, kDay{0, 86'400, /*above=*/true}, kDayOrNone{0, 86'400};
constexpr std::string_view kNoLimit = "no limit";

constexpr Setting kSettings[] = {
    // The settings that people look for first when they are asked to trust a configuration.
    {"tools.sandbox_paths.write",
     OF(tools.sandbox_write),
     {.wrong = WrongSandboxPath, .expands_home = true, .told = kFirst}},
    {"tools.sandbox_paths.read",
     OF(tools.sandbox_read),
     {.wrong = WrongSandboxPath, .expands_home = true, .told = kFirst}},
    {"tools.allow_unsandboxed", OF(tools.allow_unsandboxed), {.told = kFirst}},
    {"tools.network.allow", OF(tools.network_allow), {.wrong = WrongHostRule, .told = kFirst}},
    {"tools.network.unasked", OF(tools.network_unasked), {.wrong = WrongHostRule, .told = kFirst}},
    {"tools.network.ask", OF(tools.network_ask), {.told = kFirst}},
    {"tools.network.deny", OF(tools.network_deny), {.wrong = WrongHostRule}},
    {"tools.allow", OF(tools.allow)},
    {"tools.deny", OF(tools.deny)},
    {"tools.require_approval", OF(tools.require_approval)},
    {"tools.rules[].tool", EACH(rule.tool), {.told = kInWords}},
    {"tools.rules[].pattern", EACH(rule.pattern), {.told = kInWords}},
    {"tools.rules[].action", EACH(rule.action), {.choices = "allow,ask,deny", .told = kInWords}},
    {"tools.limits.memory_mb", OF(tools.limits.memory_mb), {.range = kAnyLimit, .zero = kNoLimit}},
    {"tools.limits.processes", OF(tools.limits.processes), {.range = kAnyLimit, .zero = kNoLimit}},
    {"tools.limits.file_size_mb", OF(tools.limits.file_size_mb), {.range = kAnyLimit, .zero = kNoLimit}},
    {"tools.limits.tmp_mb", OF(tools.limits.tmp_mb), {.range = kAnyLimit, .zero = kNoLimit}},
    {"tools.output.told_kb", OF(tools.output.told_kb), {.range = {1, 1024}}},
    {"tools.output.kept_mb", OF(tools.output.kept_mb), {.range = {0, 1 << 20}, .zero = "nothing is kept"}},
    {"tools.jobs.per_chat", OF(tools.jobs.per_chat), {.range = {0, 1000}, .zero = "no background jobs"}},
    {"tools.jobs.per_server", OF(tools.jobs.per_server), {.range = {0, 10'000}, .zero = "no background jobs"}},
    {"hooks[].event",
     EACH(hook.event),
     {.choices = "before_interaction,after_interaction,before_model,after_model,before_tool,after_tool,before_end",
      .told = kInWords}},
    {"hooks[].tool", EACH(hook.tool), {.told = kInWords}},
    {"hooks[].command", EACH(hook.command), {.wrong = WrongWord, .told = kInWords}},
    {"hooks[].timeout_s", EACH(hook.timeout), {.range = kHour, .told = kInWords}},
    {"titles", OF(titles), {.choices = "message,model", .told = kAsOfServer, .layer = kServer}},
    {"guardrails.input", OF(guardrails.input), {.wrong = WrongPattern}},
    {"guardrails.output", OF(guardrails.output), {.wrong = WrongPattern}},

    // Flags, in the order of `reprise serve --help`.
    {"host",
     OF(host),
     {.told = kAsOfServer, .note = "OTHER MACHINES can reach the server", .layer = kServer},
     {"host", "ADDRESS", "address to listen on (default 127.0.0.1); another than loopback needs --token-file"}},
    {"port",
     OF(port),
     {.range = {0, 65535}, .told = kAsOfServer, .layer = kServer},
     {"port", "PORT", "port to listen on (default 8000); 0 picks a free one"}},
    {"public_hosts",
     OF(public_hosts),
     {.wrong = WrongPublicHost, .told = kAsOfServer, .layer = kServer},
     {"public-hosts", "NAMES",
      "names, separated by commas, that clients reach the server by through a proxy, tunnel or mapped port"}},
    {"data_dir",
     OF(data_dir),
     {.told = kInWords, .layer = kServer},
     {"data-dir", "DIR", "folder of the chats (default $XDG_DATA_HOME/reprise/chats)"}},
    {"workspace",
     OF(workspace),
     {.told = kInWords, .layer = kServer},
     {"workspace", "DIR", "folder that the tools work in (default .)"}},
    {"workspace_mode",
     OF(workspace_mode),
     {.choices = ",local,shared,none", .layer = kServer},
     {"workspace-mode", "MODE",
      "local, shared or none: whose the workspace is (default local; with auth or a database none)"}},
    {"workspaces", OF(workspaces), {.wrong = WrongSandboxPath, .expands_home = true, .told = kFirst, .layer = kServer}},
    {"workspace_history",
     OF(workspace_history),
     {},
     {"workspace-history", "BOOL",
      "whether what changes in the workspace is recorded, so that an edit can take it back (default true)"}},
    {"model", OF(model), {.told = kInWords}, {"model", "NAME", "default model: offline or PROVIDER/NAME"}},
    {"plain",
     OF(plain),
     {.note = "chats are stored unencrypted", .layer = kServer},
     {"plain", "", "store chats unencrypted"}},
    {"key_file",
     OF(key_file),
     {.layer = kServer},
     {"key-file", "FILE", "key set (default $XDG_CONFIG_HOME/reprise/keys.jwks)"}},
    {"passphrase_file",
     OF(passphrase_file),
     {.told = kAsOfServer, .layer = kServer},
     {"passphrase-file", "FILE", "file (mode 0600) with the key set's passphrase, if it has one (default: asks)"}},
    {"token_file",
     OF(token_file),
     {.told = kAsOfServer, .layer = kServer},
     {"token-file", "FILE", "file (mode 0600) with the token that every request must show"}},
    {"log_level",
     OF(log_level),
     {.choices = "debug,info,warning,error", .told = kAsOfServer, .layer = kServer},
     {"log-level", "LEVEL", "debug, info, warning or error (default info)"}},
    {"log_format",
     OF(log_format),
     {.choices = "text,json", .told = kAsOfServer, .layer = kServer},
     {"log-format", "FORMAT", "text or json (default text)"}},
    {"log_file",
     OF(log_file),
     {.told = kAsOfServer, .layer = kServer},
     {"log-file", "FILE", "file that the log is appended to (default: standard error)"}},
    {"system_prompt",
     OF(system_prompt),
     {},
     {"system-prompt", "BOOL", "whether models are told anything before the conversation (default true)"}},
    {"prompt_dir",
     OF(prompt_dir),
     {},
     {"prompt-dir", "DIR", "folder of the system prompt's modules (default $XDG_CONFIG_HOME/reprise/prompt)"}},
    {"approval_mode",
     OF(approval_mode),
     {.choices = "ask,read_only,plan,auto,approve_all,deny_all", .told = kInWords},
     {"approval-mode", "MODE", "ask, read_only, plan, auto, approve_all or deny_all (default ask)"}},
    {"approval_expiry_s",
     OF(approval_expiry),
     {.range = kDayOrNone},
     {"approval-expiry-s", "S", "how long an approval waits before it is rejected (default 0: for ever)"}},
    {"max_rounds",
     OF(max_rounds),
     {.range = {1, 1000}},
     {"max-rounds", "N", "model requests per interaction (default 25)"}},
    {"max_retries",
     OF(max_retries),
     {.range = {0, 100}},
     {"max-retries", "N", "times a model request that failed is sent again (default 3)"}},
    {"max_tool_calls_per_minute",
     OF(max_tool_calls_per_minute),
     {.range = {0, 100'000}},
     {"max-tool-calls-per-minute", "N", "tool calls of a chat in any minute (default 0: as many as it likes)"}},
    {"max_end_checks",
     OF(max_end_checks),
     {.range = {0, 100}},
     {"max-end-checks", "N", "times that before_end hooks may send the agent back in an interaction (default 3)"}},
    {"provider_idle_timeout_s",
     OF(provider_idle_timeout),
     {.range = kDay},
     {"provider-idle-timeout-s", "S", "longest silence of a model (default 120)"}},
    {"disconnect_grace_s",
     OF(disconnect_grace),
     {.range = kDayOrNone},
     {"disconnect-grace-s", "S", "how long a run outlives its last client (default 2)"}},
    {"drain_s",
     OF(drain),
     {.range = kDayOrNone, .told = kAsOfServer, .layer = kServer},
     {"drain-s", "S", "how long runs may go on when the server is to stop (default 0, with a database 180)"}},
    {"tools.timeout_s",
     OF(tools.timeout),
     {.range = kDay},
     {"tool-timeout-s", "S", "longest run of one tool call (default 60)"}},

    {"telemetry.otlp_endpoint",
     OF(telemetry.traces.url),
     {.wrong = WrongUrl, .secrets = AddSecretsOfQuery, .layer = kServer}},
    {"telemetry.headers",
     OF(telemetry.traces.headers),
     {.wrong = WrongValue, .is_name = IsProviderHeaderName, .secrets = AddSecretsOfHeader, .layer = kServer}},
    {"telemetry.service_name", OF(telemetry.service_name), {.wrong = WrongLine, .layer = kServer}},
    {"telemetry.content",
     OF(telemetry.content),
     {.note = "what people, models and tools say is sent there", .layer = kServer}},
    {"export.auto",
     OF(auto_export.to),
     {.wrong = WrongExportPlace,
      .secrets = AddSecretsOfQuery,
      .note = "what people, models and tools say is written there",
      .layer = kServer}},
    {"export.format", OF(auto_export.format), {.choices = "jsonl,atif", .layer = kServer}},
    {"export.headers",
     OF(auto_export.headers),
     {.wrong = WrongValue, .is_name = IsProviderHeaderName, .secrets = AddSecretsOfHeader, .layer = kServer}},
    {"push.contact", OF(push.contact), {.wrong = WrongContact, .note = "push services are told it", .layer = kServer}},
    {"push.allow_private_addresses", OF(push.allow_private_addresses), {.layer = kServer}},
    {"telemetry.trace_providers", OF(telemetry.trace_providers), {.layer = kServer}},

    {"auth.type", OF(auth.type), {.choices = ",tokens,oidc", .told = kInWords, .layer = kServer}},
    {"auth.tokens_file", OF(auth.tokens_file), {.wrong = WrongLine, .told = kInWords, .layer = kServer}},
    {"auth.issuer", OF(auth.issuer), {.wrong = WrongIssuer, .told = kInWords, .layer = kServer}},
    {"auth.audience", OF(auth.audience), {.wrong = WrongLine, .told = kInWords, .layer = kServer}},
    {"auth.org_claim", OF(auth.org_claim), {.wrong = WrongClaim, .told = kInWords, .layer = kServer}},
    {"auth.roles_claim", OF(auth.roles_claim), {.wrong = WrongClaim, .told = kInWords, .layer = kServer}},
    {"auth.admin_role", OF(auth.admin_role), {.wrong = WrongLine, .told = kInWords, .layer = kServer}},

    {"store.type",
     OF(store.type),
     {.choices = "files,postgres", .note = "chats are kept in a database", .layer = kServer}},
    {"store.url", OF(store.url), {.wrong = WrongDatabaseUrl, .secrets = AddSecretsOfDatabase, .layer = kServer}},
    {"store.listen_url",
     OF(store.listen_url),
     {.wrong = WrongDatabaseUrl, .secrets = AddSecretsOfDatabase, .layer = kServer}},
    {"redis.url",
     OF(redis.urls),
     {.wrong = WrongRedisUrl, .secrets = AddSecretsOfDatabase, .may_be_one = true, .told = kInWords, .layer = kServer}},
    {"redis.ca_file", OF(redis.ca_file), {.wrong = WrongWord, .layer = kServer}},

    {"files.type", EACH(files), {.choices = "folder,s3", .told = kInWords, .layer = kServer}},
    {"files.endpoint", EACH(bucket.endpoint), {.wrong = WrongBucketEndpoint, .told = kInWords, .layer = kServer}},
    {"files.bucket", EACH(bucket.bucket), {.wrong = WrongBucketName, .told = kInWords, .layer = kServer}},
    {"files.region", EACH(bucket.region), {.wrong = WrongBucketRegion, .told = kInWords, .layer = kServer}},
    {"files.access_key",
     EACH(bucket.access_key),
     {.wrong = WrongBucketKey, .may_lack_variable = true, .told = kInWords, .layer = kServer}},
    {"files.secret_key",
     EACH(bucket.secret_key),
     {.wrong = WrongBucketKey, .secrets = AddSecret, .may_lack_variable = true, .told = kInWords, .layer = kServer}},
    {"files.max_file_bytes", OF(files.file_bytes), {.range = kFileBytes, .layer = kServer}},
    {"files.max_chat_bytes", OF(files.chat_bytes), {.range = {1, 1ull << 40}, .layer = kServer}},
    {"files.max_image_bytes", OF(parts.image_bytes), {.range = kFileBytes, .layer = kServer}},
    {"files.max_request_bytes", OF(parts.request_bytes), {.range = kFileBytes, .layer = kServer}},
    {"files.max_pdf_pages", OF(parts.pages), {.range = {0, 10'000}, .layer = kServer}},
    {"files.document_timeout_s", OF(document_timeout), {.range = {1, 600, false, /*whole=*/true}, .layer = kServer}},

    {"audio.transcription", OF(audio.transcription), {.wrong = WrongModelName, .layer = kServer}},
    {"audio.speech", OF(audio.speech), {.wrong = WrongModelName, .layer = kServer}},
    {"audio.talk", OF(audio.talk), {.wrong = WrongModelName, .layer = kServer}},
    {"audio.voice", OF(audio.voice), {.layer = kServer}},
    {"budget.max_tokens_per_interaction", OF(budget.max_tokens_per_interaction), {.range = kTokens}},
    {"budget.max_tokens_per_chat", OF(budget.max_tokens_per_chat), {.range = kTokens}},
    {"budget.max_tokens_per_day", OF(budget.max_tokens_per_day), {.range = kTokens, .layer = kServer}},
    {"budget.max_cost_per_chat", OF(budget.max_cost_per_chat), {.range = {0, 1e9, /*above=*/true}}},

    {"models.NAME.context_window", EACH(facts.context_window), {.range = kTokens}},
    {"models.NAME.max_output_tokens", EACH(facts.max_output_tokens), {.range = kTokens}},
    {"models.NAME.thinking",
     [](Options&, SettingsDraft& draft) { return ThinkingOf(draft.facts); },
     {.range = {1024, kNoHighest}, .choices = "off,adaptive"}},  // the API refuses smaller budgets
    {"models.NAME.effort", EACH(facts.effort), {.choices = ",none,low,medium,high"}},
    {"models.NAME.cache", EACH(facts.cache), {.choices = ",none,short,long"}},
    {"models.NAME.edit_format", EACH(facts.edit_format), {.choices = ",edit_file,apply_patch"}},
    {"models.NAME.abilities.tools", EACH(facts.abilities.tools)},
    {"models.NAME.abilities.images", EACH(facts.abilities.images)},
    {"models.NAME.abilities.pdf", EACH(facts.abilities.pdf)},
    {"models.NAME.abilities.audio", EACH(facts.abilities.audio)},
    {"models.NAME.abilities.reasoning", EACH(facts.abilities.reasoning)},
    {"models.NAME.input_price_per_mtok", EACH(price.input), {.range = kAmount, .layer = kServer}},
    {"models.NAME.output_price_per_mtok", EACH(price.output), {.range = kAmount, .layer = kServer}},
    {"models.NAME.cache_read_price_per_mtok", EACH(price.cache_read), {.range = kAmount, .layer = kServer}},
    {"models.NAME.cache_write_price_per_mtok", EACH(price.cache_write), {.range = kAmount, .layer = kServer}},
    {"models.NAME.search_price_per_thousand", EACH(price.searches), {.range = kAmount, .layer = kServer}},

    {"providers.NAME.type",
     EACH(provider.type),
     {.choices = "openai,openai_responses,openai_realtime,anthropic", .told = kInWords, .layer = kServer}},
    {"providers.NAME.base_url", EACH(provider.base_url), {.wrong = WrongUrl, .told = kInWords, .layer = kServer}},
    {"providers.NAME.api_key",
     EACH(provider.api_key),
     {.wrong = WrongWord, .secrets = AddSecret, .may_lack_variable = true, .told = kInWords, .layer = kServer}},
    {"providers.NAME.headers",
     EACH(provider.headers),
     {.wrong = WrongValue,
      .is_name = IsProviderHeaderName,
      .secrets = AddSecretsOfNamedHeader,
      .told = kInWords,
      .layer = kServer}},
    {"providers.NAME.query",
     EACH(provider.query),
     {.wrong = WrongValue,
      .is_name = IsQueryName,
      .secrets = AddSecretsOfNamedParameter,
      .told = kInWords,
      .layer = kServer}},
    {"providers.NAME.web_search", EACH(provider.web_search.is_on), {.told = kInWords, .layer = kServer}},
    {"providers.NAME.web_search.max_uses",
     EACH(provider.web_search.max_uses),
     {.range = {1, 1000}, .told = kInWords, .layer = kServer}},
    {"providers.NAME.web_search.allowed_domains",
     EACH(provider.web_search.allowed_domains),
     {.wrong = WrongDomain, .told = kInWords, .layer = kServer}},
    {"providers.NAME.web_search.blocked_domains",
     EACH(provider.web_search.blocked_domains),
     {.wrong = WrongDomain, .told = kInWords, .layer = kServer}},
    {"mcpServers.NAME.command", EACH(server.command), {.wrong = WrongLine, .told = kInWords}},
    {"mcpServers.NAME.args", EACH(server.arguments), {.wrong = WrongWord, .told = kInWords}},
    {"mcpServers.NAME.env",
     EACH(server.environment),
     {.wrong = WrongValue, .is_name = IsVariableName, .secrets = AddSecretsOfVariable, .told = kInWords}},
    {"mcpServers.NAME.cwd", EACH(server.cwd), {.wrong = WrongFolder, .told = kInWords}},
    {"mcpServers.NAME.url", EACH(server.url), {.wrong = WrongUrl, .secrets = AddSecretsOfQuery, .told = kInWords}},
    {"mcpServers.NAME.headers",
     EACH(server.headers),
     {.wrong = WrongValue, .is_name = IsHeaderName, .secrets = AddSecretsOfHeader, .told = kInWords}},
    {"mcpServers.NAME.auth.type", EACH(login_type), {.choices = "oauth", .told = kInWords}},
    {"mcpServers.NAME.auth.client_id", EACH(login.client_id), {.wrong = WrongLine, .told = kInWords}},
    {"mcpServers.NAME.auth.client_secret",
     EACH(login.client_secret),
     {.wrong = WrongLine, .secrets = AddSecret, .told = kInWords}},
    {"mcpServers.NAME.auth.client_metadata_url",
     EACH(login.client_metadata_url),
     {.wrong = WrongHttpsUrl, .told = kInWords}},
    {"mcpServers.NAME.auth.issuer", EACH(login.issuer), {.wrong = WrongOAuthUrl, .told = kInWords}},
    {"mcpServers.NAME.auth.scopes", EACH(login.scopes), {.wrong = WrongWord, .told = kInWords}},
    {"mcpServers.NAME.roots", EACH(server.roots), {.wrong = WrongFolder, .told = kInWords}},
    {"mcpServers.NAME.trust_annotations", EACH(server.trust_annotations), {.told = kInWords}},
    {"mcpServers.NAME.shared", EACH(server.shared), {.told = kInWords}},
    {"mcpServers.NAME.startup_timeout_s", EACH(server.startup_timeout), {.range = kHour, .told = kInWords}},
};

#undef OF
#undef EACH

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

}  // namespace reprise
