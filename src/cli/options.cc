#include "cli/options.h"

#include <arpa/inet.h>

#include "cli/config_file.h"
#include "cli/private_file.h"
#include "cli/settings.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxConfigFile = 1 << 20;
constexpr const char* kDefaultConfigFile = "reprise.json";

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

// The file that was asked for must be there; the default one need not.
Result<void> ApplyConfigFile(Options& options, const Flags& flags, const Environment& environment) {
  const auto flag = flags.find("config");
  const auto named = flag != flags.end() ? std::optional(flag->second) : environment("REPRISE_CONFIG");
  const std::string path = named.value_or(kDefaultConfigFile);
  const auto text = named ? ReadSmallFile(path, kMaxConfigFile) : ReadOwnFile(path, kMaxConfigFile);
  if (!text && !named && text.error().code == ErrorCode::kNotFound) return {};
  if (!text && text.error().code == ErrorCode::kForbidden) {
    return Fail(ErrorCode::kForbidden, text.error().message + "; fix that, or name it with --config");
  }
  if (!text) return Fail(text.error());
  options.config_file = path;
  if (auto applied = ApplyConfig(options, *text, environment); !applied)
    return Fail(InFront(path + ":", applied.error()));
  return {};
}

Result<void> ApplyEnvironmentAndFlags(Options& options, const Flags& flags, const Environment& environment) {
  for (const Setting& setting : Settings()) {
    if (const auto flag = flags.find(std::string(setting.name)); flag != flags.end()) {
      const auto applied = setting.apply(options, flag->second);
      if (!applied) return Fail(InFront("--" + flag->first, applied.error()));
    } else if (const auto variable = environment(EnvironmentName(setting))) {
      const auto applied = setting.apply(options, *variable);
      if (!applied) return Fail(InFront(EnvironmentName(setting), applied.error()));
    }
  }
  return {};
}

Result<void> FinishProviders(Options& options) {
  for (ProviderOptions& provider : options.providers) {
    while (provider.base_url.ends_with('/')) provider.base_url.pop_back();
    if (provider.base_url.empty()) {
      provider.base_url = provider.type == "openai" ? "https://api.openai.com/v1" : "https://api.anthropic.com";
    }
    if (!provider.base_url.starts_with("http://") && !provider.base_url.starts_with("https://")) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the base URL of provider " + provider.name + " must begin with http:// or https://");
    }
    for (const char c : provider.api_key) {
      // It becomes a header's value; a line end in it would forge further headers.
      if (c <= ' ' || c >= 0x7f) {
        return Fail(ErrorCode::kInvalidArgument, "the API key of provider " + provider.name +
                                                     " has characters that no key has (a space, a line end?)");
      }
    }
  }
  return {};
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

}  // namespace

std::string UsualModel(const ProviderOptions& provider) {
  if (provider.api_key.empty()) return {};
  if (provider.name == "openai" && provider.type == "openai") return "openai/gpt-4o-mini";
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
  options.providers = BuiltInProviders(environment);
  if (auto applied = ApplyConfigFile(options, flags, environment); !applied) return Fail(applied.error());
  if (auto applied = ApplyEnvironmentAndFlags(options, flags, environment); !applied) return Fail(applied.error());
  if (auto finished = FinishProviders(options); !finished) return Fail(finished.error());
  if (options.model.empty()) options.model = ChooseModel(options);
  if (auto checked = CheckModel(options); !checked) return Fail(checked.error());
  if (!IsLoopback(options.host) && options.token_file.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "--host " + options.host + " can be reached from other machines and needs --token-file");
  }
  return options;
}

}  // namespace reprise
