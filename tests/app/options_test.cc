#include "app/options.h"

#include <filesystem>
#include <string>
#include <vector>

#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::options_test {
namespace {

std::string ErrorOf(const Flags& flags, const Environment& environment = FakeEnvironment()) {
  const auto options = LoadOptions(flags, environment);
  return options ? "" : options.error().message;
}

Options Load(const Flags& flags, const std::map<std::string, std::string>& variables = {}) {
  const auto options = LoadOptions(flags, FakeEnvironment(variables));
  INFO((options ? "" : options.error().message));
  REQUIRE(options.has_value());
  return *options;
}

}  // namespace

TEST_CASE("LoadOptions: the defaults are the documented ones", "[options]") {
  const Options options = Load({});
  CHECK(options.host == "127.0.0.1");
  CHECK(options.port == 8000);
  CHECK(options.data_dir == "chats");
  CHECK(options.workspace == ".");
  CHECK(options.model == "offline");
  CHECK_FALSE(options.plain);
  CHECK(options.max_rounds == 25);
  CHECK(options.max_retries == 3);
  CHECK(options.disconnect_grace == std::chrono::seconds(2));
  CHECK(options.provider_idle_timeout == std::chrono::seconds(120));
  CHECK(options.tools.timeout == std::chrono::seconds(60));
  CHECK(options.approval_mode == ApprovalMode::kAsk);
  REQUIRE(options.providers.size() == 2);
  CHECK(options.providers[0].name == "openai");
  CHECK(options.providers[0].base_url == "https://api.openai.com/v1");
  CHECK(options.providers[1].type == "anthropic");
}

TEST_CASE("LoadOptions: a provider's query stands behind its path", "[options]") {
  const TempDirectory dir;
  const std::string file = dir.Write("c.json", R"({"model": "gateway/m", "providers": {"gateway": {"type": "openai",
    "base_url": "http://127.0.0.1/v1/?api-version=1&b=old&&flag#there", "query": {"b": "n w", "c": "ü&"},
    "headers": {"X-Route": "${ROUTE}"}}}})");
  const Options options = Load({{"config", file}}, {{"ROUTE", "eu"}});
  REQUIRE(options.providers.size() == 1);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(options.providers[0].base_url == "http://127.0.0.1/v1");
  CHECK(options.providers[0].query == Pairs{{"api-version", "1"}, {"flag", ""}, {"b", "n%20w"}, {"c", "%C3%BC%26"}});
  CHECK(options.providers[0].headers == Pairs{{"X-Route", "eu"}});
}

TEST_CASE("LoadOptions: flags beat environment beats file beats defaults", "[options]") {
  const TempDirectory dir;
  const std::string file = dir.Write("c.json", R"({"port": 1, "data_dir": "file", "max_rounds": 3})");
  CHECK(Load({{"config", file}}).port == 1);
  CHECK(Load({}, {{"REPRISE_CONFIG", file}}).port == 1);
  const Options mixed = Load({{"config", file}, {"port", "3"}}, {{"REPRISE_PORT", "2"}, {"REPRISE_DATA_DIR", "env"}});
  CHECK(mixed.port == 3);
  CHECK(mixed.data_dir == "env");
  CHECK(mixed.max_rounds == 3);
  CHECK(mixed.config_file == file);
  CHECK(Load({{"config", file}}, {{"REPRISE_PORT", "2"}}).port == 2);
}

TEST_CASE("LoadOptions: an error names the flag, the variable or the file and key", "[options]") {
  const TempDirectory dir;
  CHECK(ErrorOf({{"port", "x"}}) == "--port must be an integer from 0 to 65535");
  CHECK(ErrorOf({}, FakeEnvironment({{"REPRISE_PORT", "-1"}})) == "REPRISE_PORT must be an integer from 0 to 65535");
  const std::string file = dir.Write("c.json", R"({"prot": 1})");
  CHECK(ErrorOf({{"config", file}}) == file + ": unknown key \"prot\", did you mean port?");
  const std::string missing = dir.File("none.json");
  CHECK(ErrorOf({{"config", missing}}) == "there is no configuration file " + missing);
}

TEST_CASE("LoadOptions: seconds and switches are checked", "[options]") {
  CHECK(Load({{"disconnect-grace-s", "0.25"}}).disconnect_grace == std::chrono::milliseconds(250));
  CHECK(Load({}, {{"REPRISE_PLAIN", "1"}}).plain);
  CHECK_FALSE(Load({}, {{"REPRISE_PLAIN", "false"}}).plain);
  for (const char* text : {"nan", "inf", "-1", "1e9", "2s", ""}) {
    INFO(text);
    CHECK(ErrorOf({{"tool-timeout-s", text}}) == "--tool-timeout-s must be a number of seconds above 0, at most 86400");
  }
  CHECK(ErrorOf({}, FakeEnvironment({{"REPRISE_PLAIN", "yes"}})) == "REPRISE_PLAIN must be true or false");
}

