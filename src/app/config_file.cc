#include "app/config_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/settings.h"
#include "app/telemetry_variables.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "base/utf8.h"
#include "engine/run_guard.h"
#include "mcp/oauth_documents.h"
#include "people/access_token.h"
#include "people/issuer_keys.h"
#include "postgres/database.h"
#include "redis/redis_url.h"
#include "tools/shell/hook_commands.h"

namespace reprise {
namespace {

constexpr std::string_view kPriceSuffix = "_price_per_mtok";
constexpr std::uint64_t kMostFileBytes = 64ull << 20, kMostChatBytes = 1ull << 40;
constexpr int kMostPages = 10'000, kMostDocumentSeconds = 600;
constexpr std::uint64_t kMostOfALimit = 1ull << 30;
constexpr std::int64_t kLeastThinkingBudget = 1024;  // the API refuses smaller ones

Result<void> Reject(std::string_view key, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, "key \"" + std::string(key) + "\" " + std::string(why));
}

Result<void> UnknownKey(std::string_view key) {
  return Fail(ErrorCode::kInvalidArgument, "unknown key \"" + std::string(key) + "\"");
}

std::string Join(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string(key) : std::string(parent) + "." + std::string(key);
}

bool IsNameCharacter(char c) { return IsAsciiAlnum(c) || c == '_'; }

// What one string with references has become.
struct Substituted {
  std::string text;
  std::string missing;  // the first variable that is not set
};

class ConfigReader {
 public:
  ConfigReader(Options& options, const Environment& environment) : options_(options), environment_(environment) {}

  Result<void> ReadRoot(const Json& root) {
    if (!root.is_object()) return Fail(ErrorCode::kInvalidArgument, "must be a JSON object");
    for (const auto& [key, value] : root.items()) {
      if (auto read = ReadMember(key, value); !read) return read;
    }
    if (!options_.redis.urls.empty() && options_.store.type != StoreOptions::Type::kPostgres) {
      return Reject("redis", "belongs to the store.type postgres");
    }
    return {};
  }

 private:
  using Reader = Result<void> (ConfigReader::*)(const std::string& key, const Json& value);

  Result<void> ReadMember(const std::string& key, const Json& value) {
    if (key == "$schema") return {};  // for editors
    if (key == "providers") return ReadObject(key, value, &ConfigReader::ReadProviders);
    if (key == "mcpServers") return ReadObject(key, value, &ConfigReader::ReadMcpServers);
    if (key == "models") return ReadObject(key, value, &ConfigReader::ReadModels);
    if (key == "budget") return ReadObject(key, value, &ConfigReader::ReadBudget);
    if (key == "auth") return ReadObject(key, value, &ConfigReader::ReadAuth);
    if (key == "hooks") return ReadHooks(key, value);
    if (key == "guardrails") return ReadObject(key, value, &ConfigReader::ReadGuardrails);
    if (key == "audio") return ReadObject(key, value, &ConfigReader::ReadAudio);
    if (key == "tools") return ReadObject(key, value, &ConfigReader::ReadTools);
    if (key == "store") return ReadObject(key, value, &ConfigReader::ReadStore);
    if (key == "redis") return ReadObject(key, value, &ConfigReader::ReadRedis);
    if (key == "files") return ReadObject(key, value, &ConfigReader::ReadFiles);
    if (key == "telemetry") return ReadObject(key, value, &ConfigReader::ReadTelemetry);
    for (const Setting& setting : Settings()) {
      if (ConfigKey(setting) == key) return ReadSetting(key, value, setting);
    }
    return UnknownKey(key);
  }

  Result<void> ReadObject(const std::string& key, const Json& value, Reader read) {
    if (!value.is_object()) return Reject(key, "must be an object");
    return (this->*read)(key, value);
  }

  Result<Substituted> Substitute(const std::string& key, std::string_view text) {
    Substituted out;
    for (std::size_t at = 0; at < text.size();) {
      if (text.substr(at, 3) == "$${") {
        out.text += "${";
        at += 3;
        continue;
      }
      if (text.substr(at, 2) != "${") {
        out.text += text[at++];
        continue;
      }
      const std::size_t end = text.find('}', at);
      if (end == std::string_view::npos) return tl::unexpected(Reject(key, "has a ${ without its }").error());
      const std::string name(text.substr(at + 2, end - at - 2));
      if (name.empty() || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
        return tl::unexpected(Reject(key, "has a ${...} that is not the name of an environment variable").error());
      }
      options_.variables[key].push_back(name);
      const auto value = environment_(name);
      if (value) out.text += *value;
      if (!value && out.missing.empty()) out.missing = name;
      at = end + 1;
    }
    return out;
  }

  Result<std::string> ReadText(const std::string& key, const Json& value) {
    if (!value.is_string()) return tl::unexpected(Reject(key, "must be a string").error());
    auto substituted = Substitute(key, value.get_ref<const std::string&>());
    if (!substituted) return Fail(substituted.error());
    if (!substituted->missing.empty()) {
      return tl::unexpected(
          Reject(key, "uses the environment variable " + substituted->missing + ", which is not set").error());
    }
    return std::move(substituted->text);
  }

