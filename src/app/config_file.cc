#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/options.h"
#include "app/settings.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "mcp/oauth_documents.h"
#include "remote/s3/s3_bucket.h"

namespace reprise {
namespace {

tl::unexpected<Error> Reject(std::string_view place, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, "key \"" + std::string(place) + "\" " + std::string(why));
}

std::string Join(std::string_view above, std::string_view member) {
  return above.empty() ? std::string(member) : std::string(above) + "." + std::string(member);
}

// For providers and MCP servers.
bool IsServerName(const std::string& name) {
  const auto allowed = [](char c) { return IsToolNameCharacter(c) || c == '.'; };
  return !name.empty() && name.size() <= 64 && IsNameCharacter(name[0]) && name[0] != '_' &&
         std::ranges::all_of(name, allowed);
}

bool IsInTable(const std::string& beginning) {
  const auto is_it = [&](const Setting& setting) { return setting.key.starts_with(beginning); };
  return std::any_of(Settings().begin(), Settings().end(), is_it);
}

// In this class, `key` is a key of the settings table ("providers.NAME.type"), and `place` is the path of its value in
// the file ("providers.mine.type").
class ConfigReader {
 public:
  ConfigReader(Options& options, const Environment& environment, const FolderLayer* layer, ConfigKeys* keys)
      : options_(options), environment_(environment), layer_(layer), keys_(keys) {}

  Result<void> ReadRoot(const Json& root) {
    if (!root.is_object()) return Fail(ErrorCode::kInvalidArgument, "must be a JSON object");
    TRY(ReadMembers("", "", root));
    if (!options_.redis.urls.empty() && options_.store.type != StoreOptions::Type::kPostgres) {
      return Reject("redis", "belongs to the store.type postgres");
    }
    return {};
  }

 private:
  Result<void> ReadMembers(const std::string& key, const std::string& place, const Json& object) {
    for (const auto& [member, value] : object.items()) TRY(ReadMember(key, place, member, value));
    return CheckSection(key, place, object);
  }

  Result<void> ReadMember(const std::string& section, const std::string& above, const std::string& member,
                          const Json& value) {
    const std::string key = Join(section, member), place = Join(above, member);
    if (key == "$schema") return {};  // for editors
    if (member.find_first_of(".[") != std::string::npos) return UnknownKey(section, place, member);
    if (layer_ != nullptr && !TRY(Takes(key, place))) return {};
    const bool is_section = value.is_object() && IsInTable(key + ".");  // in place of true
    const Setting* const setting = is_section ? nullptr : FindSettingByKey(key);
    if (setting != nullptr) return ReadSetting(*setting, place, value);
    if (IsInTable(key + "[].")) return ReadList(key, place, value);
    if (!IsInTable(key + ".")) return UnknownKey(section, place, member);
    if (!value.is_object()) return Reject(place, "must be an object");
    return IsInTable(key + ".NAME.") ? ReadNamed(key, place, value) : ReadMembers(key, place, value);
  }

  // Whether the file of a folder counts for this key, or may for some below it.
  Result<bool> Takes(const std::string& key, const std::string& place) {
    const auto layer = LayerOf(key);
    if (!layer) return true;
    const bool is_of_server = *layer == Layer::kServer;
    const bool is_new = key == "export" || key.starts_with("export.");  // no earlier version took it from a folder
    if (is_of_server && (is_new || layer_->take == FolderLayer::Take::kChatKeys)) {
      return Reject(
          place,
          "belongs to the server, not to a folder: put it into $XDG_CONFIG_HOME/reprise/reprise.json, or into "
          "the file that the server gets by --config");
    }
    auto& told = options_.server_keys;
    if (is_of_server && std::ranges::find(told, place) == told.end()) told.push_back(place);
    return is_of_server == (layer_->take == FolderLayer::Take::kServerKeys);
  }
  bool IsLeftOut(Layer layer) const {
    return layer_ != nullptr && (layer == Layer::kServer) != (layer_->take == FolderLayer::Take::kServerKeys);
  }
  // A path in the file of a folder is relative to that folder.
  std::string InFolder(const std::string& path) const {
    const bool is_relative = layer_ != nullptr && !layer_->folder.empty() && !path.empty() && path[0] != '/';
    return is_relative ? layer_->folder + "/" + path : path;
  }

