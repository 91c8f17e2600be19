#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/endpoint.h"
#include "model/listing_cache.h"
#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

struct ProviderConfig {
  std::string name = {};  // what stands before the '/' of a model's full name
  std::string type = {};  // "openai", "anthropic" or "offline"
  std::string base_url = {};
  std::string api_key = {};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{120'000};
  std::vector<std::string> models = {};  // for List; others can be used all the same
  bool lists_models = true;              // List asks it for more
  bool asks_people = true;               // of type "offline": see OfflineOptions
  EndpointAdditions additions = {};
  std::map<std::string, ModelFacts, std::less<>> facts = {};  // by the provider's own names
};

// The configured providers. "offline" is always there.
class ConfiguredModelDirectory : public ModelDirectory {
 public:
  // `transport` must outlive the directory. An empty default model is "offline". kInvalidArgument (reason
  // "invalid_config") for a name that is empty, taken or has a '/' in it, an unknown type, or one without
  // base_url that needs it; (reason "unknown_model") for a default model that cannot be resolved.
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
    bool has_models;  // its names are "provider/model"; otherwise it is one model itself
    bool lists_models = false;
    std::map<std::string, ModelFacts, std::less<>> facts = {};
  };
  explicit ConfiguredModelDirectory(ListingCache::Limits limits) : listings_(limits) {}
  Result<void> Add(Transport& transport, ProviderConfig config);
  Error UnknownModel(std::string_view what) const;
  // What is configured, then what the provider has listed, then what is built in.
  ModelFacts FactsOf(std::string_view provider_name, const Provider& provider, std::string_view model) const;

  std::map<std::string, Provider, std::less<>> providers_;
  std::string default_model_;
  mutable ListingCache listings_;  // after the clients it asks
};

}  // namespace reprise
