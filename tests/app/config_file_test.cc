#include <vector>

#include "app/options.h"
#include "app/settings.h"
#include "support/fixtures.h"
#include "support/schema_validator.h"
#include "support/test.h"

namespace reprise::test::config_file_test {
namespace {

std::string ErrorOf(const std::string& text, const Environment& environment = FakeEnvironment()) {
  Options options;
  const auto applied = ApplyConfig(options, text, environment);
  return applied ? "" : applied.error().message;
}

}  // namespace

TEST_CASE("ApplyConfig: the documented example is read", "[config]") {
  Options options;
  const auto applied = ApplyConfig(options, R"({
    // comments are fine
    "model": "openai/gpt-4o-mini", "port": 9000, "plain": true, "log_level": "debug",
    "providers": {"openai": {"type": "openai", "base_url": "https://api.openai.com/v1", "api_key": "${OPENAI_API_KEY}"},
                  "anthropic": {"type": "anthropic", "api_key": "${ANTHROPIC_API_KEY}"},
                  "local": {"type": "openai", "base_url": "http://127.0.0.1:11434/v1"}},
    "mcpServers": {},
    "models": {"local/qwen": {"context_window": 8000}},
    "tools": {"require_approval": ["echo"], "allow": ["*"], "deny": ["http_get"], "timeout_s": 1.5},
    /* block */ "approval_mode": "read_only", "approval_expiry_s": 90, "max_rounds": 7, "provider_idle_timeout_s": 30, "disconnect_grace_s": 0 })",
                                   FakeEnvironment({{"OPENAI_API_KEY", "sk-1"}}));
  INFO((applied ? "" : applied.error().message));
  REQUIRE(applied.has_value());
  CHECK(options.model == "openai/gpt-4o-mini");
  CHECK(options.port == 9000);
  CHECK(options.plain);
  REQUIRE(options.providers.size() == 3);
  CHECK(options.providers[0].api_key == "sk-1");
  CHECK(options.providers[1].api_key.empty());  // its variable is not set: no key, no error
  CHECK(options.providers[2].base_url == "http://127.0.0.1:11434/v1");
  CHECK(options.models.at("local/qwen").context_window == 8000);
  CHECK(options.tools.require_approval == std::vector<std::string>{"echo"});
  CHECK(options.tools.deny == std::vector<std::string>{"http_get"});
  CHECK(options.tools.timeout == std::chrono::milliseconds(1500));
  CHECK(options.approval_mode == ApprovalMode::kReadOnly);
  CHECK(options.approval_expiry == std::chrono::seconds(90));
  CHECK(options.max_rounds == 7);
  CHECK(options.provider_idle_timeout == std::chrono::seconds(30));
  CHECK(options.disconnect_grace == std::chrono::seconds(0));
}

TEST_CASE("ApplyConfig: what commands see and may take, below the home too", "[config]") {
  Options options;
  REQUIRE(ApplyConfig(options,
                      R"({"tools": {"sandbox_paths": {"read": ["~/.cargo", "/opt/tool", "~"], "write": ["~/c"]},
      "limits": {"memory_mb": 0, "processes": 7}}})",
                      FakeEnvironment({{"HOME", "/home/u"}})));
  CHECK(options.tools.sandbox_read == std::vector<std::string>{"/home/u/.cargo", "/opt/tool", "/home/u"});
  CHECK(options.tools.sandbox_write == std::vector<std::string>{"/home/u/c"});
  CHECK(options.tools.limits == ResourceLimits{.memory_mb = 0, .processes = 7});
  CHECK_FALSE(ApplyConfig(options, R"({"tools": {"sandbox_paths": {"read": ["~/.cargo"]}}})", FakeEnvironment({})));
}