  static Result<void> UnknownKey(const std::string& section, const std::string& place, const std::string& member) {
    std::vector<std::string> known;
    for (const Setting& setting : Settings()) {
      if (!setting.key.starts_with(Join(section, ""))) continue;
      const std::string_view rest = setting.key.substr(Join(section, "").size());
      known.emplace_back(rest.substr(0, rest.find_first_of(".[")));
    }
    return Fail(ErrorCode::kInvalidArgument, "unknown key \"" + place + "\"" + DidYouMean(member, known));
  }

  Result<void> ReadList(const std::string& key, const std::string& place, const Json& value) {
    if (!value.is_array()) return Reject(place, "must be an array of objects");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string element = place + "[" + std::to_string(i) + "]";
      if (!value[i].is_object()) return Reject(element, "must be an object");
      draft_ = {};
      TRY(ReadMembers(key + "[]", element, value[i]));
    }
    return {};
  }

  Result<void> ReadNamed(const std::string& key, const std::string& place, const Json& value) {
    // Only providers that the file names are offered.
    if (key == "providers") options_.providers.clear();
    for (const auto& [name, members] : value.items()) {
      const std::string element = Join(place, name);
      TRY(CheckName(key, element, name));
      if (!members.is_object()) return Reject(element, "must be an object");
      draft_ = {};
      draft_.provider.name = draft_.server.name = name_ = name;
      if (const auto known = options_.models.find(name); known != options_.models.end()) draft_.facts = known->second;
      if (const auto known = options_.prices.find(name); known != options_.prices.end()) draft_.price = known->second;
      TRY(ReadMembers(key + ".NAME", element, members));
    }
    return {};
  }

  static Result<void> CheckName(std::string_view key, const std::string& place, const std::string& name) {
    const std::size_t slash = name.find('/');
    if (key == "models" && (slash == 0 || slash == std::string::npos || slash + 1 == name.size())) {
      return Reject(place, "must be named PROVIDER/NAME");
    }
    if (key == "providers" && (!IsServerName(name) || name == "offline")) {
      return Reject(place, "is not a name for a provider (letters, digits, '_', '-', '.'; not offline)");
    }
    if (key == "mcpServers" && !IsServerName(name)) {
      return Reject(place, "is not a name for a server (letters, digits, '_', '-', '.')");
    }
    return {};
  }

  Result<void> ReadSetting(const Setting& setting, const std::string& place, const Json& value) {
    if (keys_ != nullptr) keys_->insert(place);
    const SettingValue to = setting.at(options_, draft_);
    if (const Scalar* const scalar = std::get_if<Scalar>(&to)) return ReadScalar(setting, *scalar, place, value);
    if (NamedTexts* const* pairs = std::get_if<NamedTexts*>(&to)) return ReadPairs(setting, **pairs, place, value);
    if (Texts* const* texts = std::get_if<Texts*>(&to)) return ReadTexts(setting, **texts, place, value);
    std::string& text = *std::get<std::string*>(to);
    text = TRY(ReadText(setting, place, value));
    if (setting.key == "prompt_dir") text = InFolder(text);
    return {};
  }