  // Empty, if the key's variable is not set.
  Result<std::string> ReadApiKey(const std::string& key, const Json& value) {
    if (!value.is_string()) return tl::unexpected(Reject(key, "must be a string").error());
    auto substituted = Substitute(key, value.get_ref<const std::string&>());
    if (!substituted) return Fail(substituted.error());
    return substituted->missing.empty() ? std::move(substituted->text) : std::string();
  }

  Result<void> ReadSetting(const std::string& key, const Json& value, const Setting& setting) {
    auto text = SettingText(key, value, setting.kind);
    if (!text) return Fail(text.error());
    if (auto applied = setting.apply(options_, *text); !applied) return Reject(key, applied.error().message);
    return {};
  }

  Result<std::string> SettingText(const std::string& key, const Json& value, SettingKind kind) {
    switch (kind) {
      case SettingKind::kText:
        return ReadText(key, value);
      case SettingKind::kInteger:
        if (!value.is_number_integer()) return tl::unexpected(Reject(key, "must be an integer").error());
        return value.dump();
      case SettingKind::kNumber:
        if (!value.is_number()) return tl::unexpected(Reject(key, "must be a number").error());
        return value.dump();
      case SettingKind::kBool:
        if (!value.is_boolean()) return tl::unexpected(Reject(key, "must be true or false").error());
        return value.dump();
      case SettingKind::kList:
        return ListText(key, value);
    }
    return std::string();
  }

  Result<std::string> ListText(const std::string& key, const Json& value) {
    if (!value.is_array()) return tl::unexpected(Reject(key, "must be an array of texts").error());
    std::string all;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string place = key + "[" + std::to_string(i) + "]";
      const auto text = ReadText(place, value[i]);
      if (!text) return Fail(text.error());
      if (text->empty() || text->find(',') != std::string::npos) {
        return tl::unexpected(Reject(place, "must be one name").error());
      }
      all += (all.empty() ? "" : ",") + *text;
    }
    return all;
  }

  // Providers that are named here replace the built-in ones: nothing is offered that the file does not say.
  Result<void> ReadProviders(const std::string& key, const Json& value) {
    options_.providers.clear();
    for (const auto& [name, members] : value.items()) {
      const std::string place = Join(key, name);
      if (!IsProviderName(name))
        return Reject(place, "is not a name for a provider (letters, digits, '_', '-', '.'; not offline)");
      if (!members.is_object()) return Reject(place, "must be an object");
      auto provider = ReadProvider(place, members);
      if (!provider) return Fail(provider.error());
      provider->name = name;
      options_.providers.push_back(*std::move(provider));
    }
    return {};
  }

  static bool IsProviderName(const std::string& name) { return IsServerName(name) && name != "offline"; }

  Result<ProviderOptions> ReadProvider(const std::string& place, const Json& members) {
    ProviderOptions provider;
    for (const auto& [key, value] : members.items()) {
      if (key == "headers" || key == "query") {
        const bool headers = key == "headers";
        auto& pairs = headers ? provider.headers : provider.query;
        auto read = ReadPairs(Join(place, key), value, pairs, headers ? IsProviderHeaderName : IsQueryName);
        if (!read) return Fail(read.error());
        continue;
      }
      std::string* target = key == "type"       ? &provider.type
                            : key == "base_url" ? &provider.base_url
                            : key == "api_key"  ? &provider.api_key
                                                : nullptr;
      if (target == nullptr) return tl::unexpected(UnknownKey(Join(place, key)).error());
      auto text = key == "api_key" ? ReadApiKey(Join(place, key), value) : ReadText(Join(place, key), value);
      if (!text) return Fail(text.error());
      *target = *std::move(text);
    }
    if (provider.type != "openai" && provider.type != "openai_responses" && provider.type != "anthropic") {
      return tl::unexpected(Reject(Join(place, "type"), "must be openai, openai_responses or anthropic").error());
    }
    const bool has_scheme = provider.base_url.starts_with("http://") || provider.base_url.starts_with("https://");
    if (members.contains("base_url") && !has_scheme) {
      return tl::unexpected(Reject(Join(place, "base_url"), "must begin with http:// or https://").error());
    }
    for (auto& [name, text] : provider.query) name = PercentEncoded(name), text = PercentEncoded(text);
    return provider;
  }

  // What says where a message ends and what it is made of is not the configuration's.
  static bool IsProviderHeaderName(const std::string& name) {
    static constexpr std::array<std::string_view, 12> kOurs{
        "HOST",    "CONTENT-LENGTH", "TRANSFER-ENCODING", "CONNECTION", "CONTENT-TYPE",    "TE", "TRAILER",
        "UPGRADE", "EXPECT",         "CONTENT-ENCODING",  "KEEP-ALIVE", "PROXY-CONNECTION"};
    std::string upper = name;
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
    return IsHeaderName(name) && std::find(kOurs.begin(), kOurs.end(), upper) == kOurs.end();
  }
  static bool IsQueryName(const std::string& name) { return !name.empty() && !HasControlCharacter(name); }

