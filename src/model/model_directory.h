#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/endpoint.h"
#include "model/model_listing.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

struct ProviderConfig {
  std::string name = {};  // the part of a model's full name before the '/'
  std::string type = {};  // "openai", "openai_responses", "openai_realtime", "anthropic" or "offline"
  std::string base_url = {};
  std::string api_key = {};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{120'000};
  std::vector<std::string> models = {};  // for List; other models can be used too
  bool lists_models = true;              // List also asks the provider
  bool asks_people = true;               // of type "offline": see OfflineOptions
  std::string voice = {};                // of type "openai_realtime"; empty: the provider's default
  EndpointAdditions additions = {};
  WebSearchOptions web_search = {};
  std::map<std::string, ModelFacts, std::less<>> facts = {};  // by the provider's own names
};

// The configured providers. "offline" always exists.
class ConfiguredModelDirectory : public ModelDirectory {
 public:
  // `transport` must outlive the directory. An empty default model means "offline". kInvalidArgument (reason
  // "invalid_config"): a name is empty, taken or contains a '/', a type is unknown, or a type needs a base_url and has
  // none; (reason "unknown_model"): the default model cannot be resolved.
  static Result<std::unique_ptr<ConfiguredModelDirectory>> Create(Transport& transport,
                                                                  std::vector<ProviderConfig> providers,
                                                                  std::string default_model,
                                                                  ListingCache::Limits limits = {});

  Result<Resolved> Resolve(std::string_view name) const override;
  const std::string& default_model() const override { return default_model_; }
  std::vector<Entry> List() const override;
  std::vector<LeftOutTool> LeftOutTools() const override;

 private:
  struct Provider {
    std::unique_ptr<ModelClient> client;
    bool has_models;  // its models are "provider/model"; otherwise it is a single model
    bool lists_models = false;
    bool talks = false;  // its models hear and speak
    std::map<std::string, ModelFacts, std::less<>> facts = {};
  };
  explicit ConfiguredModelDirectory(ListingCache::Limits limits) : listings_(limits) {}
  Result<void> Add(Transport& transport, ProviderConfig config);
  Error UnknownModel(std::string_view what) const;
  // From the configuration, then from the provider's list, then built in.
  ModelFacts FactsOf(std::string_view provider_name, const Provider& provider, std::string_view model) const;

  std::map<std::string, Provider, std::less<>> providers_;
  std::string default_model_;
  mutable ListingCache listings_;  // after the clients it asks
};

}  // namespace reprise
