#include <nlohmann/json.hpp>

#include "client/answers.h"
#include "support/test.h"

namespace reprise::model_names_test {
namespace {

Json Listing(const std::vector<std::string>& names) {
  Json models = Json::array();
  for (const std::string& name : names) models.push_back({{"name", name}});
  return {{"models", models}};
}

std::string Found(const std::string& text) {
  static const Json models = Listing({"offline", "openai/gpt-4o-mini", "openai/gpt-4o", "router/anthropic/claude-next",
                                      "local/Qwen3", "local/qwen3-coder"});
  const auto model = FindModel(text, models, "X lists them");
  return model ? *model : model.error().message;
}

TEST_CASE("FindModel: an exact name wins, then a part that one model has", "[client]") {
  CHECK(Found("offline") == "offline");
  CHECK(Found("openai/gpt-4o") == "openai/gpt-4o");
  CHECK(Found("MINI") == "openai/gpt-4o-mini");
  CHECK(Found("coder") == "local/qwen3-coder");
  CHECK(Found("anthropic/claude") == "router/anthropic/claude-next");  // not a provider of this server
  CHECK(Found("openai/gpt-5") == "openai/gpt-5");                      // which does not list it
  CHECK(Found("openai/gpt-4") == "openai/gpt-4");
}

TEST_CASE("FindModel: a part of several names is refused, and lists them", "[client]") {
  CHECK(Found("qwen3") == "\"qwen3\" means any of 2 models: local/Qwen3, local/qwen3-coder (X lists them)");
  CHECK(Found("") ==
        "\"\" means any of 6 models: offline, openai/gpt-4o-mini, openai/gpt-4o, "
        "router/anthropic/claude-next, local/Qwen3, ... (X lists them)");
}

TEST_CASE("FindModel: what no model has is not found", "[client]") {
  CHECK(Found("ofline") == "no model is called ofline, did you mean offline? (X lists them)");
  CHECK(Found("none/at-all") ==
        "no model is called none/at-all; the providers are: local, offline, openai, router (X lists them)");
  CHECK(!FindModel("x", Json(nullptr), "").has_value());
  CHECK(!FindModel("x", Json{{"models", {{"x", 1}}}}, "").has_value());
  CHECK(!FindModel("x", Json{{"models", Json::array({1, "x", nullptr, Json::object({{"name", 5}})})}}, "").has_value());
}

}  // namespace
}  // namespace reprise::model_names_test
