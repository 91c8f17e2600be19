#include "app/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "http/gate.h"
#include "http/message.h"

namespace reprise {
namespace {

Result<void> Wrong(std::string wanted) { return Fail(ErrorCode::kInvalidArgument, "must be " + std::move(wanted)); }

Result<void> SetText(std::string& target, std::string_view text) {
  if (text.empty()) return Wrong("a text that is not empty");
  if (text.find('\0') != std::string_view::npos) return Wrong("a text without a NUL character");
  target = text;
  return {};
}

Result<void> SetInteger(int& target, std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return Wrong("an integer from " + std::to_string(low) + " to " + std::to_string(high));
  }
  target = value;
  return {};
}

Result<void> SetSeconds(std::chrono::milliseconds& target, std::string_view text, bool zero_allowed) {
  constexpr double kDay = 86'400;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool in_range = std::isfinite(value) && (zero_allowed ? value >= 0 : value > 0) && value <= kDay;
  if (error != std::errc() || end != text.data() + text.size() || !in_range) {
    return Wrong(zero_allowed ? "a number of seconds from 0 to 86400" : "a number of seconds above 0, at most 86400");
  }
  target = std::chrono::milliseconds(std::max<std::int64_t>(zero_allowed ? 0 : 1, std::llround(value * 1000)));
  return {};
}

Result<void> SetBool(bool& target, std::string_view text) {
  if (text == "true" || text == "1") return target = true, Result<void>();
  if (text == "false" || text == "0") return target = false, Result<void>();
  return Wrong("true or false");
}

Result<void> SetLogLevelName(Options& options, std::string_view text) {
  for (const std::string_view name : {"debug", "info", "warning", "error"}) {
    if (text == name) return SetText(options.log_level, text);
  }
  return Wrong("one of debug, info, warning, error");
}

Result<void> SetLogFormatName(Options& options, std::string_view text) {
  if (text != "text" && text != "json") return Wrong("text or json");
  return SetText(options.log_format, text);
}

Result<void> SetApprovalMode(Options& options, std::string_view text) {
  const auto mode = ParseApprovalMode(text);
  if (!mode) return Wrong("one of ask, read_only, approve_all, deny_all");
  options.approval_mode = *mode;
  return {};
}

Result<void> SetWorkspaceMode(Options& options, std::string_view text) {
  constexpr std::array<std::pair<std::string_view, WorkspaceMode>, 3> kModes{
      {{"local", WorkspaceMode::kLocal}, {"shared", WorkspaceMode::kShared}, {"none", WorkspaceMode::kNone}}};
  for (const auto& [name, mode] : kModes) {
    if (text == name) return options.workspace_mode = mode, Result<void>();
  }
  return Wrong("one of local, shared, none");
}

Result<void> SetPublicHosts(Options& options, std::string_view text) {
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view one = TrimBlanks(text.substr(at, end - at));
    if (auto host = ParsePublicHost(one); !host) return Fail(std::move(host.error()));
    hosts.emplace_back(one);
    at = end + 1;
  }
  options.public_hosts = std::move(hosts);
  return {};
}

