#include "http/model_list.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace reprise {
namespace {

Json ToJson(const ModelPrice& price) {
  Json json = {{"input", price.input}, {"output", price.output}};
  if (price.cache_read) json["cache_read"] = *price.cache_read;
  if (price.cache_write) json["cache_write"] = *price.cache_write;
  return json;
}

Json ToJson(const ModelAbilities& abilities) {
  Json json = Json::object();
  for (const AbilityName& ability : kAbilityNames) {
    if (const auto has = abilities.*ability.member) json[std::string(ability.name)] = *has;
  }
  return json;
}

}  // namespace

Json ModelList(const ModelDirectory& directory, const PriceTable& prices, std::string_view transcription,
               std::string_view speech) {
  Json models = Json::array();
  for (const auto& entry : directory.List()) {
    Json model = {{"name", entry.name}, {"provider", entry.provider}};
    if (entry.context_window != 0) model["context_window"] = entry.context_window;
    if (Json abilities = ToJson(entry.abilities); !abilities.empty()) model["abilities"] = std::move(abilities);
    if (const auto price = prices.find(entry.name); price != prices.end()) {
      model["prices"] = ToJson(price->second);
    } else if (entry.price) {
      model["prices"] = ToJson(*entry.price);
    }
    models.push_back(std::move(model));
  }
  const auto name = [](std::string_view model) { return model.empty() ? Json(nullptr) : Json(std::string(model)); };
  return {{"models", std::move(models)},
          {"default", directory.default_model()},
          {"audio", {{"transcription", name(transcription)}, {"speech", name(speech)}}}};
}

}  // namespace reprise