  Result<void> ReadScalar(const Setting& setting, const Scalar& to, const std::string& place, const Json& value) {
    const bool is_whole = to.kind == Scalar::Kind::kInteger || setting.rules.range.whole;
    const bool fits = to.kind == Scalar::Kind::kBool   ? value.is_boolean()
                      : to.kind == Scalar::Kind::kName ? false
                      : is_whole                       ? value.is_number_integer()
                                                       : value.is_number();
    std::string text = fits ? value.dump() : "";
    if (value.is_string()) text = TRY(Substitute(place, value.get_ref<const std::string&>())).text;
    const auto names = ChoicesOf(setting);
    const bool is_name = value.is_string() && std::ranges::find(names, text) != names.end();
    if (!fits && !is_name) return Reject(place, MustBe(setting, to.kind));
    if (auto stored = Store(setting, to, text); !stored) return Reject(place, stored.error().message);
    return {};
  }

  Result<std::string> ReadText(const Setting& setting, const std::string& place, const Json& value) {
    if (!value.is_string()) return Reject(place, "must be a string");
    auto [text, missing] = TRY(Substitute(place, value.get_ref<const std::string&>()));
    if (!missing.empty() && setting.rules.may_lack_variable) return std::string();
    if (!missing.empty()) return Reject(place, "uses the environment variable " + missing + ", which is not set");
    if (setting.rules.expands_home && (text == "~" || text.starts_with("~/"))) {
      const auto home = environment_("HOME");
      if (!home) return Reject(place, "has a ~, but HOME is not set");
      text.replace(0, 1, *home);
    }
    if (const std::string wrong = WrongWith(setting, text); !wrong.empty()) return Reject(place, wrong);
    return text;
  }

  Result<void> ReadTexts(const Setting& setting, Texts& texts, const std::string& place, const Json& value) {
    texts.clear();
    if (setting.rules.may_be_one && value.is_string()) {
      texts.push_back(TRY(ReadText(setting, place, value)));
      return {};
    }
    if (!value.is_array()) return Reject(place, "must be an array of strings");
    for (std::size_t i = 0; i < value.size(); ++i) {
      texts.push_back(TRY(ReadText(setting, place + "[" + std::to_string(i) + "]", value[i])));
    }
    return {};
  }

  Result<void> ReadPairs(const Setting& setting, NamedTexts& pairs, const std::string& place, const Json& value) {
    if (!value.is_object()) return Reject(place, "must be an object of strings");
    pairs.clear();
    for (const auto& [name, content] : value.items()) {
      if (!setting.rules.is_name(name)) return Reject(Join(place, name), "is not a usable name");
      pairs.emplace_back(name, TRY(ReadText(setting, Join(place, name), content)));
    }
    return {};
  }

  // A string after substitution.
  struct Substituted {
    std::string text;
    std::string missing;  // the first unset variable
  };