TEST_CASE("ApplyConfig: prices and budgets", "[config]") {
  Options options;
  REQUIRE(ApplyConfig(options, R"({"models": {"a/one": {"input_price_per_mtok": 0.15, "output_price_per_mtok": 1,
        "cache_read_price_per_mtok": 0.5, "context_window": 10}, "a/two": {"context_window": 20}},
      "budget": {"max_tokens_per_interaction": 5, "max_tokens_per_chat": 7, "max_cost_per_chat": 0.5},
      "max_tool_calls_per_minute": 3, "system_prompt": false, "prompt_dir": "p"})",
                      {}));
  CHECK(options.prices == PriceTable{{"a/one", {.input = 0.15, .output = 1, .cache_read = 0.5}}});
  CHECK(options.models.at("a/one").context_window == 10);
  CHECK(options.budget == UsageBudget{5, 7, 0.5});
  CHECK(options.max_tool_calls_per_minute == 3);
  CHECK_FALSE(options.system_prompt);
  CHECK(options.prompt_dir == "p");
  CHECK(ErrorOf(R"({"models": {"a/b": {"input_price_per_mtok": 1}}})") ==
        "key \"models.a/b\" must have input_price_per_mtok and output_price_per_mtok, or no price");
  CHECK(ErrorOf(R"({"models": {"a/b": {"input_price_per_mtok": -1}}})") ==
        "key \"models.a/b.input_price_per_mtok\" must be a number from 0 to 1000000000");
  CHECK(ErrorOf(R"({"models": {"a/b": {"other_price_per_mtok": 1}}})") ==
        "unknown key \"models.a/b.other_price_per_mtok\", did you mean output_price_per_mtok?");
  CHECK(ErrorOf(R"({"budget": {"max_cost_per_chat": 0}})") ==
        "key \"budget.max_cost_per_chat\" must be a number above 0, at most 1000000000");
  CHECK(ErrorOf(R"({"budget": {"max_tokens_per_chat": 0}})") ==
        "key \"budget.max_tokens_per_chat\" must be an integer from 1 on");
  CHECK(ErrorOf(R"({"budget": {"per_day": 1}})") == "unknown key \"budget.per_day\"");
  CHECK(ErrorOf(R"({"budget": 3})") == "key \"budget\" must be an object");
}

TEST_CASE("ApplyConfig: a bucket for the files of chats", "[config]") {
  Options options;
  REQUIRE(ApplyConfig(options, R"({"files": {"type": "s3", "endpoint": "https://s3.example:9000/", "bucket": "my-files",
      "access_key": "${A}", "secret_key": "${B}", "max_file_bytes": 5}})",
                      FakeEnvironment({{"A", "user:me"}, {"B", "c/d+e="}})));
  REQUIRE(options.bucket);
  CHECK(options.bucket->endpoint == "https://s3.example:9000");
  CHECK(options.bucket->bucket == "my-files");
  CHECK(options.bucket->region == "us-east-1");
  CHECK(options.bucket->access_key == "user:me");
  CHECK(options.bucket->secret_key == "c/d+e=");
  CHECK(options.files.file_bytes == 5);
  REQUIRE(ApplyConfig(options, R"({"files": {"type": "folder"}})", FakeEnvironment({})));
  CHECK_FALSE(options.bucket);

  const auto with = [](const std::string& member, const std::string& value) {
    std::string text =
        R"({"files": {"type": "s3", "endpoint": "http://h", "bucket": "abc", "access_key": "a", "secret_key": "b", )";
    return text + "\"" + member + "\": " + value + "}}";
  };
  CHECK(ErrorOf(with("region", "\"eu-central-1\"")).empty());
  CHECK(ErrorOf(with("region", "\"a:b\"")).find("files.region") != std::string::npos);
  CHECK(ErrorOf(with("region", "7")).find("files.region") != std::string::npos);
  CHECK(ErrorOf(with("acl", "\"x\"")).find("unknown key \"files.acl\"") != std::string::npos);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = with("region", "\"r\"");
    return ErrorOf(text.replace(text.find(from), from.size(), to));
  };
  CHECK(changed("http://h", "http://user@h").find("files.endpoint") != std::string::npos);
  CHECK(changed("http://h", "http://h/path").find("files.endpoint") != std::string::npos);
  CHECK(changed("http://h", "s3://h").find("files.endpoint") != std::string::npos);
  CHECK(changed("\"abc\"", "\"a/b\"").find("files.bucket") != std::string::npos);
  CHECK(changed("\"b\"", "\"se cret\"").find("files.secret_key") != std::string::npos);
  CHECK(changed("\"b\"", "\"se cret\"").find("se cret") == std::string::npos);
  CHECK(changed("\"s3\"", "\"ftp\"").find("files.type") != std::string::npos);
  CHECK(changed("\"s3\"", "\"folder\"").find("is for \"type\": \"s3\"") != std::string::npos);
}

