#include "doors/api/bodies.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "domain/codec.h"

namespace reprise {

namespace {

Json Body(const TokenUsage& usage, std::optional<double> cost) {
  Json json = Json::object();
  WriteUsage(json, usage);
  constexpr double kDigits = 1e9;  // further digits come from binary fractions
  json["cost"] = cost ? Json(std::round(*cost * kDigits) / kDigits) : Json(nullptr);
  return json;
}

}  // namespace

Json UsageBody(const UsageByModel& usage, const PriceTable& prices) {
  TokenUsage total;
  std::optional<double> total_cost = 0;
  Json models = Json::array();
  for (const auto& [model, tokens] : usage) {
    const auto price = prices.find(model);
    const auto cost = price == prices.end() ? std::nullopt : std::optional(CostOf(tokens, price->second));
    Json body = {{"model", model}};
    body.update(Body(tokens, cost));
    models.push_back(std::move(body));
    total += tokens;
    total_cost = total_cost && cost ? std::optional(*total_cost + *cost) : std::nullopt;
  }
  Json body = Body(total, total_cost);
  body["models"] = std::move(models);
  return body;
}

void AddTo(Json& body, const FilesPreview& preview) {
  Json& list = body["files"] = Json::array();
  for (const FilePreview& file : preview.files) {
    list.push_back({{"path", file.path}, {"change", file.change}, {"conflict", !file.conflict.empty()}});
    if (!file.conflict.empty()) list.back()["reason"] = file.conflict;
    if (Json loses = ToJson(file.loses); !loses.empty()) list.back()["loses"] = std::move(loses);
    if (file.imported) list.back()["imported"] = true, list.back()["diff"] = file.diff;
  }
  if (preview.omitted > 0) body["omitted"] = preview.omitted;
  if (preview.unseen) body["unseen"] = true;
}

namespace {

Json ToJson(const ModelPrice& price) {
  Json json = {{"input", price.input}, {"output", price.output}};
  if (price.cache_read) json["cache_read"] = *price.cache_read;
  if (price.cache_write) json["cache_write"] = *price.cache_write;
  if (price.searches) json["searches"] = *price.searches;
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
               std::string_view speech, std::string_view talk) {
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
          {"audio", {{"transcription", name(transcription)}, {"speech", name(speech)}, {"talk", name(talk)}}}};
}

}  // namespace reprise
