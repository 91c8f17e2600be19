#include "model/listing_cache.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "base/logging.h"
#include "base/mutex.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct ListingCache::State {
  struct Listing {
    std::vector<ListedModel> models;
    Clock::time_point good_until{};
    bool asked = false;  // and has not answered yet
    Clock::time_point asked_at{};
  };
  const Listing* Find(std::string_view provider) const REQUIRES(mutex) {
    const auto found = listings.find(provider);
    return found == listings.end() ? nullptr : &found->second;
  }

  mutable Mutex mutex;
  std::condition_variable_any answered;
  std::map<std::string, Listing, std::less<>> listings GUARDED_BY(mutex);
};

ListingCache::ListingCache(Limits limits) : limits_(limits), state_(std::make_shared<State>()) {}

ListingCache::~ListingCache() {
  stop_.request_stop();
  MutexLock lock(state_->mutex);
  state_->answered.wait(lock, [this]() REQUIRES(state_->mutex) {
    return std::none_of(state_->listings.begin(), state_->listings.end(),
                        [](const auto& each) { return each.second.asked; });
  });
}

void ListingCache::Refresh(const std::map<std::string, ModelClient*>& clients) {
  std::vector<std::pair<std::string, ModelClient*>> old;
  {
    const MutexLock lock(state_->mutex);
    const auto now = Clock::now();
    for (const auto& [provider, client] : clients) {
      State::Listing& listing = state_->listings[provider];
      if (listing.asked || listing.good_until > now) continue;
      listing.asked = true;
      listing.asked_at = now;
      old.emplace_back(provider, client);
    }
  }
  for (const auto& [provider, client] : old) {
    client->ListModels(stop_.get_token(), [state = state_, limits = limits_,
                                           name = provider](Result<std::vector<ListedModel>> models) {
      if (!models) LogInfo("a provider did not list its models", {{"provider", name}, {"code", models.error().reason}});
      const MutexLock lock(state->mutex);
      State::Listing& listing = state->listings[name];
      listing.asked = false;
      listing.good_until = Clock::now() + (models ? limits.keep : limits.keep_failure);
      if (models) listing.models = *std::move(models);  // on failure, keeps the old list
      state->answered.notify_all();
    });
  }
  // If a provider was asked already, waits only for the rest of its time.
  MutexLock lock(state_->mutex);
  for (const auto& [provider, client] : clients) {
    const State::Listing& listing = state_->listings[provider];
    state_->answered.wait_until(lock, listing.asked_at + limits_.wait, [&] { return !listing.asked; });
  }
}

std::vector<ListedModel> ListingCache::Models(std::string_view provider) const {
  const MutexLock lock(state_->mutex);
  const State::Listing* listing = state_->Find(provider);
  return listing == nullptr ? std::vector<ListedModel>() : listing->models;
}

std::optional<ListedModel> ListingCache::Find(std::string_view provider, std::string_view model) const {
  const MutexLock lock(state_->mutex);
  const State::Listing* listing = state_->Find(provider);
  if (listing == nullptr) return std::nullopt;
  const auto found = std::find_if(listing->models.begin(), listing->models.end(),
                                  [&](const ListedModel& each) { return each.name == model; });
  return found == listing->models.end() ? std::nullopt : std::optional(*found);
}

}  // namespace reprise
