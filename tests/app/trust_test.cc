#include "app/trust.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "app/options.h"
#include "base/json.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test::trust_test {
namespace {

std::string ShownOf(const std::string& config) {
  Options options;
  const auto applied = ApplyConfig(options, config, FakeEnvironment());
  INFO(config);
  REQUIRE(applied);
  return WhatItWouldDo(options, {});
}

// Each setting alone, and the line for it.
const std::vector<std::pair<std::string, std::string>> kSettings = {
    {R"({"tools": {"sandbox_paths": {"write": ["/srv/a", "/srv/b c"]}}})",
     "tools.sandbox_paths.write: /srv/a '/srv/b c'"},
    {R"({"tools": {"sandbox_paths": {"read": ["/home/me"]}}})", "tools.sandbox_paths.read: /home/me"},
    {R"({"tools": {"allow_unsandboxed": true}})", "tools.allow_unsandboxed: true"},
    {R"({"tools": {"allow_unsandboxed": false}})", "tools.allow_unsandboxed: false"},
    {R"({"tools": {"network": {"allow": ["a.example", "*.b.example:443"]}}})",
     "tools.network.allow: a.example *.b.example:443"},
    {R"({"tools": {"network": {"ask": true}}})", "tools.network.ask: true"},
    {R"({"tools": {"network": {"unasked": ["a.example"]}}})", "tools.network.unasked: a.example"},
    {R"({"tools": {"network": {"deny": ["a.example"]}}})", "tools.network.deny: a.example"},
    {R"({"tools": {"allow": ["read_file"]}})", "tools.allow: read_file"},
    {R"({"tools": {"allow": []}})", "tools.allow: none"},
    {R"({"tools": {"deny": ["fetch_*"]}})", "tools.deny: fetch_*"},
    {R"({"tools": {"require_approval": ["*"]}})", "tools.require_approval: *"},
    {R"({"tools": {"rules": [{"tool": "run_shell", "pattern": "git log *", "action": "allow"}]}})",
     "tools.rules: allow run_shell: git log *"},
    {R"({"tools": {"rules": [{"tool": "m__*", "action": "deny"}]}})", "tools.rules: deny m__*"},
    {R"({"tools": {"timeout_s": 3600.5}})", "tools.timeout_s: 3600.500 s"},
    {R"({"tools": {"limits": {"memory_mb": 0}}})", "tools.limits.memory_mb: 0 (no limit)"},
    {R"({"tools": {"limits": {"processes": 7}}})", "tools.limits.processes: 7"},
    {R"({"tools": {"limits": {"file_size_mb": 7}}})", "tools.limits.file_size_mb: 7"},
    {R"({"tools": {"limits": {"tmp_mb": 7}}})", "tools.limits.tmp_mb: 7"},
    {R"({"tools": {"output": {"told_kb": 7}}})", "tools.output.told_kb: 7"},
    {R"({"tools": {"output": {"kept_mb": 0}}})", "tools.output.kept_mb: 0 (nothing is kept)"},
    {R"({"tools": {"jobs": {"per_chat": 7}}})", "tools.jobs.per_chat: 7"},
    {R"({"tools": {"jobs": {"per_server": 7}}})", "tools.jobs.per_server: 7"},
    {R"({"host": "0.0.0.0"})", "host: 0.0.0.0 (OTHER MACHINES can reach the server)"},
    {R"({"host": "::1"})", "host: ::1"},
    {R"({"port": 80})", "port: 80"},
    {R"({"public_hosts": ["chat.example"]})", "public_hosts: chat.example"},
    {R"({"token_file": "t"})", "token_file: t"},
    {R"({"auth": {"type": "tokens", "tokens_file": "t.json"}})",
     "auth: OTHER USERS may use the server, with tokens, from t.json"},
    {R"({"auth": {"type": "oidc", "issuer": "https://a", "audience": "r", "org_claim": "o", "roles_claim": "g", "admin_role": "boss"}})",
     "access tokens of https://a for r, org: o, admins: boss in g, and with tokens"},
    {R"({"workspace_mode": "shared"})", "workspace_mode: shared"},
    {R"({"key_file": "k"})", "key_file: k"},
    {R"({"passphrase_file": "p"})", "passphrase_file: p"},
    {R"({"plain": true})", "plain: true"},
    {R"({"log_file": "/var/log/l"})", "log_file: /var/log/l"},
    {R"({"log_level": "debug"})", "log_level: debug"},
    {R"({"log_format": "json"})", "log_format: json"},
    {R"({"prompt_dir": "rules"})", "prompt_dir: rules"},
    {R"({"system_prompt": false})", "system_prompt: false"},
    {R"({"guardrails": {"input": ["a b"]}})", "guardrails.input: 'a b'"},
    {R"({"guardrails": {"output": ["x"]}})", "guardrails.output: x"},
    {R"({"files": {"max_file_bytes": 5}})", "files.max_file_bytes: 5"},
    {R"({"workspace_history": false})", "workspace_history: false"},
    {R"({"workspaces": ["/srv/a"]})", "workspaces: /srv/a"},
    {R"({"files": {"max_chat_bytes": 5}})", "files.max_chat_bytes: 5"},
    {R"({"files": {"max_image_bytes": 5}})", "files.max_image_bytes: 5"},
    {R"({"files": {"max_request_bytes": 5}})", "files.max_request_bytes: 5"},
    {R"({"files": {"max_pdf_pages": 5}})", "files.max_pdf_pages: 5"},
    {R"({"files": {"document_timeout_s": 5}})", "files.document_timeout_s: 5"},
    {R"({"files": {"type": "s3", "endpoint": "https://x", "bucket": "abc", "region": "r", "access_key": "secret", "secret_key": "secret"}})",
     "keeps the files of chats, sealed, in the bucket abc at https://x (region r)"},
    {R"({"store": {"type": "postgres", "url": "postgresql://u:secret@db/x?sslmode=require"}})",
     "store.url: postgresql://u:***@db/x?sslmode=require"},
    {R"({"drain_s": 7})", "drain_s: 7 s"},
    {R"({"models": {"a/b": {"effort": "low"}}})", "models.a/b.effort: low"},
    {R"({"budget": {"max_tokens_per_interaction": 5}})", "budget.max_tokens_per_interaction: 5"},
    {R"({"budget": {"max_tokens_per_chat": 5}})", "budget.max_tokens_per_chat: 5"},
    {R"({"budget": {"max_tokens_per_day": 5}})", "budget.max_tokens_per_day: 5"},
    {R"({"budget": {"max_cost_per_chat": 0.5}})", "budget.max_cost_per_chat: 0.5"},
    {R"({"telemetry": {"otlp_endpoint": "http://c:4318/"}})", "telemetry.otlp_endpoint: http://c:4318/v1/traces"},
    {R"({"telemetry": {"headers": {"x-key": "secret"}}})", "telemetry.headers: x-key"},
    {R"({"telemetry": {"service_name": "s"}})", "telemetry.service_name: s"},
    {R"({"telemetry": {"content": true}})",
     "telemetry.content: true (what people, models and tools say is sent there)"},
    {R"({"export": {"auto": "/x"}})", "export.auto: /x (what people, models and tools say is written there)"},
    {R"({"export": {"format": "atif"}})", "export.format: atif"},
    {R"({"export": {"headers": {"x-key": "secret"}}})", "export.headers: x-key"},
    {R"({"push": {"contact": "mailto:me@example.org"}})",
     "push.contact: mailto:me@example.org (push services are told it)"},
    {R"({"push": {"allow_private_addresses": true}})", "push.allow_private_addresses: true"},
    {R"({"telemetry": {"trace_providers": true}})", "telemetry.trace_providers: true"},
    {R"({"approval_expiry_s": 9})", "approval_expiry_s: 9 s"},
    {R"({"titles": "model"})", "titles: model"},
    {R"({"max_rounds": 900})", "max_rounds: 900"},
    {R"({"max_retries": 9})", "max_retries: 9"},
    {R"({"max_tool_calls_per_minute": 9})", "max_tool_calls_per_minute: 9"},
    {R"({"max_end_checks": 9})", "max_end_checks: 9"},
    {R"({"provider_idle_timeout_s": 9})", "provider_idle_timeout_s: 9 s"},
    {R"({"disconnect_grace_s": 9})", "disconnect_grace_s: 9 s"},
    {R"({"drain_s": 9})", "drain_s: 9 s"},
    {R"({"store": {"type": "postgres", "url": "postgresql://host/chats"}})", "postgres (chats are kept in a database)"},
    {R"({"models": {"a/b": {"context_window": 9, "thinking": "adaptive"}}})",
     "models.a/b.context_window: 9\n  models.a/b.thinking: adaptive\n"},
    {R"({"models": {"a/b": {"thinking": 2048}}})", "models.a/b.thinking: 2048"},
    {R"({"models": {"a/b": {"abilities": {"images": true, "pdf": false}}}})",
     "models.a/b.abilities.images: true\n  models.a/b.abilities.pdf: false\n"},
    {R"({"models": {"a/b": {"input_price_per_mtok": 1, "output_price_per_mtok": 2.5}}})",
     "models.a/b.input_price_per_mtok: 1\n  models.a/b.output_price_per_mtok: 2.5\n"},
    {R"({"audio": {"transcription": "a/b", "speech": "a/c", "talk": "a/d", "voice": "alto"}})",
     "audio.transcription: a/b"},
    {R"({"data_dir": "/srv/chats"})", "data folder: /srv/chats"},
    {R"({"workspace": "/srv"})", "workspace: /srv,"},
    {R"({"model": "a/b"})", "model: a/b"},
    {R"({"approval_mode": "approve_all"})", "approval_mode: approve_all (NOTHING asks)"},
    {R"({"providers": {"a": {"type": "openai", "base_url": "http://x", "headers": {"h": "secret"}, "query": {"q": "secret"}}}})",
     "to a at http://x, with headers: h, with query: q"},
    {R"({"providers": {"a": {"type": "anthropic", "base_url": "http://x", "web_search": true}}})",
     "to a at http://x, and lets it search the web\n"},
    {R"({"providers": {"a": {"type": "anthropic", "base_url": "http://x", "web_search": {"max_uses": 2, "blocked_domains": ["b.example"]}}}})",
     "and lets it search the web, at most 2 times a response, not on b.example"},
    {R"({"providers": {"a": {"type": "openai_responses", "base_url": "http://x", "web_search": {"allowed_domains": ["a.example"]}}}})",
     "and lets it search the web, only on a.example"},
    {R"({"mcpServers": {"m": {"command": "c", "trust_annotations": true, "startup_timeout_s": 9}}})",
     "runs the MCP server m: c, and believes what it says of its tools (trust_annotations), and waits 9 s for its "
     "start"},
    {R"({"mcpServers": {"m": {"command": "c", "shared": true}}})", "runs the MCP server m: c, once for all folders"},
    {R"({"mcpServers": {"m": {"url": "https://x", "trust_annotations": true}}})",
     "at https://x, and believes what it says of its tools (trust_annotations)"},
    {R"({"store": {"type": "postgres", "url": "postgresql://u:secret@d/d", "listen_url": "postgresql://u:secret@e/d"}})",
     "store.listen_url: postgresql://u:***@e/d"},
    {R"({"store": {"type": "postgres", "url": "postgresql://d/d"}, "redis": {"url": ["redis://u:secret@r1", "rediss://r2:7000/3"]}})",
     "through Redis at r1:6379\n  tells other servers of the same database where to look through Redis at r2:7000"},
    {R"({"store": {"type": "postgres", "url": "postgresql://d/d"}, "redis": {"url": "rediss://r", "ca_file": "/etc/ca.pem"}})",
     "redis.ca_file: /etc/ca.pem"},
    {R"({"hooks": [{"event": "before_tool", "tool": "run_*", "command": ["c"], "timeout_s": 9}]})",
     "runs the hook before_tool: c, for the tool run_*, for at most 9 s"},
};

// "tools.limits.tmp_mb" and the like: of a schema, or of a configuration.
void AddPaths(const Json& object, const std::string& above, bool is_schema, std::set<std::string>& paths) {
  for (const auto& [key, value] : object.items()) {
    const std::string path = above + key;
    const Json& members = is_schema ? MemberOf(value, "properties") : value;
    const bool has_names = path == "providers" || path == "mcpServers" || path == "models" ||
                           path == "telemetry.headers" || path == "export.headers";  // of the user's own
    if (!members.is_object() || has_names) {
      paths.insert(path);
    } else {
      AddPaths(members, path + ".", is_schema, paths);
    }
  }
}

}  // namespace

TEST_CASE("WhatItWouldDo: each setting that a configuration makes is shown", "[app]") {
  for (const auto& [config, line] : kSettings) {
    INFO(config);
    const std::string shown = ShownOf(config);
    CAPTURE(shown);
    CHECK(shown.find(line) != std::string::npos);
    CHECK(shown.find("secret") == std::string::npos);
    CHECK(ShownOf("{}").find(line) == std::string::npos);
  }
}

TEST_CASE("WhatItWouldDo: each variable that goes somewhere is named, with where it goes", "[app]") {
  const auto shown = [](const std::string& config) {
    Options options;
    REQUIRE(ApplyConfig(options, config, FakeEnvironment({{"TOKEN", "secret"}, {"MORE", "secret"}})));
    return WhatItWouldDo(options, {});
  };
  const std::string provider = R"({"providers": {"a": {"type": "openai", "base_url": "http://x?k=${MORE}", )";
  const std::string redis = R"("store": {"type": "postgres", "url": "postgresql://d/d"}, )";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {provider + R"("api_key": "${TOKEN}"}}})", "sends the variable TOKEN to http://x: providers.a.api_key"},
      {provider + R"("api_key": "k"}}})", "sends the variable MORE to http://x: providers.a.base_url"},
      {provider + R"("headers": {"X-Client": "a ${MORE} b ${TOKEN}"}}}})",
       "sends the variable TOKEN to http://x: providers.a.headers.X-Client"},
      {provider + R"("query": {"q": "${TOKEN}"}}}})", "sends the variable TOKEN to http://x: providers.a.query.q"},
      {R"({"mcpServers": {"m": {"command": "c", "env": {"K": "${TOKEN}"}}}})",
       "sends the variable TOKEN to the MCP server m: mcpServers.m.env.K"},
      {R"({"mcpServers": {"m": {"command": "c", "args": ["--key", "${TOKEN}"]}}})",
       "sends the variable TOKEN to the MCP server m: mcpServers.m.args"},
      {R"({"mcpServers": {"m": {"url": "https://y/mcp?k=${TOKEN}"}}})",
       "sends the variable TOKEN to https://y/mcp: mcpServers.m.url"},
      {R"({"mcpServers": {"m": {"url": "https://y/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}})",
       "sends the variable TOKEN to https://y/mcp: mcpServers.m.headers.Authorization"},
      {R"({"telemetry": {"otlp_endpoint": "http://c:4318", "headers": {"k": "${TOKEN}"}}})",
       "sends the variable TOKEN to http://c:4318/v1/traces: telemetry.headers.k"},
      {R"({"files": {"type": "s3", "endpoint": "https://x", "bucket": "abc", "region": "r", "access_key": "${TOKEN}", "secret_key": "${MORE}"}})",
       "sends the variable MORE to https://x: files.secret_key"},
      {R"({"store": {"type": "postgres", "url": "postgresql://u:${TOKEN}@d/d"}})",
       "sends the variable TOKEN to postgresql://u:***@d/d: store.url"},
      {"{" + redis + R"("redis": {"url": "redis://u:${TOKEN}@r1"}})", "sends the variable TOKEN to r1:6379: redis.url"},
      {R"({"hooks": [{"event": "before_tool", "command": ["c", "${TOKEN}"]}]})",
       "sends the variable TOKEN to the hooks"},
      // A name may have dots, and be the beginning of another.
      {R"({"providers": {"a": {"type": "openai", "base_url": "http://x"}, "a.b": {"type": "openai", "base_url": "http://evil", "headers": {"X": "${TOKEN}"}}}})",
       "sends the variable TOKEN to http://x or http://evil: providers.a.b.headers.X"},
      {"{" + redis + R"("redis": {"url": ["redis://r1", "redis://u:${TOKEN}@r2"]}})",
       "sends the variable TOKEN to r1:6379 or r2:6379: redis.url"},
      {R"({"prompt_dir": "/srv/${TOKEN}"})", "reads the variable TOKEN: prompt_dir"},
  };
  for (const auto& [config, line] : rows) {
    INFO(config);
    const std::string told = shown(config);
    CAPTURE(told);
    CHECK(told.find(line) != std::string::npos);
  }
}

TEST_CASE("WhatItWouldDo: no setting that there is was forgotten above", "[app]") {
  std::set<std::string> there, shown;
  const auto schema = ParseJson(ReadText(SourceDirectory() + "/schemas/config.schema.json"));
  REQUIRE(schema);
  AddPaths((*schema)["properties"], "", /*is_schema=*/true, there);
  there.erase("$schema");
  for (const auto& [config, line] : kSettings) AddPaths(*ParseJson(config), "", /*is_schema=*/false, shown);
  CHECK(shown == there);
}

TEST_CASE("WhatItWouldDo: no key is listed twice", "[app]") {
  for (const auto& [config, line] : kSettings) {
    const std::string shown = ShownOf(config);
    CAPTURE(config, shown);
    std::set<std::string> lines, keys;
    for (std::size_t at = 0; at < shown.size();) {
      const std::size_t end = shown.find('\n', at);
      CHECK(lines.insert(shown.substr(at, end - at)).second);
      at = end + 1;
    }
    Options options;
    REQUIRE(ApplyConfig(options, config, FakeEnvironment()));
    for (const auto& [key, value] : ValuesOfTurns(options)) CHECK(keys.insert(key).second);
  }
}

TEST_CASE("WhatItWouldDo: what the sandbox is opened for stands above all else, and defaults are left out", "[app]") {
  const std::string shown = ShownOf(R"({"max_rounds": 26, "mcpServers": {"m": {"command": "c"}},
      "tools": {"sandbox_paths": {"read": ["/r"], "write": ["/w"]}}})");
  CHECK(shown.starts_with("  tools.sandbox_paths.write: /w\n  tools.sandbox_paths.read: /r\n"));
  const std::string usual =
      ShownOf(R"({"max_rounds": 25, "host": "127.0.0.1", "tools": {"allow": ["*"], "deny": []}})");
  CHECK(usual == ShownOf("{}"));
}

}  // namespace reprise::test::trust_test
