#include "tools/arguments.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace reprise {

struct Arguments::Object {
  Json json = Json::object();
};

Arguments::Arguments(std::string_view text) : object_(std::make_unique<Object>()) {
  if (auto json = ParseJson(text); json && json->is_object()) object_->json = std::move(*json);
}

Arguments::~Arguments() = default;

std::optional<std::string> Arguments::String(std::string_view name) const {
  const auto member = object_->json.find(std::string(name));
  if (member == object_->json.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

std::vector<std::string> Arguments::Strings(std::string_view name) const {
  std::vector<std::string> strings;
  const auto member = object_->json.find(std::string(name));
  if (member == object_->json.end() || !member->is_array()) return strings;
  for (const Json& each : *member) {
    if (each.is_string()) strings.push_back(each.get<std::string>());
  }
  return strings;
}

std::optional<std::int64_t> Arguments::Integer(std::string_view name) const {
  const auto member = object_->json.find(std::string(name));
  if (member == object_->json.end() || !member->is_number()) return std::nullopt;
  // The conversion of a double that does not fit would be undefined.
  constexpr double kLimit = 9.0e18;
  if (!member->is_number_integer() && std::abs(member->get<double>()) > kLimit) return std::nullopt;
  return member->get<std::int64_t>();
}

}  // namespace reprise