TEST_CASE("LoadOptions: the model follows from the keys that are there", "[options]") {
  CHECK(Load({}, {{"OPENAI_API_KEY", "sk-1"}}).model == "openai/gpt-4o-mini");
  CHECK(Load({}, {{"OPENAI_API_KEY", "sk-1"}, {"REPRISE_MODEL", "offline"}}).model == "offline");
  CHECK(Load({}, {{"ANTHROPIC_API_KEY", "sk-2"}}).model == "anthropic/claude-sonnet-5");
  CHECK(Load({}, {{"ANTHROPIC_API_KEY", "sk-2"}, {"OPENAI_API_KEY", "sk-1"}}).model == "openai/gpt-4o-mini");
  CHECK(Load({{"model", "anthropic/claude"}}).model == "anthropic/claude");
  const TempDirectory dir;
  const std::string file = dir.Write("c.json", R"({"providers": {"mine": {"type": "openai", "api_key": "k",
      "base_url": "http://127.0.0.1:1/v1/"}}, "models": {"mine/big": {}}})");
  const Options options = Load({{"config", file}}, {{"OPENAI_API_KEY", "sk-1"}});
  CHECK(options.model == "mine/big");
  REQUIRE(options.providers.size() == 1);                           // a file that names providers names all
  CHECK(options.providers[0].base_url == "http://127.0.0.1:1/v1");  // the slash is gone
}

TEST_CASE("LoadOptions: OPENAI_BASE_URL and its key reach the provider", "[options]") {
  const Options options = Load({}, {{"OPENAI_API_KEY", "sk-1"}, {"OPENAI_BASE_URL", "http://127.0.0.1:9/v1//"}});
  CHECK(options.providers[0].base_url == "http://127.0.0.1:9/v1");
  CHECK(options.providers[0].api_key == "sk-1");
  CHECK(ErrorOf({}, FakeEnvironment({{"OPENAI_BASE_URL", "example.org"}})) ==
        "the base URL of provider openai must begin with http:// or https://");
}

TEST_CASE("LoadOptions: a key with a line end is refused without being shown", "[options]") {
  const std::string message = ErrorOf({}, FakeEnvironment({{"OPENAI_API_KEY", "sk-secret\r\nX-Evil: 1"}}));
  CHECK(message == "the API key of provider openai has characters that no key has (a space, a line end?)");
}

TEST_CASE("LoadOptions: a model of an unknown provider is refused and the known ones are named", "[options]") {
  CHECK(ErrorOf({{"model", "nobody/x"}}) ==
        "the model \"nobody/x\" names a provider that is not configured (there are: openai, anthropic)");
  CHECK(ErrorOf({{"model", "gpt-4o"}}) == "the model \"gpt-4o\" must be offline or PROVIDER/NAME");
  CHECK(ErrorOf({{"model", "openai/"}}) == "the model \"openai/\" must be offline or PROVIDER/NAME");
}

TEST_CASE("LoadOptions: another host than loopback needs a token file", "[options]") {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) CHECK(ErrorOf({{"host", host}}).empty());
  for (const char* host : {"0.0.0.0", "192.168.1.5", "::", "example.org", "localhost.example.org"}) {
    INFO(host);
    CHECK(ErrorOf({{"host", host}}) ==
          "--host " + std::string(host) + " can be reached from other machines and needs --token-file, or \"auth\"");
    CHECK(ErrorOf({{"host", host}, {"token-file", "t"}}).empty());
  }
}

TEST_CASE("WorkspaceOf: a folder that cannot be worked in is refused with the next step", "[options]") {
  const TempDirectory place;
  const auto refusal = [](const std::string& folder, bool in_database = false) {
    Options options;
    options.workspace = folder;
    if (in_database) options.store.type = StoreOptions::Type::kPostgres;
    const auto path = WorkspaceOf(options);
    return path ? "" : path.error().message;
  };
  const std::string other = "; --workspace DIR names another";
  CHECK(refusal(place.path()).empty());
  CHECK(refusal(place.File("no")) == "there is no folder " + place.File("no") + " to work in" + other);
  CHECK(refusal(place.File("no"), /*in_database=*/true).empty());
  CHECK(refusal(place.Write("file", "")) == "the workspace " + place.File("file") + " is not a folder" + other);
  std::filesystem::create_directory(place.File("bad\xff"));
  std::filesystem::create_directory(place.File("bad\xef\xbf\xbd"));
  std::filesystem::create_symlink("bad\xff", place.File("link"));
  CHECK(refusal(place.File("bad\xef\xbf\xbd")).empty());
  for (const char* name : {"bad\xff", "link"}) {
    CHECK(refusal(place.File(name)).find("is not UTF-8; rename it; --workspace DIR") != std::string::npos);
  }
}

}  // namespace reprise::test::options_test
