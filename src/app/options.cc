#include "app/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/settings.h"
#include "app/trust.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxConfigFile = 1 << 20;
Error InFront(std::string_view where, const Error& error) {
  Error named = error;
  named.message = std::string(where) + " " + error.message;
  return named;
}

std::vector<ProviderOptions> BuiltInProviders(const Environment& environment) {
  return {{.name = "openai",
           .type = "openai",
           .base_url = environment("OPENAI_BASE_URL").value_or("https://api.openai.com/v1"),
           .api_key = environment("OPENAI_API_KEY").value_or("")},
          {.name = "anthropic",
           .type = "anthropic",
           .base_url = environment("ANTHROPIC_BASE_URL").value_or("https://api.anthropic.com"),
           .api_key = environment("ANTHROPIC_API_KEY").value_or("")}};
}

// A configuration, and whether it was found rather than named, so that it must have been allowed.
struct ConfigText {
  std::string path, text;
  bool found = false;
};

// A named file must exist; default files need not. nullopt if there is none.
Result<std::optional<ConfigText>> FindConfig(const Flags& flags, const Environment& environment) {
  const auto flag = flags.find("config");
  if (const auto named = flag != flags.end() ? std::optional(flag->second) : environment("REPRISE_CONFIG")) {
    auto text = ReadSmallFile(*named, kMaxConfigFile);
    if (!text && text.error().code == ErrorCode::kNotFound) {
      return Fail(ErrorCode::kInvalidArgument, "there is no configuration file " + *named);
    }
    if (!text) return Fail(text.error());
    return ConfigText{.path = *named, .text = *std::move(text)};
  }
  std::vector<std::string> places = {kDefaultConfigFile};
  if (const auto folder = ConfigFolder(environment)) places.push_back(*folder + "/" + kDefaultConfigFile);
  for (const std::string& path : places) {
    if (!IsThere(path)) continue;
    auto text = ReadOwnFile(path, kMaxConfigFile);
    if (!text && text.error().code == ErrorCode::kForbidden) {
      return Fail(ErrorCode::kForbidden, text.error().message + "; fix that, or name it with --config");
    }
    if (!text) return Fail(text.error());
    return ConfigText{.path = path, .text = *std::move(text), .found = true};
  }
  return std::nullopt;
}

// True for ./reprise.json, and for the file in the configuration folder if it leads to a file that tools could write.
bool NeedsTrust(const ConfigText& config, const Options& options, const Environment& environment) {
  if (!config.found) return false;
  return config.path == kDefaultConfigFile ||
         OpenToTools(config.path, options.workspace, ConfigFolder(environment).value_or(""));
}

Result<void> RequireTrustOf(const ConfigText& config, const Options& options) {
  FileDigests files = {{PlaceOf(config.path), Sha256Digest({config.text})}};
  // Asks once about everything. Without trust in the configuration, errors in its programs are not reported.
  const auto configuration = RequireTrust(options, files, /*ask=*/false);
  if (configuration || !configuration.error().Is(Reason::kUntrusted)) return configuration;
  if (auto named = FilesToTrust(options)) files.merge(*named);
  return RequireTrust(options, files);
}

Result<void> ApplyEnvironmentAndFlags(Options& options, const Flags& flags, const Environment& environment) {
  for (const Setting& setting : Settings()) {
    if (setting.flag.name.empty()) continue;
    if (const auto flag = flags.find(std::string(setting.flag.name)); flag != flags.end()) {
      const auto applied = ApplySetting(setting, options, flag->second);
      if (!applied) return Fail(InFront("--" + flag->first, applied.error()));
    } else if (const auto variable = environment(EnvironmentName(setting))) {
      const auto applied = ApplySetting(setting, options, *variable);
      if (!applied) return Fail(InFront(EnvironmentName(setting), applied.error()));
    }
  }
  return {};
}