  Result<Substituted> Substitute(const std::string& place, std::string_view text) {
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
      if (end == std::string_view::npos) return Reject(place, "has a ${ without its }");
      const std::string name(text.substr(at + 2, end - at - 2));
      if (name.empty() || !std::ranges::all_of(name, IsNameCharacter)) {
        return Reject(place, "has a ${...} that is not the name of an environment variable");
      }
      options_.variables[place].push_back(name);
      const auto value = environment_(name);
      if (value) out.text += *value;
      if (!value && out.missing.empty()) out.missing = name;
      at = end + 1;
    }
    return out;
  }

  // Checks the members of a section together, after each was read; then stores an element in its place.
  Result<void> CheckSection(std::string_view key, const std::string& place, const Json& members) {
    const Setting* const type = FindSettingByKey(Join(key, "type"));
    if (type != nullptr && key != "files" && !members.contains("type")) {
      return Reject(Join(place, "type"), MustBe(*type, Scalar::Kind::kName));
    }
    if (key == "providers.NAME.web_search") draft_.provider.web_search.is_on = true;
    if (key == "providers.NAME") return KeepProvider(place);
    if (key == "models.NAME") return KeepModel(place, members);
    if (key == "mcpServers.NAME") return KeepMcpServer(place, members);
    if (key == "mcpServers.NAME.auth") return CheckLogin(place);
    if (key == "hooks[]") return KeepHook(place, members);
    if (key == "tools.rules[]") return KeepRule(place, members);
    if (key == "auth") return CheckAuth(place, members);
    if (key == "store") return CheckStore(place);
    if (key == "redis" && options_.redis.urls.empty()) {
      return Reject(Join(place, "url"), "must be the server's, redis://... or rediss://...");
    }
    if (key == "files") return CheckFiles(place, members);
    if (key == "telemetry") SpreadTelemetry(members);
    return {};
  }

  Result<void> KeepProvider(const std::string& place) {
    TRY(CheckWebSearch(Join(place, "web_search")));
    for (auto& [name, text] : draft_.provider.query) {
      name = PercentEncoded(name);
      text = PercentEncoded(text);
    }
    options_.providers.push_back(std::move(draft_.provider));
    return {};
  }

  Result<void> CheckWebSearch(const std::string& place) {
    const auto& [is_on, max_uses, allowed, blocked] = draft_.provider.web_search;
    if (!is_on) return {};
    const std::string& type = draft_.provider.type;
    if (type == "openai" && (max_uses != 0 || !allowed.empty() || !blocked.empty())) {
      return Reject(place, "must be true for the type openai, whose servers have no common form of limits");
    }
    if (type == "openai_responses" && !blocked.empty()) {
      return Reject(Join(place, "blocked_domains"), "is not for the type openai_responses, which has allowed_domains");
    }
    if (!allowed.empty() && !blocked.empty()) {
      return Reject(place, "must have either allowed_domains or blocked_domains");
    }
    return {};
  }

  // A model has a price if it has an input price and an output price.
  Result<void> KeepModel(const std::string& place, const Json& members) {
    const auto has = [&](const char* kind) { return members.contains(std::string(kind) + "_price_per_mtok"); };
    if (IsLeftOut(Layer::kServer)) {
      // The prices stay.
    } else if (has("input") && has("output")) {
      options_.prices[name_] = draft_.price;
    } else if (has("input") || has("output") || has("cache_read") || has("cache_write") ||
               members.contains("search_price_per_thousand")) {
      return Reject(place, "must have input_price_per_mtok and output_price_per_mtok, or no price");
    }
    if (!IsLeftOut(Layer::kChat)) options_.models[name_] = draft_.facts;
    return {};
  }

  Result<void> KeepMcpServer(const std::string& place, const Json& members) {
    if (members.contains("command") == members.contains("url")) return Reject(place, "must have either command or url");
    const bool stray = members.contains("url") ? members.contains("args") || members.contains("env") ||
                                                     members.contains("cwd") || members.contains("shared")
                                               : members.contains("headers") || members.contains("auth");
    if (stray)
      return Reject(place, "mixes what belongs to a command (args, env, cwd, shared) and to a url (headers, auth)");
    McpServerOptions& server = draft_.server;
    if (members.contains("auth")) {
      if (!IsSafeOAuthUrl(server.url))
        return Reject(Join(place, "url"), "must begin with https:// where auth is given");
      const bool has_token = std::ranges::any_of(
          server.headers, [](const auto& header) { return LowerCase(header.first) == "authorization"; });
      if (has_token) return Reject(place, "has both auth and a header Authorization");
      server.auth = std::move(draft_.login);
    }
    if (layer_ != nullptr) {
      if (server.shared)
        return Reject(Join(place, "shared"), "is for the server's configuration: it means all folders");
      server.of_folder = true;
      if (server.command.find('/') != std::string::npos) server.command = InFolder(server.command);
    }
    std::erase_if(options_.mcp_servers, [this](const McpServerOptions& each) { return each.name == name_; });
    options_.mcp_servers.push_back(std::move(server));
    return {};
  }

  Result<void> CheckLogin(const std::string& place) {
    if (draft_.login.client_secret.empty() || !draft_.login.client_id.empty()) return {};
    return Reject(Join(place, "client_secret"), "is of no use without client_id");
  }

  Result<void> KeepHook(const std::string& place, const Json& members) {
    const auto& command = draft_.hook.command;
    if (!members.contains("event") || !members.contains("command")) return Reject(place, "must have event and command");
    if (command.empty() || command.front().empty()) return Reject(Join(place, "command"), "must name a program");
    options_.hooks.push_back(std::move(draft_.hook));
    return {};
  }

  Result<void> KeepRule(const std::string& place, const Json& members) {
    if (!members.contains("tool") || !members.contains("action")) return Reject(place, "must have tool and action");
    options_.tools.rules.push_back(std::move(draft_.rule));
    return {};
  }

  Result<void> CheckAuth(const std::string& place, const Json& members) {
    const AuthOptions& auth = options_.auth;
    if (auth.type == AuthOptions::Type::kTokens) {
      for (const auto& [member, value] : members.items()) {
        if (member != "type" && member != "tokens_file") return Reject(Join(place, member), "belongs to the type oidc");
      }
      return {};
    }
    if (auth.issuer.empty()) return Reject(Join(place, "issuer"), "must be a URL with https (or http to this machine)");
    if (auth.audience.empty()) return Reject(Join(place, "audience"), "must say this server's name in access tokens");
    if (auth.roles_claim.empty() != auth.admin_role.empty()) {
      return Reject(place, "must have both roles_claim and admin_role, or neither");
    }
    return {};
  }

  Result<void> CheckStore(const std::string& place) {
    const StoreOptions& store = options_.store;
    if (store.type == StoreOptions::Type::kPostgres) {
      if (store.url.empty()) return Reject(Join(place, "url"), "must be the database's, postgresql://...");
      return {};
    }
    if (!store.url.empty()) return Reject(Join(place, "url"), "belongs to the type postgres");
    if (!store.listen_url.empty()) return Reject(Join(place, "listen_url"), "belongs to the type postgres");
    return {};
  }

  Result<void> CheckFiles(const std::string& place, const Json& members) {
    options_.bucket.reset();
    const bool in_bucket = draft_.files == SettingsDraft::Place::kBucket;
    for (const char* member : {"endpoint", "bucket", "region", "access_key", "secret_key"}) {
      const bool has_default = member == std::string_view("region");
      if (in_bucket && !members.contains(member) && !has_default)
        return Reject(place, "must have " + std::string(member));
      if (!in_bucket && members.contains(member)) return Reject(Join(place, member), "is for \"type\": \"s3\"");
    }
    if (draft_.bucket.endpoint.ends_with('/')) draft_.bucket.endpoint.pop_back();
    if (in_bucket) options_.bucket = std::move(draft_.bucket);
    draft_ = {};
    return {};
  }

  // One endpoint serves traces and metrics.
  void SpreadTelemetry(const Json& members) {
    TelemetryOptions& telemetry = options_.telemetry;
    if (members.contains("otlp_endpoint")) SetOtlpEndpoint(telemetry, std::string(telemetry.traces.url));
    if (members.contains("headers")) telemetry.metrics.headers = telemetry.traces.headers;
  }

  Options& options_;
  const Environment& environment_;
  const FolderLayer* const layer_;  // null: all keys count
  ConfigKeys* const keys_;          // null: nobody asks
  SettingsDraft draft_;             // being read, until it is complete
  std::string name_;                // of the element being read
};

}  // namespace

Result<void> ApplyConfig(Options& options, std::string_view text, const Environment& environment, ConfigKeys* keys) {
  return ConfigReader(options, environment, nullptr, keys).ReadRoot(TRY(ParseJsonWithComments(text)));
}

Result<void> ApplyFolderConfig(Options& options, std::string_view text, const Environment& environment,
                               const FolderLayer& layer, ConfigKeys* keys) {
  return ConfigReader(options, environment, &layer, keys).ReadRoot(TRY(ParseJsonWithComments(text)));
}

}  // namespace reprise
