#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/accounting.h"
#include "reprise/approval.h"
#include "reprise/file_store.h"
#include "reprise/guardrails.h"
#include "reprise/hooks.h"
#include "reprise/model_client.h"
#include "reprise/resource_limits.h"

namespace reprise {

// Where models live. `api_key` is a secret, `headers` and `query` may hold some: never log or print an Options as a
// whole.
struct ProviderOptions {
  std::string name;                                            // the part of a model's name before the slash
  std::string type;                                            // "openai" | "openai_responses" | "anthropic"
  std::string base_url{};                                      // empty: that of the type
  std::string api_key{};                                       // empty: none
  std::vector<std::pair<std::string, std::string>> headers{};  // sent with each request, in place of our own
  std::vector<std::pair<std::string, std::string>> query{};    // likewise, behind what base_url has of it
};

struct ToolPolicy {
  std::vector<std::string> require_approval;  // names, or patterns (fnmatch(3)); ask although they would not by default
  std::vector<std::string> allow{"*"};        // likewise
  std::vector<std::string> deny;              // beats allow
  std::vector<ToolRule> rules{};              // of calls
  std::chrono::milliseconds timeout{60'000};
  // What commands see beside the system and the workspace: absolute paths, which need not exist.
  std::vector<std::string> sandbox_read{};
  std::vector<std::string> sandbox_write{};
  ResourceLimits limits{};
};

// A server of the Model Context Protocol: a command that is run, or a URL. `environment` and `headers` may hold
// secrets.
// How somebody logs in at an MCP server: by OAuth.
struct McpAuthOptions {
  std::string client_id{}, client_secret{};  // as the authorization server's operator has given them; empty: none
  std::string client_metadata_url{};         // of a document that describes this client; empty: none
  std::string issuer{};                      // of the authorization server that the client_id is for; empty: the first
  std::vector<std::string> scopes{};         // asked for beside those that the server wants
};

struct McpServerOptions {
  std::string name;
  std::string command;  // a path, or a name that is looked for in PATH; empty: there is a url
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment{};  // beside the clean one that every command gets
  std::string cwd{};  // where the command starts; empty: an empty folder of its own outside the workspace
  std::string url{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<McpAuthOptions> auth{};
  std::optional<std::vector<std::string>> roots{};  // folders that it is told to work in; none: the workspace
  bool trust_annotations = false;                   // believe the server about which of its tools only read
  std::chrono::milliseconds startup_timeout{30'000};
};

// Who makes text of speech and speech of text: PROVIDER/MODEL of a provider of the type openai. Empty: nobody does.
struct AudioOptions {
  std::string transcription{}, speech{};
  std::string voice{};  // as the provider calls it; empty: its usual one
};

// A bucket of an S3 server. The keys are secrets.
struct BucketOptions {
  std::string endpoint;  // "https://s3.example", without a slash at its end
  std::string bucket;    // its name
  std::string region = "us-east-1";
  std::string access_key{}, secret_key{};  // empty: not set; whoever needs the bucket says so
};

// Which traces are exported.
struct SamplerOptions {
  bool follows_parent = true;  // as whoever has begun the trace decided, if that is another process
  double ratio = 1;            // of the others
};

// Where a collector takes one kind of data. `headers` may hold secrets.
struct OtlpEndpoint {
  std::string url{};  // empty: it is not sent
  std::vector<std::pair<std::string, std::string>> headers{};
  std::chrono::milliseconds timeout{10'000};  // of a request
};

// What is told to those who watch from outside (docs/telemetry.md).
struct TelemetryOptions {
  bool disabled = false;  // nothing is even counted
  OtlpEndpoint traces{}, metrics{};
  std::string service_name = "reprise";
  std::string service_version{};
  std::vector<std::pair<std::string, std::string>> resource{};  // what else is known of this process
  SamplerOptions sampler{};
  bool content = false;                              // spans have what people, models and tools say
  bool trace_providers = false;                      // model providers are told the span that a request belongs to
  std::size_t max_queue = 2048, max_batch = 512;     // spans
  std::chrono::milliseconds schedule_delay{5000};    // how long spans gather
  std::chrono::milliseconds export_timeout{30'000};  // how long a batch is tried
  std::chrono::milliseconds metrics_interval{60'000};
  std::vector<std::string> problems{};  // with OTEL_* variables, for the log: what they say there does not count
};

// Where chats are kept.
struct StoreOptions {
  enum class Type { kFiles, kPostgres };
  Type type = Type::kFiles;  // in the data folder
  std::string url{};         // of the database, with kPostgres; may hold a password
  std::string listen_url{};  // the same without a pooler between; empty: there is none
};

// Through which servers tell each other where to look, beside the database.
struct RedisOptions {
  std::vector<std::string> urls{};  // redis://... or rediss://...; may hold a password. Empty: none
  std::string ca_file{};            // of certificates that are trusted besides the system's
};

// Who may use the server, where that is more than one user.
struct AuthOptions {
  enum class Type { kNone, kTokens, kOidc };  // kOidc: API tokens too
  Type type = Type::kNone;
  std::string tokens_file{};  // of the API tokens; empty: the default place
  // Of kOidc: whose access tokens count, and what they must hold.
  std::string issuer{}, audience{};
  std::string org_claim{};                  // empty: there is one org
  std::string roles_claim{}, admin_role{};  // empty: no access token makes an org admin

  bool has_people() const { return type != Type::kNone; }
};

// Whose the workspace is, and so whether there are tools that work in it: files, commands, MCP servers that are run.
enum class WorkspaceMode {
  kUsual,   // kLocal for one user, kNone for several, and for several servers
  kLocal,   // the user's own
  kShared,  // of all who may use the server, who all may see and change what is in it
  kNone,    // there is none
};

// Everything that can be configured, after flags, environment, configuration file and defaults have been put together.
// schemas/config.schema.json describes the file; src/app/options.h puts them together.
struct Options {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any free one
  std::string data_dir = "chats";
  StoreOptions store;
  RedisOptions redis;
  std::string workspace = ".";
  WorkspaceMode workspace_mode = WorkspaceMode::kUsual;
  bool workspace_history = true;  // what changes in it is recorded
  std::string config_file;        // the one that was read; empty: none
  // The environment variables that it reads, by the keys that they are in: "providers.p.headers.X-Key".
  std::map<std::string, std::vector<std::string>> variables;
  std::string trust_file;  // the list of files that a person has allowed (app/trusted_files.h); empty: none has been
  std::string model = "offline";
  bool plain = false;           // chats are stored unencrypted
  std::string key_file;         // empty: the default place
  std::string passphrase_file;  // of the key file; empty: asked for at the terminal
  std::string token_file;       // empty: no token is asked for
  AuthOptions auth;
  std::string log_level = "info";   // "debug" | "info" | "warning" | "error"
  std::string log_format = "text";  // "text" | "json"
  std::string log_file;             // empty: standard error

  std::vector<ProviderOptions> providers;
  std::map<std::string, ModelFacts> models;  // by full name
  PriceTable prices;
  UsageBudget budget;
  AudioOptions audio;
  ToolPolicy tools;
  FileLimits files;
  PartLimits parts;                                    // what of files goes into one request as it is
  std::chrono::milliseconds document_timeout{20'000};  // of one document that is made text of
  std::optional<BucketOptions> bucket;                 // where the files of chats go; none: into their chat's folder
  std::vector<McpServerOptions> mcp_servers;
  bool system_prompt = true;
  std::string prompt_dir;  // of the system prompt's modules; empty: the default place
  std::vector<HookOptions> hooks;
  GuardrailOptions guardrails;
  ApprovalMode approval_mode = ApprovalMode::kAsk;
  std::chrono::milliseconds approval_expiry{0};  // 0: approvals wait for ever
  int max_rounds = 25;
  int max_retries = 3;
  int max_tool_calls_per_minute = 0;  // of a chat; 0: no limit
  std::chrono::milliseconds provider_idle_timeout{120'000};
  std::chrono::milliseconds disconnect_grace{2000};
  // That runs may go on when the server is to stop; unset: three minutes with a database, none without.
  std::optional<std::chrono::milliseconds> drain{};
  TelemetryOptions telemetry;
  std::vector<std::string> public_hosts;  // "name" or "name:port", by which clients reach the server beside its own

  bool has_workspace() const {
    const bool is_usual = !auth.has_people() && store.type == StoreOptions::Type::kFiles;
    return workspace_mode == WorkspaceMode::kUsual ? is_usual : workspace_mode != WorkspaceMode::kNone;
  }
};

}  // namespace reprise
