#include "model/provider_extras.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace reprise {

std::string MakeProviderExtras(std::string_view provider, Json members) {
  if (members.empty()) return {};
  Json by_provider = Json::object();
  by_provider[std::string(provider)] = std::move(members);
  Json extras = Json::object();
  extras[std::string(kProviderExtras)] = std::move(by_provider);
  return DumpJson(extras);
}

Json ParseExtras(const Message& message) {
  if (message.extras.empty()) return Json::object();
  auto extras = ParseJson(message.extras, 2 * kMaxJsonDepth);
  if (!extras || !extras->is_object()) return Json::object();
  return *std::move(extras);
}

const Json* FindProviderExtras(const Json& extras, std::string_view provider) {
  const auto by_provider = extras.find(kProviderExtras);
  if (by_provider == extras.end() || !by_provider->is_object()) return nullptr;
  const auto members = by_provider->find(provider);
  return members == by_provider->end() || !members->is_object() ? nullptr : &*members;
}

}  // namespace reprise
