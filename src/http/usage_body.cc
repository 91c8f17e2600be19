#include "http/usage_body.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "domain/usage_codec.h"

namespace reprise {
namespace {

Json Body(const TokenUsage& usage, std::optional<double> cost) {
  Json json = Json::object();
  WriteUsage(json, usage);
  constexpr double kDigits = 1e9;  // what is beyond them comes from binary fractions
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

}  // namespace reprise