TEST_CASE("ApplyConfig: hooks and guardrails", "[config]") {
  Options options;
  const std::string text = R"({
    "hooks": [{"event": "before_tool", "tool": "run_*", "command": ["./check", "-v"], "timeout_s": 0.5},
              {"event": "after_interaction", "command": ["tell"]}],
    "guardrails": {"input": ["a+b"], "output": ["[0-9]{4}"]}})";
  REQUIRE(ApplyConfig(options, text, FakeEnvironment({})));
  CHECK(SchemaValidator("config").Complaint(text).empty());
  REQUIRE(options.hooks.size() == 2);
  CHECK(options.hooks[0].event == HookEvent::kBeforeTool);
  CHECK(options.hooks[0].tool == "run_*");
  CHECK(options.hooks[0].command == std::vector<std::string>{"./check", "-v"});
  CHECK(options.hooks[0].timeout == std::chrono::milliseconds(500));
  CHECK(options.hooks[1].event == HookEvent::kAfterInteraction);
  CHECK(options.hooks[1].timeout == std::chrono::seconds(5));
  CHECK(options.guardrails.input == std::vector<std::string>{"a+b"});
  CHECK(options.guardrails.output == std::vector<std::string>{"[0-9]{4}"});
  CHECK(ErrorOf(R"({"guardrails": {"input": ["("]}})").find("guardrails.input") != std::string::npos);
  CHECK(ErrorOf(R"({"guardrails": {"input": ["a*"]}})").find("matches the empty text") != std::string::npos);
  CHECK(ErrorOf(R"({"hooks": [{"event": "before_lunch", "command": ["x"]}]})").find("hooks[0].event") !=
        std::string::npos);
}

TEST_CASE("ApplyConfig: facts about models", "[config]") {
  Options options;
  REQUIRE(ApplyConfig(options, R"({"max_retries": 0, "models": {
      "a/one": {"context_window": 8000, "max_output_tokens": 500, "thinking": 2048},
      "a/two": {"thinking": "adaptive"}, "a/three": {"thinking": "off"}, "a/four": {},
      "a/five": {"abilities": {"images": true, "pdf": false}}}})",
                      FakeEnvironment({})));
  CHECK(options.max_retries == 0);
  CHECK(options.models.at("a/one") == ModelFacts{8000, 500, ThinkingMode::kBudget, 2048});
  CHECK(options.models.at("a/two").thinking == ThinkingMode::kAdaptive);
  CHECK(options.models.at("a/three").thinking == ThinkingMode::kOff);
  CHECK(options.models.at("a/four") == ModelFacts{});
  CHECK(options.models.at("a/five").abilities == ModelAbilities{.images = true, .pdf = false});
  CHECK(ErrorOf(R"({"models": {"a/b": {"abilities": ["images"]}}})") ==
        "key \"models.a/b.abilities\" must be an object");
  CHECK(ErrorOf(R"({"models": {"a/b": {"abilities": {"smell": true}}}})") ==
        "unknown key \"models.a/b.abilities.smell\"");
  CHECK(ErrorOf(R"({"models": {"a/b": {"abilities": {"pdf": "yes"}}}})") ==
        "key \"models.a/b.abilities.pdf\" must be true or false");
  for (const char* thinking : {"\"much\"", "1023", "\"2048\"", "2048.5", "true", "null"}) {
    CHECK(ErrorOf(R"({"models": {"a/b": {"thinking": )" + std::string(thinking) + "}}}") ==
          "key \"models.a/b.thinking\" must be off, adaptive or an integer from 1024 on");
  }
  CHECK(ErrorOf(R"({"models": {"a/b": {"max_output_tokens": 0}}})") ==
        "key \"models.a/b.max_output_tokens\" must be an integer from 1 on");
  CHECK(ErrorOf(R"({"models": {"a/b": {"context_window": -1}}})") ==
        "key \"models.a/b.context_window\" must be an integer from 1 on");
}

TEST_CASE("ApplyConfig: unknown keys are errors that name the key", "[config]") {
  CHECK(ErrorOf(R"({"prot": 1})") == "unknown key \"prot\", did you mean port?");
  CHECK(ErrorOf(R"({"tools": {"alow": []}})") == "unknown key \"tools.alow\", did you mean allow?");
  CHECK(ErrorOf(R"({"providers": {"a": {"type": "openai", "apikey": "x"}}})") ==
        "unknown key \"providers.a.apikey\", did you mean api_key?");
  // As the table of settings writes them, not as a file does.
  for (const char* config : {R"({"tools.timeout_s": 1})", R"({"tools": {"rules[]": []}})", R"({"hooks[].tool": "x"})",
                             R"({"NAME": {}})", R"({"": 1})"}) {
    INFO(config);
    CHECK(ErrorOf(config).starts_with("unknown key "));
  }
  CHECK(ErrorOf(R"({"models": {"a/b": {"size": 1}}})") == "unknown key \"models.a/b.size\"");
}

