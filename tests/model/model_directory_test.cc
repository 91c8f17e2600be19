#include "model/model_directory.h"

#include "support/test.h"

namespace reprise::model_directory_test {
namespace {

struct NoTransport : Transport {
  void Send(HttpRequest, HttpResponseHandler&, std::stop_token, Done done) override {
    done(Fail(ErrorCode::kInternal, "no network in this test"));
  }
};

ProviderConfig OpenAi(std::string name, std::vector<std::string> models = {}) {
  ProviderConfig config{
      .name = std::move(name), .type = "openai", .base_url = "http://127.0.0.1:1/v1", .api_key = "sk-secret-key"};
  config.models = std::move(models);
  return config;
}

TEST_CASE("ModelDirectory: offline always exists and is the default's default", "[model]") {
  NoTransport transport;
  const auto directory = ConfiguredModelDirectory::Create(transport, {}, "");
  REQUIRE(directory);
  CHECK((*directory)->default_model() == "offline");
  const auto resolved = (*directory)->Resolve("");
  REQUIRE(resolved);
  CHECK(resolved->full_name == "offline");
  CHECK(resolved->model == "offline");
  CHECK(resolved->client != nullptr);
}

TEST_CASE("ModelDirectory: the model's part may have slashes", "[model]") {
  NoTransport transport;
  const auto directory = ConfiguredModelDirectory::Create(transport, {OpenAi("router"), OpenAi("local")}, "local/qwen");
  REQUIRE(directory);
  const auto resolved = (*directory)->Resolve("router/meta/llama-3");
  REQUIRE(resolved);
  CHECK(resolved->model == "meta/llama-3");
  CHECK(resolved->full_name == "router/meta/llama-3");
  CHECK((*directory)->Resolve("")->full_name == "local/qwen");
  CHECK((*directory)->Resolve("local/x")->client != resolved->client);
}

TEST_CASE("ModelDirectory: an unknown provider's error names the known ones and no secret", "[model]") {
  NoTransport transport;
  const auto directory = ConfiguredModelDirectory::Create(transport, {OpenAi("openai")}, "");
  REQUIRE(directory);
  for (const char* name : {"nobody/gpt", "gpt-4o", "openai", "openai/", "/x"}) {
    const auto resolved = (*directory)->Resolve(name);
    REQUIRE_FALSE(resolved);
    CHECK(resolved.error().code == ErrorCode::kInvalidArgument);
    CHECK(resolved.error().reason == "unknown_model");
    CHECK(resolved.error().message.find("known are: offline, openai/MODEL") != std::string::npos);
    CHECK(resolved.error().message.find("secret") == std::string::npos);
  }
}

TEST_CASE("ModelDirectory: lists the configured models", "[model]") {
  NoTransport transport;
  const auto directory = ConfiguredModelDirectory::Create(transport, {OpenAi("openai", {"a", "b/c"})}, "");
  REQUIRE(directory);
  std::vector<std::string> names;
  for (const auto& entry : (*directory)->List()) names.push_back(entry.name + " of " + entry.provider);
  CHECK(names == std::vector<std::string>{"offline of offline", "openai/a of openai", "openai/b/c of openai"});
}

// Answers every GET with the same body.
struct ListTransport : Transport {
  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token, Done done) override {
    urls.push_back(request.url);
    handler.OnHead(200, {{"content-type", "application/json"}});
    handler.OnData(body);
    done({});
  }
  std::string body;
  std::vector<std::string> urls;
};

TEST_CASE("ModelDirectory: lists the providers' models, and learns their context windows", "[model]") {
  ListTransport transport;
  transport.body = R"({"data":[{"id":"gpt-4o","context_length":5},{"id":"mine","context_length":6},{"id":"x"}]})";
  ProviderConfig quiet = OpenAi("quiet", {"gpt-4o"});
  quiet.lists_models = false;
  ProviderConfig claude{.name = "claude", .type = "anthropic", .base_url = "http://127.0.0.1:1", .api_key = "k"};
  claude.facts["mine"].context_window = 7;
  const auto directory = ConfiguredModelDirectory::Create(transport, {quiet, claude}, "");
  REQUIRE(directory);
  CHECK((*directory)->Resolve("claude/gpt-4o")->context_window == 128'000);  // built in, before any provider was asked
  std::vector<std::string> entries;
  for (const auto& entry : (*directory)->List())
    entries.push_back(entry.name + " " + std::to_string(entry.context_window));
  CHECK(entries ==
        std::vector<std::string>{"claude/gpt-4o 5", "claude/mine 7", "claude/x 0", "offline 0", "quiet/gpt-4o 128000"});
  CHECK((*directory)->Resolve("claude/gpt-4o")->context_window == 5);
  CHECK((*directory)->Resolve("claude/unheard-of")->context_window == 0);
  CHECK(transport.urls == std::vector<std::string>{"http://127.0.0.1:1/v1/models?limit=1000"});
}

TEST_CASE("ModelDirectory: a wrong configuration is rejected", "[model]") {
  NoTransport transport;
  const auto reason = [&](std::vector<ProviderConfig> providers, std::string model) {
    const auto directory = ConfiguredModelDirectory::Create(transport, std::move(providers), std::move(model));
    return directory ? std::string("accepted") : directory.error().reason;
  };
  CHECK(reason({OpenAi("a"), OpenAi("a")}, "") == "invalid_config");
  CHECK(reason({OpenAi("a/b")}, "") == "invalid_config");
  CHECK(reason({OpenAi("")}, "") == "invalid_config");
  CHECK(reason({{.name = "a", .type = "telepathy", .base_url = "x", .api_key = {}}}, "") == "invalid_config");
  CHECK(reason({{.name = "a", .type = "openai", .base_url = {}, .api_key = {}}}, "") == "invalid_config");
  CHECK(reason({OpenAi("a")}, "b/c") == "unknown_model");
  CHECK(reason({OpenAi("a")}, "a/c") == "accepted");
  CHECK(reason({{.name = "fake", .type = "offline", .base_url = {}, .api_key = {}}}, "fake") == "accepted");
}

}  // namespace
}  // namespace reprise::model_directory_test
