#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "reprise/result.h"

namespace reprise {

// The web search of a provider, which runs it.
struct WebSearchOptions {
  bool is_on = false;
  std::int64_t max_uses = 0;                                      // searches in one response; 0: the provider's limit
  std::vector<std::string> allowed_domains{}, blocked_domains{};  // of results; not both
  bool operator==(const WebSearchOptions&) const = default;
};

// A source of models. `api_key` is secret, `headers` and `query` may hold secrets: never log or print an Options as a
// whole.
struct ProviderOptions {
  std::string name;        // the part of a model's name before the slash
  std::string type;        // "openai" | "openai_responses" | "openai_realtime" | "anthropic"
  std::string base_url{};  // empty: the type's default
  std::string api_key{};   // empty: none
  std::vector<std::pair<std::string, std::string>> headers{};  // sent with each request, in place of ours
  std::vector<std::pair<std::string, std::string>> query{};    // likewise, after the query of base_url
  WebSearchOptions web_search{};
};

struct ToolPolicy {
  std::vector<std::string> require_approval;  // names or patterns (fnmatch(3)), beside the default ones
  std::vector<std::string> allow{"*"};        // names or patterns
  std::vector<std::string> deny;              // beats allow
  std::vector<ToolRule> rules{};              // for calls
  std::chrono::milliseconds timeout{60'000};
  // Paths that commands may use beside the system and the workspace: absolute, need not exist.
  std::vector<std::string> sandbox_read{};
  std::vector<std::string> sandbox_write{};
  std::optional<bool> allow_unsandboxed{};  // see Options::may_leave_sandbox
  // Hosts for commands, with an optional port; those of `unasked` also in ApprovalMode::kAuto without a question.
  std::vector<std::string> network_allow{}, network_unasked{}, network_deny{};
  bool network_ask = false;  // about other hosts, when a command wants to reach them
  ResourceLimits limits{};
  OutputLimits output{};
  JobLimits jobs{};
};

// OAuth login at an MCP server.
struct McpAuthOptions {
  std::string client_id{}, client_secret{};  // registered with the authorization server; empty: none
  std::string client_metadata_url{};         // of a document about this client; empty: none
  std::string issuer{};                      // the authorization server of client_id; empty: the first
  std::vector<std::string> scopes{};         // requested beside those that the server wants
};

// A server of the Model Context Protocol: a command or a URL. `environment` and `headers` may hold secrets.
struct McpServerOptions {
  std::string name;
  std::string command;  // a path, or a name in PATH; empty: use the url
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment{};  // beside the clean one of every command
  std::string cwd{};  // where the command starts; empty: an empty folder of its own outside the workspace
  std::string url{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<McpAuthOptions> auth{};
  std::optional<std::vector<std::string>> roots{};  // the server's working folders; none: the workspace
  bool trust_annotations = false;                   // believe the server about which of its tools are read-only
  std::chrono::milliseconds startup_timeout{30'000};
  bool shared = false;     // one process serves all folders, although it is a command
  bool of_folder = false;  // configured by a folder's file, so it serves that folder alone
};

// Models for speech: PROVIDER/MODEL, with a provider of the type openai. Empty: none.
struct AudioOptions {
  std::string transcription{}, speech{};
  std::string talk{};   // of a provider of the type openai_realtime: who answers what is spoken
  std::string voice{};  // the provider's name of a voice; empty: its default
};

// A bucket of an S3 server. The keys are secrets.
struct BucketOptions {
  std::string endpoint;  // "https://s3.example", without a trailing slash
  std::string bucket;    // the bucket's name
  std::string region = "us-east-1";
  std::string access_key{}, secret_key{};  // empty: not set; an error where the bucket is needed
};

// Selects the traces to export.
struct SamplerOptions {
  bool follows_parent = true;  // a trace begun by another process follows its decision
  double ratio = 1;            // share of the other traces
};

// A collector's endpoint for one kind of data. `headers` may hold secrets.
struct OtlpEndpoint {
  std::string url{};  // empty: not sent
  std::vector<std::pair<std::string, std::string>> headers{};
  std::chrono::milliseconds timeout{10'000};  // of a request
};

// Telemetry export (docs/telemetry.md).
struct TelemetryOptions {
  bool disabled = false;  // counts nothing
  OtlpEndpoint traces{}, metrics{};
  std::string service_name = "reprise";
  std::string service_version{};
  std::vector<std::pair<std::string, std::string>> resource{};  // further attributes of this process
  SamplerOptions sampler{};
  bool content = false;                              // spans hold text of people, models and tools
  bool trace_providers = false;                      // model requests carry the context of their span
  std::size_t max_queue = 2048, max_batch = 512;     // spans
  std::chrono::milliseconds schedule_delay{5000};    // maximum wait before an export
  std::chrono::milliseconds export_timeout{30'000};  // limit for one batch
  std::chrono::milliseconds metrics_interval{60'000};
  std::vector<std::string> problems{};  // ignored settings in OTEL_* variables, for the log
};

// Where each finished interaction is written, without secrets (docs/share.md).
struct AutoExportOptions {
  std::string to{};              // a folder, an HTTP address, or s3://BUCKET/PREFIX; empty: nowhere
  std::string format = "jsonl";  // or "atif"
  std::vector<std::pair<std::string, std::string>> headers{};  // of requests to the address; may hold secrets
};

// How devices are told that something waits (docs/page.md).
struct PushOptions {
  std::string contact{};                 // where push services reach the operator: https or mailto; empty: the page
  bool allow_private_addresses = false;  // also push services in private networks, and by http at this machine
};

// The place of chats.
struct StoreOptions {
  enum class Type { kFiles, kPostgres };
  Type type = Type::kFiles;  // in the data folder
  std::string url{};         // kPostgres: of the database; may hold a password
  std::string listen_url{};  // the same without a pooler; empty: use url
};

// Redis servers over which servers signal each other, beside the database.
struct RedisOptions {
  std::vector<std::string> urls{};  // redis://... or rediss://...; may hold a password. Empty: none
  std::string ca_file{};            // trusted certificates beside the system's
};

// Authentication, for servers with several users.
struct AuthOptions {
  enum class Type { kNone, kTokens, kOidc };  // kOidc: API tokens too
  Type type = Type::kNone;
  std::string tokens_file{};  // of the API tokens; empty: the default place
  // kOidc: the issuer of access tokens, and the required claims.
  std::string issuer{}, audience{};
  std::string org_claim{};                  // empty: a single org
  std::string roles_claim{}, admin_role{};  // empty: access tokens make no org admins

  bool has_people() const { return type != Type::kNone; }
};

// Owner of the workspace, which decides on tools that work in it: files, commands, local MCP servers.
enum class WorkspaceMode {
  kUsual,   // kLocal for one user; kNone for several users or servers
  kLocal,   // the user's own
  kShared,  // shared: all users of the server see and change its content
  kNone,    // no workspace
};

// All settings, merged from flags, environment, configuration file and defaults. schemas/config.schema.json describes
// the file; src/app/options.h merges them.
struct Options {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any free one
  std::string data_dir = "chats";
  StoreOptions store;
  RedisOptions redis;
  std::string workspace = ".";
  WorkspaceMode workspace_mode = WorkspaceMode::kUsual;
  bool workspace_history = true;  // records changes of the workspace
  // Folders in and below which chats may work, beside `workspace`. The single user of a server without a token may also
  // choose any other folder that holds none of the server's files.
  std::vector<std::string> workspaces{};
  std::string config_file;  // the named or the user's file, as read; empty: none
  // The reprise.json of the folder, which was read over it, and its digest ("sha256:..."); empty: none. It is trusted.
  std::string folder_file, folder_digest;
  std::vector<std::string> server_keys;  // in the reprise.json here, where a later version will refuse them
  // The reprise.json of a folder (absolute, resolved; empty: no folder), read anew, which counts in place of this
  // one's. kForbidden (reason "untrusted") if it is not allowed. Null: all folders have these settings. Thread-safe.
  struct OfFolder {
    std::string digest;  // folder_digest of its options
    // The settings of the chats there. kInvalidArgument (reason "invalid_config") if the file is wrong or sets keys of
    // the server.
    std::function<Result<Options>()> options;
  };
  std::function<Result<OfFolder>(const std::string& folder)> of_folder;
  // The environment variables in the files, by their keys: "providers.p.headers.X-Key".
  std::map<std::string, std::vector<std::string>> variables;
  // For the question whether to allow files (app/trust.h): these settings as those files have them, whatever flags and
  // variables say. Null: the question is about these themselves.
  std::shared_ptr<const Options> asked;
  std::map<std::string, std::string> asked_keys;  // in `asked`: the keys that the files set, with a remark or ""
  std::string trust_file;  // the list of files that a person has allowed (app/trust.h); empty: none
  std::string model = "offline";
  bool plain = false;           // stores chats unencrypted
  std::string key_file;         // empty: the default place
  std::string passphrase_file;  // of the key file; empty: ask at the terminal
  std::string token_file;       // empty: no token is required
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
  PartLimits parts;                                    // which files a request holds in their own format
  std::chrono::milliseconds document_timeout{20'000};  // for text extraction from one document
  std::optional<BucketOptions> bucket;                 // for chats' files; none: store them in their chat's folder
  std::vector<McpServerOptions> mcp_servers;
  bool system_prompt = true;
  std::string prompt_dir;  // of the system prompt's modules; empty: the default place
  std::vector<HookOptions> hooks;
  GuardrailOptions guardrails;
  ApprovalMode approval_mode = ApprovalMode::kAsk;
  std::chrono::milliseconds approval_expiry{0};  // 0: approvals wait forever
  int max_rounds = 25;
  int max_retries = 3;
  int max_tool_calls_per_minute = 0;  // per chat; 0: no limit
  std::string titles = "message";     // "message": its beginning is the chat's title | "model": the model makes one
  int max_end_checks = 3;             // times that before_end hooks may send the agent back in an interaction
  std::chrono::milliseconds provider_idle_timeout{120'000};
  std::chrono::milliseconds disconnect_grace{2000};
  // How long `reprise serve` lets runs continue after a stop signal; unset: three minutes with a database, else zero.
  std::optional<std::chrono::milliseconds> drain{};
  TelemetryOptions telemetry;
  AutoExportOptions auto_export;
  PushOptions push;
  std::vector<std::string> public_hosts;  // "name" or "name:port" under which clients reach the server, beside its own

  bool has_workspace() const {
    const bool is_usual = !auth.has_people() && store.type == StoreOptions::Type::kFiles;
    return workspace_mode == WorkspaceMode::kUsual ? is_usual : workspace_mode != WorkspaceMode::kNone;
  }
  // Whether the person who answers for a command may let it run outside the sandbox, once.
  bool may_leave_sandbox() const { return tools.allow_unsandboxed.value_or(!auth.has_people()); }
};

}  // namespace reprise