  Result<void> ReadMcpServers(const std::string& key, const Json& value) {
    options_.mcp_servers.clear();
    for (const auto& [name, members] : value.items()) {
      const std::string place = Join(key, name);
      if (!IsServerName(name)) return Reject(place, "is not a name for a server (letters, digits, '_', '-', '.')");
      if (!members.is_object()) return Reject(place, "must be an object");
      McpServerOptions server;
      server.name = name;
      if (auto read = ReadMcpServer(place, members, server); !read) return read;
      options_.mcp_servers.push_back(std::move(server));
    }
    return {};
  }

  Result<void> ReadMcpServer(const std::string& place, const Json& members, McpServerOptions& server) {
    for (const auto& [member, content] : members.items()) {
      if (auto read = ReadMcpMember(Join(place, member), member, content, server); !read) return read;
    }
    if (members.contains("command") == members.contains("url")) return Reject(place, "must have either command or url");
    const bool stray = members.contains("url")
                           ? members.contains("args") || members.contains("env") || members.contains("cwd")
                           : members.contains("headers") || members.contains("auth");
    if (stray) return Reject(place, "mixes what belongs to a command (args, env, cwd) and to a url (headers, auth)");
    if (!server.auth) return {};
    if (!IsSafeOAuthUrl(server.url)) return Reject(Join(place, "url"), "must begin with https:// where auth is given");
    const bool has_token = std::any_of(server.headers.begin(), server.headers.end(),
                                       [](const auto& header) { return LowerCase(header.first) == "authorization"; });
    if (has_token) return Reject(place, "has both auth and a header Authorization");
    return {};
  }

  Result<void> ReadMcpAuth(const std::string& place, const Json& value, McpServerOptions& server) {
    if (!value.is_object()) return Reject(place, "must be an object");
    McpAuthOptions auth;
    std::string type;
    for (const auto& [member, content] : value.items()) {
      const std::string at = Join(place, member);
      if (member == "scopes") {
        if (auto read = ReadTexts(at, content, auth.scopes); !read) return read;
        continue;
      }
      std::string* const target = member == "type"                  ? &type
                                  : member == "client_id"           ? &auth.client_id
                                  : member == "client_secret"       ? &auth.client_secret
                                  : member == "client_metadata_url" ? &auth.client_metadata_url
                                  : member == "issuer"              ? &auth.issuer
                                                                    : nullptr;
      if (target == nullptr) return UnknownKey(at);
      auto text = ReadText(at, content);
      if (!text) return Fail(text.error());
      if (text->empty() || HasControlCharacter(*text)) return Reject(at, "must be a text without control characters");
      *target = *std::move(text);
    }
    if (type != "oauth") return Reject(Join(place, "type"), "must be oauth");
    if (!auth.client_secret.empty() && auth.client_id.empty())
      return Reject(Join(place, "client_secret"), "is of no use without client_id");
    if (!auth.client_metadata_url.empty() && !auth.client_metadata_url.starts_with("https://"))
      return Reject(Join(place, "client_metadata_url"), "must begin with https://");
    if (!auth.issuer.empty() && !IsSafeOAuthUrl(auth.issuer))
      return Reject(Join(place, "issuer"), "must begin with https://");
    server.auth = std::move(auth);
    return {};
  }

  Result<void> ReadMcpMember(const std::string& place, const std::string& member, const Json& content,
                             McpServerOptions& server) {
    if (member == "command" || member == "url") {
      auto text = ReadText(place, content);
      if (!text) return Fail(text.error());
      if (text->empty() || HasControlCharacter(*text))
        return Reject(place, "must be a text without control characters");
      if (member == "url" && !text->starts_with("http://") && !text->starts_with("https://")) {
        return Reject(place, "must begin with http:// or https://");
      }
      (member == "url" ? server.url : server.command) = *std::move(text);
      return {};
    }
    if (member == "args") return ReadTexts(place, content, server.arguments);
    if (member == "roots") {
      if (auto read = ReadTexts(place, content, server.roots.emplace()); !read) return read;
      const bool are_paths = std::all_of(server.roots->begin(), server.roots->end(), [](const std::string& root) {
        return root.starts_with('/') && !HasControlCharacter(root);
      });
      if (!are_paths) return Reject(place, "must be full paths of folders");
      return {};
    }
    if (member == "cwd") {
      auto text = ReadText(place, content);
      if (!text) return Fail(text.error());
      if (!text->starts_with('/') || HasControlCharacter(*text))
        return Reject(place, "must be the full path of a folder");
      server.cwd = *std::move(text);
      return {};
    }
    if (member == "env") return ReadPairs(place, content, server.environment, IsVariableName);
    if (member == "headers") return ReadPairs(place, content, server.headers, IsHeaderName);
    if (member == "auth") return ReadMcpAuth(place, content, server);
    if (member == "trust_annotations") {
      if (!content.is_boolean()) return Reject(place, "must be true or false");
      server.trust_annotations = content.get<bool>();
      return {};
    }
    if (member == "startup_timeout_s") return ReadSeconds(place, content, server.startup_timeout);
    return UnknownKey(place);
  }

