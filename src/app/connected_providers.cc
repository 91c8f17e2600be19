#include "app/connected_providers.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <utility>

#include "app/factories.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxProviderName = 40, kMaxProviderText = 4096;

Error InvalidWish(std::string message) { return Refused(Reason::kInvalidMember, std::move(message)); }

bool IsOneWord(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

Result<void> CheckWanted(const ProviderConnections::Wanted& wanted) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  const bool is_name = !wanted.name.empty() && wanted.name.size() <= kMaxProviderName && wanted.name != "offline" &&
                       wanted.name[0] != '-' && wanted.name[0] != '_' && std::ranges::all_of(wanted.name, fits);
  if (!is_name)
    return Fail(InvalidWish("a provider's name has small letters, digits, - and _, and is not \"offline\""));
  if (wanted.type != "openai" && wanted.type != "openai_responses" && wanted.type != "anthropic") {
    return Fail(InvalidWish("\"type\" must be openai, openai_responses or anthropic"));
  }
  const bool is_web = wanted.base_url.starts_with("http://") || wanted.base_url.starts_with("https://");
  if (!is_web || wanted.base_url.size() > kMaxProviderText || !IsOneWord(wanted.base_url)) {
    return Fail(InvalidWish("\"base_url\" must begin with http:// or https://"));
  }
  // The key becomes a header's value, and a line end in it would forge further headers.
  if (wanted.api_key.size() > kMaxProviderText || !IsOneWord(wanted.api_key)) {
    return Fail(InvalidWish("\"api_key\" has characters that no key has (a space, a line end?)"));
  }
  return {};
}

ProviderConnections::Wanted WantedIn(const std::string& name, const Json& json) {
  return {.name = name,
          .type = TextMember(json, "type"),
          .base_url = TextMember(json, "base_url"),
          .api_key = TextMember(json, "api_key")};
}

// How many models the provider lists. A server without a list counts only if the person says that it has none, because
// a wrong path is answered in the same way.
Result<std::size_t> CountListed(const ModelDirectory& models, const ProviderConnections::Wanted& wanted) {
  constexpr std::chrono::seconds kPatience{10};
  std::stop_source give_up;
  const auto listed = std::make_shared<std::promise<Result<std::vector<ListedModel>>>>();
  auto answer = listed->get_future();
  const auto resolved = TRY(models.Resolve(wanted.name + "/any"));  // any name: the client is the provider's
  resolved.client->ListModels(give_up.get_token(), [listed](auto found) { listed->set_value(std::move(found)); });
  if (answer.wait_for(kPatience) != std::future_status::ready) {
    give_up.request_stop();
    return Fail(Reason::kProviderTimeout, "the provider does not answer");
  }
  auto found = answer.get();
  if (found) return found->size();
  if (!found.error().Is(Reason::kProviderNotFound)) return Fail(std::move(found.error()));
  if (wanted.has_no_list) return 0;
  return Fail(
      Reason::kProviderNotFound,
      "there is no list of models at this address; it usually ends in /v1. If the provider has none, connect it "
      "with \"has_no_list\"");
}

}  // namespace

ConnectedProviders::ConnectedProviders(Parts parts)
    : parts_(std::move(parts)),
      list_(kProvidersList, {parts_.disk, parts_.options.data_dir, parts_.keys, parts_.audit}) {
  const MutexLock lock(mutex_);
  for (const auto& [name, json] : list_.entries().items()) {
    Wanted wanted = WantedIn(name, json);
    parts_.secrets.Add(wanted.api_key);
    auto models = CheckWanted(wanted).and_then([&] { return ModelsOf(wanted); });
    if (!models || IsConfigured(name)) {
      LogWarning("a connected provider is not used", {{"provider", name}});
      continue;
    }
    connected_.insert_or_assign(name, Kept{std::move(wanted), models->get()});
    models_.push_back(*std::move(models));
  }
}

// The built-in entries of well-known providers are useless without a key.
bool ConnectedProviders::IsConfigured(const std::string& name) const {
  return std::ranges::any_of(parts_.options.providers, [&](const ProviderOptions& each) {
    return each.name == name && (!each.api_key.empty() || !WantsKey(each));
  });
}

Result<std::unique_ptr<ModelDirectory>> ConnectedProviders::ModelsOf(const Wanted& wanted) const {
  Options alone = parts_.options;
  alone.providers = {
      {.name = wanted.name, .type = wanted.type, .base_url = wanted.base_url, .api_key = wanted.api_key}};
  alone.model = "offline";
  return MakeModelDirectory(parts_.transport, alone);
}

