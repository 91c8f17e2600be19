#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

// Built-in facts about well-known models, by the provider's own names; used where neither the configuration nor the
// provider knows. Cautious: where a model's versions differ, the smaller number. `thinking` is kAdaptive for models
// that should decide themselves how much they think.
ModelFacts BuiltInFacts(std::string_view model);

// `facts`, with unknown values taken from `more`.
ModelFacts Complete(ModelFacts facts, const ModelFacts& more);

// Remembers which models each provider has. Thread-safe.
class ListingCache {
 public:
  struct Limits {
    std::chrono::milliseconds wait{3000};     // for a provider's answer
    std::chrono::milliseconds keep{300'000};  // age limit of an answer
    std::chrono::milliseconds keep_failure{15'000};
  };
  explicit ListingCache(Limits limits);
  // Cancels requests under way and waits for their end, which takes milliseconds.
  ~ListingCache();
  ListingCache(const ListingCache&) = delete;
  ListingCache& operator=(const ListingCache&) = delete;

  // Asks the clients whose answer is missing or old, all at once, and waits until each has answered or was asked `wait`
  // ago. A client that is being asked is not asked again. Late answers are remembered too. The clients must outlive
  // this.
  void Refresh(const std::map<std::string, ModelClient*>& clients);

  // The last answer of a provider; empty before the first. Does not block.
  std::vector<ListedModel> Models(std::string_view provider) const;
  // The model's entry in the list; nullopt if it has none.
  std::optional<ListedModel> Find(std::string_view provider, std::string_view model) const;

 private:
  struct State;
  const Limits limits_;
  const std::shared_ptr<State> state_;
  std::stop_source stop_;
};

// Sends `request`, a complete GET of a provider's list of models, and reads the answer; `done` as in
// ModelClient::ListModels.
void FetchModelList(Transport& transport, HttpRequest request, std::string api_key, std::stop_token stop,
                    ModelClient::Listed done);

// Reads the forms in use: {"data":[{"id":...}]} (OpenAI, Anthropic, most others), the same with "models" or "name", or
// a bare array. Servers give the context size, abilities and prices under various names.
// kProvider (provider_protocol) if there is no list. Impossible names (empty, very long, with control characters) are
// left out.
Result<std::vector<ListedModel>> ReadModelList(std::string_view json);

}  // namespace reprise