// Moves the query of base_url (?api-version=...) behind the path of each request, before the configured parameters.
void SplitQuery(ProviderOptions& provider) {
  std::string_view url = provider.base_url;
  url = url.substr(0, url.find('#'));
  const std::size_t mark = url.find('?');
  std::vector<std::pair<std::string, std::string>> query;
  for (std::string_view rest = mark == std::string_view::npos ? "" : url.substr(mark + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto is_configured = [&](const auto& pair) { return pair.first == part.substr(0, equals); };
    if (part.empty() || std::any_of(provider.query.begin(), provider.query.end(), is_configured)) continue;
    query.emplace_back(part.substr(0, equals), part.substr(std::min(part.size(), equals + 1)));
  }
  provider.query.insert(provider.query.begin(), query.begin(), query.end());
  provider.base_url = std::string(url.substr(0, mark));
}

std::string ChooseModel(const Options& options) {
  for (const ProviderOptions& provider : options.providers) {
    if (std::string usual = UsualModel(provider); !usual.empty()) return usual;
  }
  for (const ProviderOptions& provider : options.providers) {
    if (provider.api_key.empty()) continue;
    for (const auto& [name, facts] : options.models) {
      if (name.starts_with(provider.name + "/")) return name;
    }
  }
  return "offline";
}

Result<void> CheckModel(const Options& options) {
  if (options.model == "offline") return {};
  const std::string provider = options.model.substr(0, options.model.find('/'));
  if (provider.size() + 1 >= options.model.size()) {
    return Fail(ErrorCode::kInvalidArgument, "the model \"" + options.model + "\" must be offline or PROVIDER/NAME");
  }
  std::string known;
  for (const ProviderOptions& candidate : options.providers) {
    if (candidate.name == provider) return {};
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  return Fail(ErrorCode::kInvalidArgument, "the model \"" + options.model +
                                               "\" names a provider that is not configured (" +
                                               (known.empty() ? "there is none" : "there are: " + known) + ")");
}

// The default data folder: here, if it has chats or a configuration, else in the user's data folder (XDG Base Directory
// Specification). kForbidden if tools could have redirected it with a link; --data-dir can name a wanted link.
Result<std::string> DefaultDataFolder(bool has_config_here, const Environment& environment) {
  constexpr const char* kHere = "chats";
  if (has_config_here) return kHere;
  for (const char* made : {"/.sealed_by", "/.lock"}) {
    if (IsThere(kHere + std::string(made))) return kHere;
  }
  auto data = environment("XDG_DATA_HOME");
  if (!data || !data->starts_with('/')) {
    const auto home = environment("HOME");
    if (!home) return kHere;
    data = *home + "/.local/share";
  }
  for (const std::string& folder : {*data + "/reprise", *data + "/reprise/chats"}) {
    std::error_code failed;
    if (std::filesystem::is_symlink(folder, failed)) {
      return Fail(ErrorCode::kForbidden,
                  folder + " is a symbolic link; if it is yours, name the folder with --data-dir");
    }
  }
  return *data + "/reprise/chats";
}

}  // namespace

Result<void> FinishProviders(std::vector<ProviderOptions>& providers) {
  for (ProviderOptions& provider : providers) {
    SplitQuery(provider);
    while (provider.base_url.ends_with('/')) provider.base_url.pop_back();
    if (provider.base_url.empty()) {
      provider.base_url = provider.type == "anthropic" ? "https://api.anthropic.com" : "https://api.openai.com/v1";
    }
    if (!provider.base_url.starts_with("http://") && !provider.base_url.starts_with("https://")) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the base URL of provider " + provider.name + " must begin with http:// or https://");
    }
    for (const char c : provider.api_key) {
      // The key becomes a header's value, and a line end in it would forge further headers.
      if (c <= ' ' || c >= 0x7f) {
        return Fail(ErrorCode::kInvalidArgument, "the API key of provider " + provider.name +
                                                     " has characters that no key has (a space, a line end?)");
      }
    }
  }
  return {};
}

std::string UsualModel(const ProviderOptions& provider) {
  if (provider.api_key.empty()) return {};
  if (provider.name == "openai" && provider.type != "anthropic") return "openai/gpt-4o-mini";
  if (provider.name == "anthropic" && provider.type == "anthropic") return "anthropic/claude-sonnet-5";
  return {};
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Result<Options> LoadOptions(const Flags& flags, const Environment& environment) {
  Options options;
  options.model.clear();
  options.data_dir.clear();
  options.providers = BuiltInProviders(environment);
  if (const auto folder = ConfigFolder(environment)) options.trust_file = *folder + "/" + kTrustedFileName;
  const auto config = TRY(FindConfig(flags, environment));
  if (config) {
    options.config_file = config->path;
    const auto applied = ApplyConfig(options, config->text, environment);
    if (!applied) return Fail(InFront(config->path + ":", applied.error()));
  }
  TRY(ApplyEnvironmentAndFlags(options, flags, environment));
  ApplyTelemetryVariables(options.telemetry, environment);
  if (options.data_dir.empty()) {
    options.data_dir = TRY(DefaultDataFolder(options.config_file == kDefaultConfigFile, environment));
  }
  TRY(FinishProviders(options.providers));
  if (options.model.empty()) options.model = ChooseModel(options);
  TRY(CheckModel(options));
  if (!IsLoopback(options.host) && options.token_file.empty() && !options.auth.has_people()) {
    return Fail(ErrorCode::kInvalidArgument,
                "--host " + options.host + " can be reached from other machines and needs --token-file, or \"auth\"");
  }
  if (options.auth.has_people() && options.workspace_mode == WorkspaceMode::kLocal) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "workspace_mode local is for one user: with \"auth\" it is none, or shared if all may see and change it");
  }
  // Last, so that the question shows the final options.
  if (config && NeedsTrust(*config, options, environment)) {
    TRY(RequireTrustOf(*config, options));
  }
  return options;
}

}  // namespace reprise
