#include "app/model_catalog.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/options.h"
#include "model/model_directory.h"
#include "model/openai/openai_audio.h"

namespace reprise {
namespace {

// The configured facts of a provider's models, by the provider's own names.
std::map<std::string, ModelFacts, std::less<>> FactsOf(const ProviderOptions& provider, const Options& options) {
  std::map<std::string, ModelFacts, std::less<>> own;
  const std::string prefix = provider.name + "/";
  for (const auto& [name, facts] : options.models) {
    if (name.starts_with(prefix)) own.emplace(name.substr(prefix.size()), facts);
  }
  return own;
}

// The models that GET /models names without asking the provider: the configured ones and the default model.
std::vector<std::string> ModelsOf(const ProviderOptions& provider, const Options& options) {
  std::set<std::string> names;
  for (const auto& [name, facts] : FactsOf(provider, options)) names.insert(name);
  const std::string prefix = provider.name + "/";
  if (options.model.starts_with(prefix)) names.insert(options.model.substr(prefix.size()));
  const std::string usual = UsualModel(provider);
  if (names.empty() && usual.starts_with(prefix)) names.insert(usual.substr(prefix.size()));
  return {names.begin(), names.end()};
}

// A request to a well-known provider without a key would only tell it about this server.
bool ListsModels(const ProviderOptions& provider) { return !provider.api_key.empty() || !WantsKey(provider); }

}  // namespace

bool WantsKey(const ProviderOptions& provider) {
  return provider.base_url.starts_with("https://api.openai.com") ||
         provider.base_url.starts_with("https://api.anthropic.com");
}

Result<std::unique_ptr<ModelDirectory>> MakeModelDirectory(Transport& transport, const Options& options) {
  std::vector<ProviderConfig> providers;
  for (const ProviderOptions& provider : options.providers) {
    providers.push_back({.name = provider.name,
                         .type = provider.type,
                         .base_url = provider.base_url,
                         .api_key = provider.api_key,
                         .idle_timeout = options.provider_idle_timeout,
                         .models = ModelsOf(provider, options),
                         .lists_models = ListsModels(provider),
                         .additions = {.headers = provider.headers, .query = provider.query},
                         .facts = FactsOf(provider, options)});
  }
  // With kApproveAll, the offline model does not wait for people either.
  const bool asks_people = options.approval_mode != ApprovalMode::kApproveAll;
  providers.push_back({.name = "offline", .type = "offline", .asks_people = asks_people});
  return ConfiguredModelDirectory::Create(transport, std::move(providers), options.model);
}

Result<std::unique_ptr<Audio>> MakeAudio(Transport& transport, const Options& options) {
  OpenAiAudioOptions audio{.transcription_model = options.audio.transcription,
                           .speech_model = options.audio.speech,
                           .voice = options.audio.voice};
  for (const ProviderOptions& provider : options.providers) {
    if (provider.type == "anthropic") continue;
    audio.providers.emplace(provider.name,
                            OpenAiOptions{.base_url = provider.base_url,
                                          .api_key = provider.api_key,
                                          .provider = provider.name,
                                          .idle_timeout = options.provider_idle_timeout,
                                          .additions = {.headers = provider.headers, .query = provider.query}});
  }
  for (const auto& [setting, model] :
       {std::pair<std::string, std::string>("transcription", options.audio.transcription),
        {"speech", options.audio.speech}}) {
    if (model.empty() || audio.providers.contains(model.substr(0, model.find('/')))) continue;
    return Fail(Reason::kInvalidConfig,
                "key \"audio." + setting + "\": there is no provider of the type openai for " + model);
  }
  return std::make_unique<OpenAiAudio>(transport, std::move(audio));
}

}  // namespace reprise