constexpr std::array kSettings{
    Setting{"host", "ADDRESS", "address to listen on (default 127.0.0.1); another than loopback needs --token-file",
            SettingKind::kText, [](Options& o, std::string_view t) { return SetText(o.host, t); }},
    Setting{"port", "PORT", "port to listen on (default 8000); 0 picks a free one", SettingKind::kInteger,
            [](Options& o, std::string_view t) { return SetInteger(o.port, t, 0, 65535); }},
    Setting{"public-hosts", "NAMES",
            "names, separated by commas, that clients reach the server by through a proxy, tunnel or mapped port",
            SettingKind::kList, SetPublicHosts},
    Setting{"data-dir", "DIR",
            "folder of the chats (default: ./chats if there are some, else $XDG_DATA_HOME/reprise/chats)",
            SettingKind::kText, [](Options& o, std::string_view t) { return SetText(o.data_dir, t); }},
    Setting{"workspace", "DIR", "folder that the tools work in (default .)", SettingKind::kText,
            [](Options& o, std::string_view t) { return SetText(o.workspace, t); }},
    Setting{"workspace-mode", "MODE",
            "local, shared or none: whose the workspace is (default local; with auth or a database none)",
            SettingKind::kText, SetWorkspaceMode, "local,shared,none"},
    Setting{"workspace-history", "BOOL",
            "whether what changes in the workspace is recorded, so that an edit can take it back (default true)",
            SettingKind::kBool, [](Options& o, std::string_view t) { return SetBool(o.workspace_history, t); },
            "true,false"},
    Setting{"model", "NAME", "default model: offline or PROVIDER/NAME", SettingKind::kText,
            [](Options& o, std::string_view t) { return SetText(o.model, t); }},
    Setting{"plain", "", "store chats unencrypted", SettingKind::kBool,
            [](Options& o, std::string_view t) { return SetBool(o.plain, t); }},
    Setting{"key-file", "FILE", "key set (default $XDG_CONFIG_HOME/reprise/keys.jwks)", SettingKind::kText,
            [](Options& o, std::string_view t) { return SetText(o.key_file, t); }},
    Setting{"passphrase-file", "FILE", "file (mode 0600) with the key set's passphrase, if it has one (default: asks)",
            SettingKind::kText, [](Options& o, std::string_view t) { return SetText(o.passphrase_file, t); }},
    Setting{"token-file", "FILE", "file (mode 0600) with the token that every request must show", SettingKind::kText,
            [](Options& o, std::string_view t) { return SetText(o.token_file, t); }},
    Setting{"log-level", "LEVEL", "debug, info, warning or error (default info)", SettingKind::kText, SetLogLevelName,
            "debug,info,warning,error"},
    Setting{"log-format", "FORMAT", "text or json (default text)", SettingKind::kText, SetLogFormatName, "text,json"},
    Setting{"log-file", "FILE", "file that the log is appended to (default: standard error)", SettingKind::kText,
            [](Options& o, std::string_view t) { return SetText(o.log_file, t); }},
    Setting{"system-prompt", "BOOL", "whether models are told anything before the conversation (default true)",
            SettingKind::kBool, [](Options& o, std::string_view t) { return SetBool(o.system_prompt, t); },
            "true,false"},
    Setting{"prompt-dir", "DIR", "folder of the system prompt's modules (default $XDG_CONFIG_HOME/reprise/prompt)",
            SettingKind::kText, [](Options& o, std::string_view t) { return SetText(o.prompt_dir, t); }},
    Setting{"approval-mode", "MODE", "ask, read_only, approve_all or deny_all (default ask)", SettingKind::kText,
            SetApprovalMode, "ask,read_only,approve_all,deny_all"},
    Setting{"approval-expiry-s", "S", "how long an approval waits before it is rejected (default 0: for ever)",
            SettingKind::kNumber,
            [](Options& o, std::string_view t) { return SetSeconds(o.approval_expiry, t, true); }},
    Setting{"max-rounds", "N", "model requests per interaction (default 25)", SettingKind::kInteger,
            [](Options& o, std::string_view t) { return SetInteger(o.max_rounds, t, 1, 1000); }},
    Setting{"max-retries", "N", "times a model request that failed is sent again (default 3)", SettingKind::kInteger,
            [](Options& o, std::string_view t) { return SetInteger(o.max_retries, t, 0, 100); }},
    Setting{"max-tool-calls-per-minute", "N", "tool calls of a chat in any minute (default 0: as many as it likes)",
            SettingKind::kInteger,
            [](Options& o, std::string_view t) { return SetInteger(o.max_tool_calls_per_minute, t, 0, 100'000); }},
    Setting{"provider-idle-timeout-s", "S", "longest silence of a model (default 120)", SettingKind::kNumber,
            [](Options& o, std::string_view t) { return SetSeconds(o.provider_idle_timeout, t, false); }},
    Setting{"disconnect-grace-s", "S", "how long a run outlives its last client (default 2)", SettingKind::kNumber,
            [](Options& o, std::string_view t) { return SetSeconds(o.disconnect_grace, t, true); }},
    Setting{"drain-s", "S", "how long runs may go on when the server is to stop (default 0, with a database 180)",
            SettingKind::kNumber,
            [](Options& o, std::string_view t) { return SetSeconds(o.drain.emplace(), t, true); }},
    Setting{"tool-timeout-s", "S", "longest run of one tool call (default 60)", SettingKind::kNumber,
            [](Options& o, std::string_view t) { return SetSeconds(o.tools.timeout, t, false); }},
};

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

std::string EnvironmentName(const Setting& setting) {
  std::string name = "REPRISE_";
  for (const char c : setting.name) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

std::string ConfigKey(const Setting& setting) {
  if (setting.name == "tool-timeout-s") return "tools.timeout_s";
  std::string key(setting.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

const Setting* FindSetting(std::string_view name) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

}  // namespace reprise