TEST_CASE("ApplyConfig: wrong types name the key and what it must be", "[config]") {
  CHECK(ErrorOf(R"({"port": "8000"})") == "key \"port\" must be an integer from 0 to 65535");
  CHECK(ErrorOf(R"({"port": 65536})") == "key \"port\" must be an integer from 0 to 65535");
  CHECK(ErrorOf(R"({"plain": "yes"})") == "key \"plain\" must be true or false");
  CHECK(ErrorOf(R"({"host": 1})") == "key \"host\" must be a string");
  CHECK(ErrorOf(R"({"approval_mode": "never"})") ==
        "key \"approval_mode\" must be one of ask, read_only, plan, auto, approve_all, deny_all");
  CHECK(ErrorOf(R"({"tools": {"allow": "*"}})") == "key \"tools.allow\" must be an array of strings");
  CHECK(ErrorOf(R"({"tools": []})") == "key \"tools\" must be an object");
  CHECK(ErrorOf(R"({"max_rounds": 0})") == "key \"max_rounds\" must be an integer from 1 to 1000");
  CHECK(ErrorOf(R"({"providers": {"a": {"type": "gemini"}}})") ==
        "key \"providers.a.type\" must be one of openai, openai_responses, openai_realtime, anthropic");
  CHECK(ErrorOf(R"({"providers": {"a": {}}})") ==
        "key \"providers.a.type\" must be one of openai, openai_responses, openai_realtime, anthropic");
  CHECK(ErrorOf(R"({"tools": {"limits": {"tmp_mb": 1.5}}})") ==
        "key \"tools.limits.tmp_mb\" must be an integer from 0 (no limit) to 1073741824");
  CHECK(ErrorOf(R"({"files": {"document_timeout_s": 0.5}})") ==
        "key \"files.document_timeout_s\" must be an integer of seconds from 1 to 600");
  CHECK(ErrorOf(R"({"tools": {"allow": ["a", ""]}})") == "key \"tools.allow[1]\" must be a text that is not empty");
  CHECK(ErrorOf(R"({"providers": {"a": {"type": "openai", "base_url": "ftp://x"}}})") ==
        "key \"providers.a.base_url\" must begin with http:// or https://");
  CHECK(ErrorOf(R"({"export": {"auto": "http:///dataset"}})") ==
        "key \"export.auto\" must name a server after http:// or https://");
  CHECK(ErrorOf(R"([])") == "must be a JSON object");
}

TEST_CASE("ApplyConfig: providers have headers and a query", "[config]") {
  const auto config = [](const std::string& members) {
    return R"({"providers": {"a": {"type": "openai", )" + members + "}}}";
  };
  for (const char* name :
       {"Host", "content-length", "Transfer-Encoding", "CONNECTION", "Content-Type", "a b", "a:b", "", "a\\r\\nb"}) {
    INFO(name);
    CHECK(ErrorOf(config(R"("headers": {")" + std::string(name) + R"(": "x"})")).find("is not a usable name") !=
          std::string::npos);
  }
  CHECK(ErrorOf(config(R"("headers": {"X-A": "x\r\nY: z"})")) ==
        "key \"providers.a.headers.X-A\" must not hold a control character");
  CHECK(ErrorOf(config(R"("headers": ["X-A"])")) == "key \"providers.a.headers\" must be an object of strings");
  CHECK(ErrorOf(config(R"("query": {"v": 1})")) == "key \"providers.a.query.v\" must be a string");
  CHECK(ErrorOf(config(R"("query": {"v": "${NOT_SET_ANYWHERE}"})")).find("NOT_SET_ANYWHERE") != std::string::npos);
}

TEST_CASE("ApplyConfig: who listens and speaks", "[config]") {
  Options options;
  REQUIRE(ApplyConfig(options,
                      R"({"audio": {"transcription": "a/b/c", "speech": "a/d", "talk": "a/e", "voice": "${V}"}})",
                      FakeEnvironment({{"V", "alto"}})));
  CHECK(options.audio.transcription == "a/b/c");
  CHECK(options.audio.speech == "a/d");
  CHECK(options.audio.talk == "a/e");
  CHECK(options.audio.voice == "alto");
  CHECK(ErrorOf(R"({"audio": {"speech": "whisper"}})") == "key \"audio.speech\" must be PROVIDER/MODEL");
  CHECK(ErrorOf(R"({"audio": {"speech": "a/"}})") == "key \"audio.speech\" must be PROVIDER/MODEL");
  CHECK(ErrorOf(R"({"audio": {"voice": ""}})") == "key \"audio.voice\" must be a text that is not empty");
  CHECK(ErrorOf(R"({"audio": {"tts": "a/b"}})") == "unknown key \"audio.tts\"");
  CHECK(ErrorOf(R"({"audio": []})") == "key \"audio\" must be an object");
}

TEST_CASE("ApplyConfig: mcpServers are commands or URLs", "[config]") {
  Options options;
  const auto applied = ApplyConfig(options, R"({"mcpServers": {
    "files": {"command": "npx", "args": ["-y", "", "${N}"], "env": {"TOKEN": "${N}"}, "trust_annotations": true},
    "remote": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${N}"}, "startup_timeout_s": 1.5}}})",
                                   FakeEnvironment({{"N", "x"}}));
  INFO((applied ? "" : applied.error().message));
  REQUIRE(applied.has_value());
  REQUIRE(options.mcp_servers.size() == 2);
  const McpServerOptions& files = options.mcp_servers[0];
  CHECK(files.name == "files");
  CHECK(files.command == "npx");
  CHECK(files.arguments == std::vector<std::string>{"-y", "", "x"});
  CHECK(files.environment == std::vector<std::pair<std::string, std::string>>{{"TOKEN", "x"}});
  CHECK(files.trust_annotations);
  const McpServerOptions& remote = options.mcp_servers[1];
  CHECK(remote.url == "https://example.org/mcp");
  CHECK(remote.headers == std::vector<std::pair<std::string, std::string>>{{"Authorization", "Bearer x"}});
  CHECK_FALSE(remote.trust_annotations);
  CHECK(remote.startup_timeout == std::chrono::milliseconds(1500));
}

TEST_CASE("ApplyConfig: what is wrong with an MCP server is said", "[config]") {
  const auto wrong = [](const std::string& server) { return ErrorOf(R"({"mcpServers": {"s": )" + server + "}}"); };
  CHECK(wrong("{}") == "key \"mcpServers.s\" must have either command or url");
  CHECK(wrong(R"({"command": "a", "url": "http://b"})") == "key \"mcpServers.s\" must have either command or url");
  CHECK(wrong(R"({"command": "a", "headers": {}})") ==
        "key \"mcpServers.s\" mixes what belongs to a command (args, env, cwd, shared) and to a url (headers, auth)");
  CHECK(wrong(R"({"url": "http://b", "cwd": "/"})").find("mixes what belongs") != std::string::npos);
  CHECK(wrong(R"({"command": "a", "cwd": "x"})") == "key \"mcpServers.s.cwd\" must be the full path of a folder");
  CHECK(wrong(R"({"url": "ftp://b"})") == "key \"mcpServers.s.url\" must begin with http:// or https://");
  CHECK(wrong(R"({"command": ""})") == "key \"mcpServers.s.command\" must be a text without control characters");
  CHECK(wrong(R"({"command": "a", "args": "-y"})") == "key \"mcpServers.s.args\" must be an array of strings");
  CHECK(wrong(R"({"command": "a", "env": {"A=B": "c"}})") == "key \"mcpServers.s.env.A=B\" is not a usable name");
  CHECK(wrong(R"({"url": "http://b", "headers": {"X": "a\nY: b"}})") ==
        "key \"mcpServers.s.headers.X\" must not hold a control character");
  CHECK(wrong(R"({"command": "a", "startup_timeout_s": 0})") ==
        "key \"mcpServers.s.startup_timeout_s\" must be a number of seconds above 0, at most 3600");
  CHECK(wrong(R"({"command": "a", "colour": 1})") == "unknown key \"mcpServers.s.colour\"");
  CHECK(ErrorOf(R"({"mcpServers": {"a b": {"command": "a"}}})") ==
        "key \"mcpServers.a b\" is not a name for a server (letters, digits, '_', '-', '.')");
}

TEST_CASE("ApplyConfig: environment references are replaced, and a missing one is named", "[config]") {
  Options options;
  const auto environment = FakeEnvironment({{"HOME_DIR", "/home/me"}, {"N", "x"}});
  REQUIRE(ApplyConfig(options, R"({"data_dir": "${HOME_DIR}/chats-${N}$${N}$N"})", environment));
  CHECK(options.data_dir == "/home/me/chats-x${N}$N");
  CHECK(ErrorOf(R"({"data_dir": "${NOWHERE}/x"})") ==
        "key \"data_dir\" uses the environment variable NOWHERE, which is not set");
  CHECK(ErrorOf(R"({"data_dir": "${NOWHERE"})") == "key \"data_dir\" has a ${ without its }");
  CHECK(ErrorOf(R"({"data_dir": "${A B}"})") ==
        "key \"data_dir\" has a ${...} that is not the name of an environment variable");
}

TEST_CASE("ApplyConfig: a substituted value is not expanded again", "[config]") {
  Options options;
  REQUIRE(ApplyConfig(options, R"({"data_dir": "${A}"})", FakeEnvironment({{"A", "${B}"}, {"B", "secret"}})));
  CHECK(options.data_dir == "${B}");
}

TEST_CASE("ApplyConfig: broken JSON names the line and quotes nothing", "[config]") {
  CHECK(ErrorOf("{\n\"model\": \"sk-secret\",\n oops }") == "is not valid JSON (line 3)");
  CHECK(ErrorOf("{\"a\": \"\xff\"}") == "is not valid UTF-8");
  CHECK(ErrorOf(std::string(100'000, '[')) == "is nested too deeply");
  CHECK(ErrorOf("") == "is not valid JSON (line 1)");
  CHECK(ErrorOf("{\"port\": 1, // one\n \"port\": 2}") == "is ambiguous: an object has the member \"port\" twice");
  CHECK(ErrorOf("{\"port\": 1e999}") == "is not valid JSON (a number is out of range)");
}

TEST_CASE("config.schema.json: accepts what the program accepts and refuses what it refuses", "[config][schemas]") {
  const SchemaValidator schema("config");
  const std::vector<std::string> texts = {
      "{}",
      R"({"model": "offline"})",
      R"({"port": 0})",
      R"({"port": -1})",
      R"({"port": 65536})",
      R"({"port": "1"})",
      R"({"prot": 1})",
      R"({"host": ""})",
      R"({"public_hosts": []})",
      R"({"public_hosts": ["chat.example", "chat.example:8443", "[::1]:9000", "192.0.2.1"]})",
      R"({"public_hosts": "chat.example"})",
      R"({"public_hosts": ["https://chat.example"]})",
      R"({"public_hosts": ["*"]})",
      R"({"public_hosts": [""]})",
      R"({"public_hosts": ["a,b"]})",
      R"({"public_hosts": ["a:0"]})",
      R"({"auth": {"type": "tokens"}})",
      R"({"auth": {"type": "tokens", "tokens_file": "/run/tokens.json"}})",
      R"({"auth": {"type": "tokens", "tokens_file": ""}})",
      R"({"auth": {"type": "tokens", "issuer": "https://a"}})",
      R"({"auth": {"type": "basic"}})",
      R"({"auth": {}})",
      R"({"auth": "tokens"})",
      R"({"auth": {"type": "oidc", "issuer": "https://a.example", "audience": "reprise"}})",
      R"({"auth": {"type": "oidc", "issuer": "http://127.0.0.1:9/realm", "audience": "reprise", "org_claim": "org"}})",
      R"({"auth": {"type": "oidc", "issuer": "http://a.example", "audience": "reprise"}})",
      R"({"auth": {"type": "oidc", "issuer": "http://localhost.a.example", "audience": "reprise"}})",
      R"({"auth": {"type": "oidc", "issuer": "https://a.example"}})",
      R"({"auth": {"type": "oidc", "audience": "reprise"}})",
      R"({"auth": {"type": "oidc", "issuer": "https://a", "audience": "r", "roles_claim": "/a/b", "admin_role": "x"}})",
      R"({"auth": {"type": "oidc", "issuer": "https://a", "audience": "r", "roles_claim": "/a~2", "admin_role": "x"}})",
      R"({"auth": {"type": "oidc", "issuer": "https://a", "audience": "r", "roles_claim": "roles"}})",
      R"({"auth": {"type": "oidc", "issuer": "https://a", "audience": "r", "secret": "s"}})",
      R"({"workspace_mode": "shared"})",
      R"({"workspace_mode": "mine"})",
      R"({"plain": true})",
      R"({"plain": 1})",
      R"({"log_level": "warning"})",
      R"({"log_level": "loud"})",
      R"({"log_format": "json"})",
      R"({"log_format": "xml"})",
      R"({"log_format": ""})",
      R"({"titles": "model"})",
      R"({"titles": "none"})",
      R"({"log_file": "/var/log/reprise.log"})",
      R"({"log_file": ""})",
      R"({"log_file": true})",
      R"({"approval_mode": "deny_all"})",
      R"({"approval_mode": 1})",
      R"({"max_rounds": 1000})",
      R"({"max_rounds": 1001})",
      R"({"max_rounds": 0})",
      R"({"provider_idle_timeout_s": 0})",
      R"({"provider_idle_timeout_s": 0.5})",
      R"({"disconnect_grace_s": 0})",
      R"({"disconnect_grace_s": -1})",
      R"({"mcpServers": {}})",
      R"({"providers": {}})",
      R"({"providers": {"a": {}}})",
      R"({"providers": {"a": {"type": "openai"}}})",
      R"({"providers": {"offline": {"type": "openai"}}})",
      R"({"providers": {"a b": {"type": "openai"}}})",
      R"({"providers": {"a": {"type": "openai", "base_url": "http://x"}}})",
      R"({"providers": {"a": {"type": "openai", "base_url": "x"}}})",
      R"({"models": {"a/b": {"context_window": 1}}})",
      R"({"models": {"a/b": {"context_window": 0}}})",
      R"({"models": {"a": {"context_window": 1}}})",
      R"({"tools": {"timeout_s": 3, "allow": ["a"], "deny": [], "require_approval": []}})",
      R"({"tools": {"timeout_s": "3"}})",
      R"({"audio": {"transcription": "a/b", "speech": "a/b/c", "voice": "x"}})",
      R"({"audio": {"speech": "a"}})",
      R"({"audio": {"speech": "/a"}})",
      R"({"audio": {"voice": ""}})",
      R"({"audio": {"more": "a/b"}})",
      R"({"tools": {"allow": [1]}})",
      R"({"tools": {"allow": [""]}})",
      R"({"tools": {"more": 1}})",
      R"({"tools": {"sandbox_paths": {"read": ["/opt/x", "/y"], "write": []}}})",
      R"({"tools": {"sandbox_paths": {"read": ["relative"]}}})",
      R"({"tools": {"sandbox_paths": {"read": [""]}}})",
      R"({"tools": {"sandbox_paths": {"write": "/x"}}})",
      R"({"tools": {"sandbox_paths": {"more": []}}})",
      R"({"tools": {"sandbox_paths": []}})",
      R"({"tools": {"limits": {"memory_mb": 0, "processes": 10, "file_size_mb": 1, "tmp_mb": 5}}})",
      R"({"tools": {"limits": {"memory_mb": -1}}})",
      R"({"tools": {"limits": {"memory_mb": 1.5}}})",
      R"({"tools": {"limits": {"memory_mb": 1073741825}}})",
      R"({"tools": {"limits": {"more": 1}}})",
      R"({"tools": {"limits": 1}})",
      R"({"redis": {}})",
      R"({"store": {"type": "postgres", "url": "postgresql://d"}, "redis": {"url": []}})",
      R"({"store": {"type": "postgres", "url": "postgresql://d"}, "redis": {"url": "http://h"}})",
      R"({"store": {"type": "postgres", "url": "postgresql://d"}, "redis": {"url": "redis://h", "more": 1}})",
      R"({"store": {"type": "postgres", "url": "postgresql://d"}, "redis": {"url": ["redis://h:1", "rediss://u:p@h"]}})",
      R"({"store": {"type": "postgres", "url": "postgresql://d", "listen_url": "postgresql://e"}})",
      R"({"tool_timeout_s": 3})",
      R"({"token_file": "t", "key_file": "k", "passphrase_file": "p", "data_dir": "d", "workspace": "w"})",
      R"([])",
  };
  int accepted = 0;
  for (const std::string& text : texts) {
    INFO(text << " program: " << ErrorOf(text) << " schema: " << schema.Complaint(text));
    CHECK(ErrorOf(text).empty() == schema.Complaint(text).empty());
    accepted += ErrorOf(text).empty() ? 1 : 0;
  }
  CHECK(accepted > 10);
  CHECK(accepted + 10 < static_cast<int>(texts.size()));
}

TEST_CASE("ApplyConfig: Redis is for servers that share a database", "[config]") {
  CHECK(ErrorOf(R"({"redis": {"url": "redis://h"}})").find("belongs to the store.type postgres") != std::string::npos);
  Options options;
  REQUIRE(ApplyConfig(
      options,
      R"({"redis": {"url": "${REDIS}", "ca_file": "ca"}, "store": {"type": "postgres", "url": "postgresql://x"}})",
      FakeEnvironment({{"REDIS", "rediss://:word@h"}})));
  CHECK(options.redis.urls == std::vector<std::string>{"rediss://:word@h"});
  CHECK(options.redis.ca_file == "ca");
}

namespace {

// The error, or what the folder's file has made of options that another file has filled.
std::string AfterFolder(const std::string& text, FolderLayer::Take take, Options& options) {
  REQUIRE(ApplyConfig(options, R"({"max_rounds": 3, "model": "p/m", "providers": {"p": {"type": "openai"}},
      "tools": {"deny": ["a"]}, "hooks": [{"event": "before_tool", "command": ["x"]}],
      "models": {"p/m": {"context_window": 5, "effort": "low", "input_price_per_mtok": 1, "output_price_per_mtok": 2}},
      "mcpServers": {"m": {"command": "c", "shared": true}}})",
                      FakeEnvironment()));
  const auto applied = ApplyFolderConfig(options, text, FakeEnvironment(), {.take = take, .folder = "/home/me/site"});
  return applied ? "" : applied.error().message;
}

}  // namespace

TEST_CASE("ApplyFolderConfig: replaces values and elements of the same name, and adds hooks", "[app]") {
  Options options;
  CHECK(AfterFolder(R"({"max_rounds": 4, "prompt_dir": "words", "tools": {"deny": ["b"]},
      "hooks": [{"event": "after_tool", "command": ["y"]}], "models": {"p/m": {"context_window": 9}},
      "mcpServers": {"m": {"command": "./serve"}, "n": {"command": "/bin/n"}}})",
                    FolderLayer::Take::kChatKeys, options) == "");
  CHECK(options.max_rounds == 4);
  CHECK(options.model == "p/m");
  CHECK(options.prompt_dir == "/home/me/site/words");
  CHECK(options.tools.deny == std::vector<std::string>{"b"});
  CHECK(options.hooks.size() == 2);
  CHECK(options.models.at("p/m").context_window == 9);
  CHECK(options.models.at("p/m").effort == Effort::kLow);
  CHECK(options.prices.contains("p/m"));
  REQUIRE(options.mcp_servers.size() == 2);
  CHECK(options.mcp_servers[0].command == "/home/me/site/./serve");
  CHECK(options.mcp_servers[0].of_folder);
  CHECK_FALSE(options.mcp_servers[0].shared);
  CHECK(options.mcp_servers[1].command == "/bin/n");
}

TEST_CASE("ApplyFolderConfig: no folder sends chats elsewhere, not even the server's own", "[app]") {
  using Take = FolderLayer::Take;
  for (const Take take : {Take::kChatKeys, Take::kOwnKeys, Take::kServerKeys}) {
    Options options;
    CHECK(AfterFolder(R"({"export": {"auto": "/srv/dataset"}})", take, options)
              .starts_with("key \"export\" belongs to the server"));
    CHECK(options.auto_export.to.empty());
  }
}

TEST_CASE("ApplyFolderConfig: keys of the server are refused, left out, or the only ones", "[app]") {
  const std::string text =
      R"({"port": 7, "max_rounds": 4, "budget": {"max_tokens_per_day": 5, "max_tokens_per_chat": 6},
      "models": {"p/m": {"context_window": 9, "input_price_per_mtok": 3, "output_price_per_mtok": 4}}})";
  Options refused, own, of_server;
  CHECK(AfterFolder(text, FolderLayer::Take::kChatKeys, refused).starts_with("key \"port\" belongs to the server"));
  CHECK(AfterFolder(text, FolderLayer::Take::kOwnKeys, own) == "");
  CHECK(own.port == 8000);
  CHECK(own.max_rounds == 4);
  CHECK(own.budget.max_tokens_per_day == 0);
  CHECK(own.budget.max_tokens_per_chat == 6);
  CHECK(own.models.at("p/m").context_window == 9);
  CHECK(own.prices.at("p/m").input == 1);
  CHECK(AfterFolder(text, FolderLayer::Take::kServerKeys, of_server) == "");
  CHECK(of_server.port == 7);
  CHECK(of_server.max_rounds == 3);
  CHECK(of_server.budget.max_tokens_per_day == 5);
  CHECK(of_server.budget.max_tokens_per_chat == 0);
  CHECK(of_server.models.at("p/m").context_window == 5);
  CHECK(of_server.prices.at("p/m").input == 3);
  CHECK(of_server.server_keys == own.server_keys);
  CHECK(own.server_keys == std::vector<std::string>{"port", "budget.max_tokens_per_day",
                                                    "models.p/m.input_price_per_mtok",
                                                    "models.p/m.output_price_per_mtok"});
}

TEST_CASE("LayerOf: a key, or all keys below it", "[app]") {
  CHECK(LayerOf("port") == Layer::kServer);
  CHECK(LayerOf("providers") == Layer::kServer);
  CHECK(LayerOf("hooks") == Layer::kChat);
  CHECK(LayerOf("workspace") == Layer::kServer);  // not also workspace_history
  CHECK_FALSE(LayerOf("budget"));
  CHECK_FALSE(LayerOf("no_such_key"));
}

}  // namespace reprise::test::config_file_test