Result<std::vector<ProviderConnections::Provider>> ConnectedProviders::List() {
  std::vector<Provider> all;
  for (const ProviderOptions& each : parts_.options.providers) {
    if (!IsConfigured(each.name)) continue;
    all.push_back({each.name, each.type, each.base_url, /*is_configured=*/true, !each.api_key.empty()});
  }
  const MutexLock lock(mutex_);
  for (const auto& [name, kept] : connected_) {
    const Wanted& provider = kept.provider;
    all.push_back({name, provider.type, provider.base_url, /*is_configured=*/false, !provider.api_key.empty()});
  }
  return all;
}

Result<void> ConnectedProviders::CheckWritable() const {
  const MutexLock lock(mutex_);
  return list_.CheckWritable();
}

Result<std::size_t> ConnectedProviders::Connect(const Wanted& wanted) {
  TRY(CheckWanted(wanted));
  if (IsConfigured(wanted.name)) {
    return Fail(ErrorCode::kConflict,
                "the configuration names a provider " + wanted.name + ", and it wins; change it there");
  }
  auto models = TRY(ModelsOf(wanted));
  TRY(CheckWritable());
  parts_.secrets.Add(wanted.api_key);  // also if it fails: a key that somebody has typed is a secret
  const std::size_t count = TRY(CountListed(*models, wanted));
  const MutexLock lock(mutex_);
  Json entries = list_.entries();
  entries[wanted.name] = {{"type", wanted.type}, {"base_url", wanted.base_url}, {"api_key", wanted.api_key}};
  TRY(list_.Change(AuditEntry::Event::kProviderConnected, wanted.name, Sha256Digest({wanted.base_url}),
                   std::move(entries)));
  connected_.insert_or_assign(wanted.name, Kept{wanted, models.get()});
  models_.push_back(std::move(models));
  return count;
}

Result<void> ConnectedProviders::Disconnect(const std::string& name) {
  const MutexLock lock(mutex_);
  TRY(list_.CheckWritable());
  Json entries = list_.entries();
  if (!entries.contains(name)) return Fail(ErrorCode::kNotFound, "no provider of this name was connected in the page");
  const std::string digest = Sha256Digest({TextMember(entries[name], "base_url")});
  entries.erase(name);
  TRY(list_.Change(AuditEntry::Event::kProviderDisconnected, name, digest, std::move(entries)));
  connected_.erase(name);
  return {};
}

const ModelDirectory* ConnectedProviders::Find(std::string_view provider) const {
  const MutexLock lock(mutex_);
  const auto found = connected_.find(provider);
  return found == connected_.end() ? nullptr : found->second.models;
}

std::vector<const ModelDirectory*> ConnectedProviders::All() const {
  const MutexLock lock(mutex_);
  std::vector<const ModelDirectory*> all;
  for (const auto& [name, kept] : connected_) all.push_back(kept.models);
  return all;
}

namespace {

class ModelsWithConnected final : public ModelDirectory {
 public:
  ModelsWithConnected(std::unique_ptr<ModelDirectory> configured, const ConnectedProviders& connected)
      : configured_(std::move(configured)), connected_(connected) {}

  Result<Resolved> Resolve(std::string_view name) const override {
    const ModelDirectory* const models = connected_.Find(name.substr(0, name.find('/')));
    return models == nullptr ? configured_->Resolve(name) : models->Resolve(name);
  }
  const std::string& default_model() const override { return configured_->default_model(); }
  std::vector<Entry> List() const override {
    std::vector<Entry> all = configured_->List();
    for (const ModelDirectory* const models : connected_.All()) {
      for (Entry& each : models->List()) {
        if (each.provider != "offline") all.push_back(std::move(each));  // every directory has it
      }
    }
    return all;
  }
  std::vector<LeftOutTool> LeftOutTools() const override {
    std::vector<LeftOutTool> all = configured_->LeftOutTools();
    for (const ModelDirectory* const models : connected_.All()) {
      for (LeftOutTool& each : models->LeftOutTools()) all.push_back(std::move(each));
    }
    return all;
  }

 private:
  const std::unique_ptr<ModelDirectory> configured_;
  const ConnectedProviders& connected_;
};

}  // namespace

std::unique_ptr<ModelDirectory> WithConnected(std::unique_ptr<ModelDirectory> configured,
                                              const ConnectedProviders& connected) {
  return std::make_unique<ModelsWithConnected>(std::move(configured), connected);
}

}  // namespace reprise