  Result<void> ReadHooks(const std::string& key, const Json& value) {
    if (!value.is_array()) return Reject(key, "must be an array of objects");
    options_.hooks.clear();
    for (const Json& item : value) {
      const std::string place = key + "[" + std::to_string(options_.hooks.size()) + "]";
      if (!item.is_object()) return Reject(place, "must be an object");
      HookOptions hook;
      for (const auto& [member, content] : item.items()) {
        if (auto read = ReadHookMember(Join(place, member), member, content, hook); !read) return read;
      }
      if (!item.contains("event") || hook.command.empty()) return Reject(place, "must have event and command");
      options_.hooks.push_back(std::move(hook));
    }
    return {};
  }

  Result<void> ReadStore(const std::string& key, const Json& value) {
    StoreOptions store;
    std::string type;
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::string* const target = member == "type"         ? &type
                                  : member == "url"        ? &store.url
                                  : member == "listen_url" ? &store.listen_url
                                                           : nullptr;
      if (target == nullptr) return UnknownKey(place);
      auto text = ReadText(place, content);
      if (!text) return Fail(text.error());
      *target = *std::move(text);
    }
    if (type != "files" && type != "postgres") return Reject(Join(key, "type"), "must be files or postgres");
    if (type == "postgres") store.type = StoreOptions::Type::kPostgres;
    if (type == "postgres" && store.url.empty())
      return Reject(Join(key, "url"), "must be the database's, postgresql://...");
    for (const auto& [member, url] : {std::pair("url", &store.url), std::pair("listen_url", &store.listen_url)}) {
      if (type != "postgres" || url->empty()) continue;
      const auto checked = Database::CheckUrl(*url);
      const bool is_wrong = !checked && checked.error().code == ErrorCode::kInvalidArgument;
      if (is_wrong) return Reject(Join(key, member), checked.error().message);
    }
    if (type == "files" && !store.url.empty()) return Reject(Join(key, "url"), "belongs to the type postgres");
    if (type == "files" && !store.listen_url.empty()) {
      return Reject(Join(key, "listen_url"), "belongs to the type postgres");
    }
    options_.store = std::move(store);
    return {};
  }

  Result<void> ReadRedis(const std::string& key, const Json& value) {
    RedisOptions redis;
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      if (member == "url" && content.is_array()) {
        if (auto read = ReadTexts(place, content, redis.urls); !read) return read;
      } else if (member == "url" || member == "ca_file") {
        auto text = ReadText(place, content);
        if (!text) return Fail(text.error());
        member == "url" ? redis.urls.push_back(*std::move(text)) : void(redis.ca_file = *std::move(text));
      } else {
        return UnknownKey(place);
      }
    }
    if (redis.urls.empty()) return Reject(Join(key, "url"), "must be the server's, redis://... or rediss://...");
    for (const std::string& url : redis.urls) {
      if (auto parsed = RedisUrl::Parse(url); !parsed) return Reject(Join(key, "url"), parsed.error().message);
    }
    options_.redis = std::move(redis);
    return {};
  }

  Result<void> ReadGuardrails(const std::string& key, const Json& value) {
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::vector<std::string>* patterns = member == "input"    ? &options_.guardrails.input
                                           : member == "output" ? &options_.guardrails.output
                                                                : nullptr;
      if (patterns == nullptr) return UnknownKey(place);
      patterns->clear();
      if (auto read = ReadTexts(place, content, *patterns); !read) return read;
      for (const std::string& pattern : *patterns) {
        if (auto usable = Guardrails::Check(pattern); !usable) return Reject(place, usable.error().message);
      }
    }
    return {};
  }

  Result<void> ReadHookMember(const std::string& place, const std::string& member, const Json& content,
                              HookOptions& hook) {
    if (member == "command") {
      if (auto read = ReadTexts(place, content, hook.command); !read) return read;
      if (hook.command.empty() || hook.command.front().empty()) return Reject(place, "must name a program");
      return {};
    }
    if (member == "timeout_s") return ReadSeconds(place, content, hook.timeout);
    if (member != "event" && member != "tool") return UnknownKey(place);
    auto text = ReadText(place, content);
    if (!text) return Fail(text.error());
    if (member == "tool") {
      if (text->empty()) return Reject(place, "must not be empty");
      hook.tool = *std::move(text);
      return {};
    }
    const auto event = ParseHookEvent(*text);
    if (!event) {
      return Reject(place, "must be before_ or after_ and one of interaction, model, tool");
    }
    hook.event = *event;
    return {};
  }

  static Result<void> ReadSeconds(const std::string& place, const Json& content, std::chrono::milliseconds& time) {
    constexpr double kHour = 3600;
    const bool fits = content.is_number() && content.get<double>() > 0 && content.get<double>() <= kHour;
    if (!fits) return Reject(place, "must be a number of seconds above 0, at most 3600");
    time = std::chrono::milliseconds(std::max(1L, std::lround(content.get<double>() * 1000)));
    return {};
  }

  static bool IsServerName(const std::string& name) {
    const auto allowed = [](char c) { return IsNameCharacter(c) || c == '-' || c == '.'; };
    return !name.empty() && name.size() <= 64 && IsNameCharacter(name[0]) && name[0] != '_' &&
           std::all_of(name.begin(), name.end(), allowed);
  }
  static bool IsVariableName(const std::string& name) {
    return !name.empty() && (name[0] < '0' || name[0] > '9') && std::all_of(name.begin(), name.end(), IsNameCharacter);
  }
  static bool IsHeaderName(const std::string& name) {
    const auto allowed = [](char c) { return IsNameCharacter(c) || c == '-'; };
    return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
  }

  Result<void> ReadTexts(const std::string& key, const Json& value, std::vector<std::string>& texts) {
    if (!value.is_array()) return Reject(key, "must be an array of strings");
    for (const Json& item : value) {
      auto text = ReadText(key, item);
      if (!text) return Fail(text.error());
      if (text->find('\0') != std::string::npos) return Reject(key, "must not hold a NUL character");
      texts.push_back(*std::move(text));
    }
    return {};
  }

  Result<void> ReadPairs(const std::string& key, const Json& value,
                         std::vector<std::pair<std::string, std::string>>& pairs, bool (*is_name)(const std::string&)) {
    if (!value.is_object()) return Reject(key, "must be an object of strings");
    for (const auto& [name, content] : value.items()) {
      if (!is_name(name)) return Reject(Join(key, name), "is not a usable name");
      auto text = ReadText(Join(key, name), content);
      if (!text) return Fail(text.error());
      if (HasControlCharacter(*text)) return Reject(Join(key, name), "must not hold a control character");
      pairs.emplace_back(name, *std::move(text));
    }
    return {};
  }

  static Result<std::int64_t> ReadTokens(const std::string& place, const Json& value, std::int64_t least) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < static_cast<std::uint64_t>(least) ||
        value.get<std::uint64_t>() > 1'000'000'000'000) {
      return tl::unexpected(Reject(place, "must be an integer from " + std::to_string(least) + " on").error());
    }
    return value.get<std::int64_t>();
  }

  static Result<void> ReadAbilities(const std::string& place, const Json& value, ModelAbilities& abilities) {
    if (!value.is_object()) return Reject(place, "must be an object");
    for (const auto& [name, has] : value.items()) {
      const auto known = std::find_if(std::begin(kAbilityNames), std::end(kAbilityNames),
                                      [&name = name](const AbilityName& each) { return each.name == name; });
      if (known == std::end(kAbilityNames)) return UnknownKey(Join(place, name));
      if (!has.is_boolean()) return Reject(Join(place, name), "must be true or false");
      abilities.*known->member = has.get<bool>();
    }
    return {};
  }

  static Result<void> ReadFact(const std::string& place, const std::string& fact, const Json& value,
                               ModelFacts& facts) {
    if (fact == "thinking" && (value == "off" || value == "adaptive")) {
      facts.thinking = value == "off" ? ThinkingMode::kOff : ThinkingMode::kAdaptive;
      return {};
    }
    if (fact == "effort") {
      for (const Effort effort : {Effort::kNone, Effort::kLow, Effort::kMedium, Effort::kHigh}) {
        if (value == ToString(effort)) return facts.effort = effort, Result<void>();
      }
      return Reject(place, "must be none, low, medium or high");
    }
    if (fact == "cache") {
      if (value == "none") return facts.cache = PromptCache::kNone, Result<void>();
      if (value == "short") return facts.cache = PromptCache::kShort, Result<void>();
      if (value == "long") return facts.cache = PromptCache::kLong, Result<void>();
      return Reject(place, "must be none, short or long");
    }
    if (fact == "abilities") return ReadAbilities(place, value, facts.abilities);
    std::int64_t* const target = fact == "context_window"      ? &facts.context_window
                                 : fact == "max_output_tokens" ? &facts.max_output_tokens
                                 : fact == "thinking"          ? &facts.thinking_budget
                                                               : nullptr;
    if (target == nullptr) return UnknownKey(place);
    if (fact == "thinking" && !value.is_number()) return Reject(place, "must be off, adaptive or a number of tokens");
    const auto tokens = ReadTokens(place, value, fact == "thinking" ? kLeastThinkingBudget : 1);
    if (!tokens) return Fail(tokens.error());
    *target = *tokens;
    if (fact == "thinking") facts.thinking = ThinkingMode::kBudget;
    return {};
  }

  Result<void> ReadModels(const std::string& key, const Json& models) {
    for (const auto& [name, members] : models.items()) {
      const std::string place = Join(key, name);
      const std::size_t slash = name.find('/');
      if (slash == 0 || slash == std::string::npos || slash + 1 == name.size()) {
        return Reject(place, "must be named PROVIDER/NAME");
      }
      if (!members.is_object()) return Reject(place, "must be an object");
      ModelFacts facts;
      if (auto read = ReadPrice(name, place, members); !read) return read;
      for (const auto& [fact, value] : members.items()) {
        if (fact.ends_with(kPriceSuffix)) continue;
        if (auto read = ReadFact(Join(place, fact), fact, value, facts); !read) return read;
      }
      options_.models[name] = facts;
    }
    return {};
  }

  static Result<double> ReadAmount(const std::string& place, const Json& value) {
    constexpr double kMost = 1e9;
    const bool fits = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= kMost;
    if (!fits) return tl::unexpected(Reject(place, "must be a number from 0 to 1000000000").error());
    return value.get<double>();
  }

  // A model has a price if it has one for input and one for output.
  Result<void> ReadPrice(const std::string& model, const std::string& place, const Json& members) {
    ModelPrice price;
    bool input = false, output = false, any = false;
    for (const auto& [member, value] : members.items()) {
      if (!member.ends_with(kPriceSuffix)) continue;
      const auto amount = ReadAmount(Join(place, member), value);
      if (!amount) return Fail(amount.error());
      any = true;
      const std::string_view what = std::string_view(member).substr(0, member.size() - kPriceSuffix.size());
      if (what == "input") {
        price.input = *amount, input = true;
      } else if (what == "output") {
        price.output = *amount, output = true;
      } else if (what == "cache_read") {
        price.cache_read = *amount;
      } else if (what == "cache_write") {
        price.cache_write = *amount;
      } else {
        return UnknownKey(Join(place, member));
      }
    }
    if (!any) return {};
    if (!input || !output)
      return Reject(place, "must have input_price_per_mtok and output_price_per_mtok, or no price");
    options_.prices[model] = price;
    return {};
  }

  Result<void> ReadBudget(const std::string& key, const Json& value) {
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      if (member == "max_cost_per_chat") {
        const auto amount = ReadAmount(place, content);
        if (!amount) return Fail(amount.error());
        if (*amount == 0) return Reject(place, "must be above 0");
        options_.budget.max_cost_per_chat = *amount;
        continue;
      }
      std::int64_t* const target = member == "max_tokens_per_interaction" ? &options_.budget.max_tokens_per_interaction
                                   : member == "max_tokens_per_chat"      ? &options_.budget.max_tokens_per_chat
                                   : member == "max_tokens_per_day"       ? &options_.budget.max_tokens_per_day
                                                                          : nullptr;
      if (target == nullptr) return UnknownKey(place);
      const auto tokens = ReadTokens(place, content, 1);
      if (!tokens) return Fail(tokens.error());
      *target = *tokens;
    }
    return {};
  }

  Result<void> ReadAudio(const std::string& key, const Json& value) {
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::string* const target = member == "transcription" ? &options_.audio.transcription
                                  : member == "speech"      ? &options_.audio.speech
                                  : member == "voice"       ? &options_.audio.voice
                                                            : nullptr;
      if (target == nullptr) return UnknownKey(place);
      *target = TRY(ReadText(place, content));
      if (target->empty()) return Reject(place, "must not be empty");
      if (member == "voice") continue;
      const std::size_t slash = target->find('/');
      if (slash == std::string::npos || slash == 0 || slash + 1 == target->size()) {
        return Reject(place, "must be PROVIDER/MODEL");
      }
    }
    return {};
  }

  // Texts alone; which there must be depends on the type.
  Result<void> ReadAuth(const std::string& key, const Json& value) {
    AuthOptions& auth = options_.auth;
    auth = {};
    const std::string type = TextMember(value, "type");
    if (type != "oidc" && type != "tokens") return Reject(Join(key, "type"), "must be oidc or tokens");
    auth.type = type == "oidc" ? AuthOptions::Type::kOidc : AuthOptions::Type::kTokens;
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      if (member == "type") continue;
      std::string* const target = member == "tokens_file" ? &auth.tokens_file : OidcMember(member);
      if (target == nullptr) return UnknownKey(place);
      auto text = ReadText(place, content);
      if (!text) return Fail(text.error());
      if (text->empty() || HasControlCharacter(*text))
        return Reject(place, "must be a text without control characters");
      *target = *std::move(text);
    }
    return CheckAuth(key);
  }

  // Null if there is none of that name, or not with this type.
  std::string* OidcMember(std::string_view member) {
    AuthOptions& auth = options_.auth;
    if (auth.type != AuthOptions::Type::kOidc) return nullptr;
    if (member == "issuer") return &auth.issuer;
    if (member == "audience") return &auth.audience;
    if (member == "org_claim") return &auth.org_claim;
    if (member == "roles_claim") return &auth.roles_claim;
    return member == "admin_role" ? &auth.admin_role : nullptr;
  }

  Result<void> CheckAuth(const std::string& key) {
    const AuthOptions& auth = options_.auth;
    if (auth.type != AuthOptions::Type::kOidc) return {};
    if (!IsSafeIssuerUrl(auth.issuer)) {
      return Reject(Join(key, "issuer"), "must be a URL with https (or http to this machine)");
    }
    if (auth.audience.empty()) return Reject(Join(key, "audience"), "must say this server's name in access tokens");
    if (auth.roles_claim.empty() != auth.admin_role.empty()) {
      return Reject(key, "must have both roles_claim and admin_role, or neither");
    }
    for (const auto& [name, claim] : {std::pair("org_claim", &auth.org_claim), {"roles_claim", &auth.roles_claim}}) {
      if (!IsClaimName(*claim)) return Reject(Join(key, name), "must be a claim's name, or a JSON pointer");
    }
    return {};
  }

  Result<void> ReadTools(const std::string& key, const Json& value) {
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::vector<std::string>* names = member == "require_approval" ? &options_.tools.require_approval
                                        : member == "allow"          ? &options_.tools.allow
                                        : member == "deny"           ? &options_.tools.deny
                                                                     : nullptr;
      Result<void> read;
      if (names != nullptr) {
        read = ReadNames(place, content, *names);
      } else if (member == "timeout_s") {
        read = ReadSetting(place, content, *FindSetting("tool-timeout-s"));
      } else if (member == "rules") {
        read = ReadRules(place, content);
      } else if (member == "sandbox_paths") {
        read = ReadSandboxPaths(place, content);
      } else if (member == "limits") {
        read = ReadLimits(place, content);
      } else {
        read = UnknownKey(place);
      }
      if (!read) return read;
    }
    return {};
  }

  Result<void> ReadRules(const std::string& key, const Json& value) {
    if (!value.is_array()) return Reject(key, "must be an array of objects");
    options_.tools.rules.clear();
    for (const Json& item : value) {
      const std::string place = key + "[" + std::to_string(options_.tools.rules.size()) + "]";
      if (!item.is_object()) return Reject(place, "must be an object");
      ToolRule rule;
      bool has_action = false;
      for (const auto& [member, content] : item.items()) {
        const std::string name = Join(place, member);
        if (member != "tool" && member != "pattern" && member != "action") return UnknownKey(name);
        auto text = ReadText(name, content);
        if (!text) return Fail(text.error());
        if (text->empty()) return Reject(name, "must not be empty");
        if (member == "tool") rule.tool = *std::move(text);
        if (member == "pattern") rule.pattern = *std::move(text);
        if (member != "action") continue;
        has_action = true;
        if (const auto action = ParseRuleAction(*text)) {
          rule.action = *action;
        } else {
          return Reject(name, "must be allow, ask or deny");
        }
      }
      if (rule.tool.empty() || !has_action) return Reject(place, "must have tool and action");
      options_.tools.rules.push_back(std::move(rule));
    }
    return {};
  }

  Result<void> ReadSandboxPaths(const std::string& key, const Json& value) {
    if (!value.is_object()) return Reject(key, "must be an object");
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::vector<std::string>* const paths = member == "read"    ? &options_.tools.sandbox_read
                                              : member == "write" ? &options_.tools.sandbox_write
                                                                  : nullptr;
      if (paths == nullptr) return UnknownKey(place);
      if (auto read = ReadNames(place, content, *paths); !read) return read;
      for (std::string& path : *paths) {
        if (path == "~" || path.starts_with("~/")) {
          const auto home = environment_("HOME");
          if (!home) return Reject(place, "has a ~, but HOME is not set");
          path.replace(0, 1, *home);
        }
        if (!path.starts_with('/')) return Reject(place, "must hold absolute paths, or such that begin with ~/");
      }
    }
    return {};
  }

  Result<void> ReadLimits(const std::string& key, const Json& value) {
    if (!value.is_object()) return Reject(key, "must be an object");
    ResourceLimits& limits = options_.tools.limits;
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::uint64_t* const limit = member == "memory_mb"      ? &limits.memory_mb
                                   : member == "processes"    ? &limits.processes
                                   : member == "file_size_mb" ? &limits.file_size_mb
                                   : member == "tmp_mb"       ? &limits.tmp_mb
                                                              : nullptr;
      if (limit == nullptr) return UnknownKey(place);
      if (!content.is_number_unsigned() || content > kMostOfALimit) {
        return Reject(place, "must be a number from 0 (no limit) to " + std::to_string(kMostOfALimit));
      }
      *limit = content.get<std::uint64_t>();
    }
    return {};
  }

  Result<void> ReadFiles(const std::string& key, const Json& value) {
    options_.bucket.reset();
    BucketOptions bucket;
    std::string type = "folder", needs_bucket;
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      std::string* const text = BucketMember(member, bucket);
      if (text != nullptr || member == "type") {
        const bool is_key = member == "access_key" || member == "secret_key";
        auto read = is_key ? ReadApiKey(place, content) : ReadText(place, content);
        if (!read) return Fail(read.error());
        (text != nullptr ? *text : type) = *std::move(read);
        if (text != nullptr) needs_bucket = place;
        continue;
      }
      if (member == "max_pdf_pages" || member == "document_timeout_s") {
        const bool is_pages = member == "max_pdf_pages";
        const int least = is_pages ? 0 : 1, greatest = is_pages ? kMostPages : kMostDocumentSeconds;
        if (!content.is_number_integer() || content < least || content > greatest) {
          return Reject(place, "must be a number from " + std::to_string(least) + " to " + std::to_string(greatest));
        }
        if (is_pages) options_.parts.pages = content.get<int>();
        if (!is_pages) options_.document_timeout = std::chrono::seconds(content.get<int>());
        continue;
      }
      std::uint64_t* bytes = member == "max_file_bytes"      ? &options_.files.file_bytes
                             : member == "max_chat_bytes"    ? &options_.files.chat_bytes
                             : member == "max_image_bytes"   ? &options_.parts.image_bytes
                             : member == "max_request_bytes" ? &options_.parts.request_bytes
                                                             : nullptr;
      if (bytes == nullptr) return UnknownKey(place);
      const std::uint64_t most = member == "max_chat_bytes" ? kMostChatBytes : kMostFileBytes;
      if (!content.is_number_unsigned() || content < 1 || content > most) {
        return Reject(place, "must be a number from 1 to " + std::to_string(most));
      }
      *bytes = content.get<std::uint64_t>();
    }
    if (type != "folder" && type != "s3") return Reject(Join(key, "type"), "must be folder or s3");
    if (type == "folder")
      return needs_bucket.empty() ? Result<void>() : Reject(needs_bucket, "is for \"type\": \"s3\"");
    for (const char* member : {"endpoint", "bucket", "access_key", "secret_key"}) {
      if (!value.contains(member)) return Reject(key, "must have " + std::string(member));
    }
    if (auto fit = CheckBucket(key, bucket); !fit) return fit;
    options_.bucket = std::move(bucket);
    return {};
  }

  static std::string* BucketMember(std::string_view member, BucketOptions& bucket) {
    return member == "endpoint"     ? &bucket.endpoint
           : member == "bucket"     ? &bucket.bucket
           : member == "region"     ? &bucket.region
           : member == "access_key" ? &bucket.access_key
           : member == "secret_key" ? &bucket.secret_key
                                    : nullptr;
  }

  static Result<void> CheckBucket(const std::string& key, BucketOptions& bucket) {
    const auto is_name = [](std::string_view name, std::string_view more, std::size_t least, std::size_t most) {
      return name.size() >= least && name.size() <= most && std::all_of(name.begin(), name.end(), [&](char c) {
               return IsNameCharacter(c) || more.find(c) != std::string_view::npos;
             });
    };
    if (bucket.endpoint.ends_with('/')) bucket.endpoint.pop_back();
    const bool has_scheme = bucket.endpoint.starts_with("http://") || bucket.endpoint.starts_with("https://");
    const std::string_view server =
        std::string_view(bucket.endpoint).substr(std::min(bucket.endpoint.find("//") + 2, bucket.endpoint.size()));
    if (!has_scheme || !is_name(server, ".-:[]", 1, 300)) {
      return Reject(Join(key, "endpoint"), "must be http:// or https:// and a server's name, perhaps with a port");
    }
    if (!is_name(bucket.bucket, ".-", 3, 63)) {
      return Reject(Join(key, "bucket"), "must be the name of a bucket (3 to 63 letters, digits, '.', '-', '_')");
    }
    if (!is_name(bucket.region, "-", 1, 64)) return Reject(Join(key, "region"), "must be the name of a region");
    for (const auto& [member, text] :
         {std::pair("access_key", &bucket.access_key), std::pair("secret_key", &bucket.secret_key)}) {
      const bool sound = std::all_of(text->begin(), text->end(), [](char c) { return c > ' ' && c < 0x7f; });
      if (!sound) return Reject(Join(key, member), "has characters that no key has (a space, a line end?)");
    }
    return {};
  }

  Result<void> ReadTelemetry(const std::string& key, const Json& value) {
    TelemetryOptions& telemetry = options_.telemetry;
    for (const auto& [member, content] : value.items()) {
      const std::string place = Join(key, member);
      if (member == "content" || member == "trace_providers") {
        if (!content.is_boolean()) return Reject(place, "must be true or false");
        (member == "content" ? telemetry.content : telemetry.trace_providers) = content.get<bool>();
      } else if (member == "headers") {
        std::vector<std::pair<std::string, std::string>> headers;
        if (auto read = ReadPairs(place, content, headers, IsProviderHeaderName); !read) return read;
        telemetry.traces.headers = telemetry.metrics.headers = std::move(headers);
      } else if (member == "otlp_endpoint" || member == "service_name") {
        auto text = ReadText(place, content);
        if (!text) return Fail(text.error());
        if (text->empty() || HasControlCharacter(*text)) {
          return Reject(place, "must be a text without control characters");
        }
        if (member == "service_name") {
          telemetry.service_name = *std::move(text);
          continue;
        }
        if (!text->starts_with("http://") && !text->starts_with("https://")) {
          return Reject(place, "must begin with http:// or https://");
        }
        SetOtlpEndpoint(telemetry, *text);
      } else {
        return UnknownKey(place);
      }
    }
    return {};
  }

  Result<void> ReadNames(const std::string& key, const Json& value, std::vector<std::string>& names) {
    if (!value.is_array()) return Reject(key, "must be an array of strings");
    names.clear();
    for (const Json& item : value) {
      if (!item.is_string()) return Reject(key, "must be an array of strings");
      auto name = ReadText(key, item);
      if (!name) return Fail(name.error());
      if (name->empty()) return Reject(key, "must not hold an empty name");
      names.push_back(*std::move(name));
    }
    return {};
  }

  Options& options_;
  const Environment& environment_;
};

}  // namespace

Result<void> ApplyConfig(Options& options, std::string_view text, const Environment& environment) {
  const auto root = ParseJsonWithComments(text);
  if (!root) return Fail(root.error());
  return ConfigReader(options, environment).ReadRoot(*root);
}

}  // namespace reprise
