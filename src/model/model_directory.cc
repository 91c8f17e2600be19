#include "model/model_directory.h"

#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "model/anthropic/anthropic_client.h"
#include "model/offline/offline_client.h"
#include "model/openai/openai_client.h"
#include "model/realtime/realtime_client.h"

namespace reprise {
namespace {

constexpr std::string_view kOffline = "offline";
constexpr std::string_view kRealtime = "openai_realtime";
constexpr ModelAbilities kTalks{.tools = true, .images = {}, .pdf = false, .audio = true, .reasoning = {}};
constexpr std::size_t kMaxQuotedModel = 80;
constexpr ModelAbilities kOfflineAbilities{
    .tools = true, .images = false, .pdf = false, .audio = false, .reasoning = false};

Error InvalidConfig(std::string message) { return Refused(Reason::kInvalidConfig, std::move(message)); }

std::string Quoted(std::string_view name) {
  const std::string valid = ToValidUtf8(name);
  std::string quoted(1, '\'');
  quoted += Utf8Prefix(valid, kMaxQuotedModel);
  quoted += '\'';
  return quoted;
}

}  // namespace

Result<std::unique_ptr<ConfiguredModelDirectory>> ConfiguredModelDirectory::Create(
    Transport& transport, std::vector<ProviderConfig> providers, std::string default_model,
    ListingCache::Limits limits) {
  std::unique_ptr<ConfiguredModelDirectory> directory(new ConfiguredModelDirectory(limits));
  for (ProviderConfig& config : providers) {
    TRY(directory->Add(transport, std::move(config)));
  }
  if (!directory->providers_.contains(kOffline)) {
    directory->providers_.emplace(kOffline, Provider{std::make_unique<OfflineClient>(), /*has_models=*/false});
  }
  if (default_model.empty()) default_model = kOffline;
  auto resolved = TRY(directory->Resolve(default_model));
  directory->default_model_ = std::move(resolved.full_name);
  return directory;
}

Result<void> ConfiguredModelDirectory::Add(Transport& transport, ProviderConfig config) {
  if (config.name.empty() || config.name.find('/') != std::string::npos) {
    return Fail(InvalidConfig("a provider's name must not be empty and have no '/' in it"));
  }
  if (providers_.contains(config.name)) return Fail(InvalidConfig("two providers are named " + Quoted(config.name)));
  const std::string& name = config.name;
  if (config.type == kOffline) {
    const OfflineOptions options{.asks_people = config.asks_people};
    providers_.emplace(name, Provider{std::make_unique<OfflineClient>(options), /*has_models=*/false});
    return {};
  }
  if (config.type != "openai" && config.type != "openai_responses" && config.type != kRealtime &&
      config.type != "anthropic") {
    return Fail(InvalidConfig(
        "provider " + Quoted(name) +
        " is of an unknown type; known are openai, openai_responses, openai_realtime, anthropic and offline"));
  }
  if (config.base_url.empty()) return Fail(InvalidConfig("provider " + Quoted(name) + " has no base_url"));
  Provider provider{.client = nullptr,
                    .has_models = true,
                    .lists_models = config.lists_models,
                    .talks = config.type == kRealtime,
                    .facts = config.facts};
  if (config.type == "anthropic") {
    provider.client =
        std::make_unique<AnthropicClient>(transport, AnthropicOptions{.base_url = std::move(config.base_url),
                                                                      .api_key = std::move(config.api_key),
                                                                      .provider = config.name,
                                                                      .connect_timeout = config.connect_timeout,
                                                                      .idle_timeout = config.idle_timeout,
                                                                      .models = std::move(config.models),
                                                                      .facts = std::move(config.facts),
                                                                      .additions = std::move(config.additions),
                                                                      .web_search = std::move(config.web_search)});
  } else {
    OpenAiOptions options{.base_url = std::move(config.base_url),
                          .api_key = std::move(config.api_key),
                          .provider = config.name,
                          .connect_timeout = config.connect_timeout,
                          .idle_timeout = config.idle_timeout,
                          .models = std::move(config.models),
                          .facts = std::move(config.facts),
                          .additions = std::move(config.additions),
                          .web_search = std::move(config.web_search)};
    if (config.type == "openai_responses") {
      provider.client = std::make_unique<ResponsesClient>(transport, std::move(options));
    } else if (provider.talks) {
      provider.client = std::make_unique<RealtimeClient>(transport, std::move(options), std::move(config.voice));
    } else {
      provider.client = std::make_unique<OpenAiClient>(transport, std::move(options));
    }
  }
  providers_.emplace(name, std::move(provider));
  return {};
}

ModelFacts ConfiguredModelDirectory::FactsOf(std::string_view provider_name, const Provider& provider,
                                             std::string_view model) const {
  const auto configured = provider.facts.find(model);
  ModelFacts facts = configured != provider.facts.end() ? configured->second : ModelFacts{};
  if (const auto listed = listings_.Find(provider_name, model)) {
    facts = Complete(facts, {.context_window = listed->context_window, .abilities = listed->abilities});
  }
  if (provider.talks) facts = Complete(facts, {.abilities = kTalks});
  return Complete(facts, BuiltInFacts(model));
}

Error ConfiguredModelDirectory::UnknownModel(std::string_view what) const {
  std::string known;
  for (const auto& [name, provider] : providers_) {
    if (!known.empty()) known += ", ";
    known += name;
    if (provider.has_models) known += "/MODEL";
  }
  return Refused(Reason::kUnknownModel, std::string(what) + "; known are: " + known);
}

Result<ModelDirectory::Resolved> ConfiguredModelDirectory::Resolve(std::string_view name) const {
  if (name.empty()) name = default_model_;
  const std::size_t slash = name.find('/');
  const std::string_view provider_name = name.substr(0, slash);
  const std::string_view model = slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
  const auto found = providers_.find(provider_name);
  if (found == providers_.end()) return Fail(UnknownModel("there is no model provider " + Quoted(provider_name)));
  const Provider& provider = found->second;
  if (!provider.has_models) {
    return Resolved{provider.client.get(), std::string(provider_name), std::string(provider_name), 0,
                    kOfflineAbilities};
  }
  if (model.empty()) return Fail(UnknownModel(Quoted(name) + " does not say which model"));
  const ModelFacts facts = FactsOf(provider_name, provider, model);
  return Resolved{provider.client.get(), std::string(model), std::string(name),
                  facts.context_window,  facts.abilities,    facts.edit_format};
}

std::vector<LeftOutTool> ConfiguredModelDirectory::LeftOutTools() const {
  std::vector<LeftOutTool> all;
  for (const auto& [name, provider] : providers_) {
    for (LeftOutTool& each : provider.client->LeftOutTools()) {
      each.model = name + "/" + each.model;
      all.push_back(std::move(each));
    }
  }
  return all;
}

std::vector<ModelDirectory::Entry> ConfiguredModelDirectory::List() const {
  std::map<std::string, ModelClient*> clients;
  for (const auto& [name, provider] : providers_) {
    if (provider.lists_models) clients.emplace(name, provider.client.get());
  }
  listings_.Refresh(clients);
  std::vector<Entry> entries;
  for (const auto& [name, provider] : providers_) {
    if (!provider.has_models) {
      entries.push_back({.name = name, .provider = name, .abilities = kOfflineAbilities});
      continue;
    }
    std::set<std::string> models;
    for (const std::string& model : provider.client->KnownModels()) models.insert(model);
    for (const ListedModel& model : listings_.Models(name)) models.insert(model.name);
    for (const std::string& model : models) {
      const ModelFacts facts = FactsOf(name, provider, model);
      const auto listed = listings_.Find(name, model);
      entries.push_back({.name = name + "/" + model,
                         .provider = name,
                         .context_window = facts.context_window,
                         .abilities = facts.abilities,
                         .price = listed ? listed->price : std::nullopt});
    }
  }
  return entries;
}

}  // namespace reprise
