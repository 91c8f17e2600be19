#include "app/options.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "app/settings.h"
#include "app/trust.h"
#include "base/atomic_write.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/public_address.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

Error InFront(std::string_view where, const Error& error) {
  Error named = error;
  named.message = std::string(where) + " " + error.message;
  return named;
}

std::vector<ProviderOptions> BuiltInProviders(const Environment& environment) {
  return {{.name = "openai",
           .type = "openai",
           .base_url = environment("OPENAI_BASE_URL").value_or("https://api.openai.com/v1"),
           .api_key = environment("OPENAI_API_KEY").value_or("")},
          {.name = "anthropic",
           .type = "anthropic",
           .base_url = environment("ANTHROPIC_BASE_URL").value_or("https://api.anthropic.com"),
           .api_key = environment("ANTHROPIC_API_KEY").value_or("")}};
}

// A configuration as it was read.
struct ConfigText {
  std::string path, text;
};
using MaybeConfig = std::optional<ConfigText>;

// All that options are made of, beside the file of a folder.
struct Sources {
  Flags flags;
  Environment environment;
  MaybeConfig config{};   // the named or the user's
  bool is_named = false;  // `config` is named, and not found
  MaybeConfig here{};     // reprise.json in the working directory, if no configuration is named
};

// nullopt if there is no such file. kForbidden if other users could have written it.
Result<MaybeConfig> ReadFound(const std::string& path) {
  if (!IsThere(path)) return std::nullopt;
  auto text = ReadOwnFile(path, kMaxConfigFile);
  if (!text && text.error().code == ErrorCode::kForbidden) {
    return Fail(ErrorCode::kForbidden, text.error().message + "; fix that");
  }
  if (!text) return Fail(text.error());
  return ConfigText{.path = path, .text = *std::move(text)};
}

bool IsSameFile(const MaybeConfig& one, const MaybeConfig& other) {
  return one && other && Resolved(one->path) == Resolved(other->path);
}

// A named file must exist; default files need not.
Result<void> FindConfig(Sources& sources) {
  const auto flag = sources.flags.find("config");
  if (const auto named =
          flag != sources.flags.end() ? std::optional(flag->second) : sources.environment("REPRISE_CONFIG")) {
    auto text = ReadSmallFile(*named, kMaxConfigFile);
    if (!text && text.error().code == ErrorCode::kNotFound) {
      return Fail(ErrorCode::kInvalidArgument, "there is no configuration file " + *named);
    }
    if (!text) return Fail(text.error());
    sources.config = ConfigText{.path = *named, .text = *std::move(text)};
    sources.is_named = true;
    return {};
  }
  if (const auto folder = ConfigFolder(sources.environment)) {
    sources.config = TRY(ReadFound(*folder + "/" + kDefaultConfigFile));
  }
  sources.here = TRY(ReadFound(kDefaultConfigFile));
  if (IsSameFile(sources.here, sources.config)) sources.here.reset();
  return {};
}

Result<void> ApplyEnvironmentAndFlags(Options& options, const Flags& flags, const Environment& environment) {
  for (const Setting& setting : Settings()) {
    if (setting.flag.name.empty()) continue;
    if (const auto flag = flags.find(std::string(setting.flag.name)); flag != flags.end()) {
      const auto applied = ApplySetting(setting, options, flag->second);
      if (!applied) return Fail(InFront("--" + flag->first, applied.error()));
    } else if (const auto variable = environment(EnvironmentName(setting))) {
      const auto applied = ApplySetting(setting, options, *variable);
      if (!applied) return Fail(InFront(EnvironmentName(setting), applied.error()));
    }
  }
  return {};
}

// Moves the query of base_url (?api-version=...) behind the path of each request, before the configured parameters.
void SplitQuery(ProviderOptions& provider) {
  std::string_view url = provider.base_url;
  url = url.substr(0, url.find('#'));
  const std::size_t mark = url.find('?');
  std::vector<std::pair<std::string, std::string>> query;
  for (std::string_view rest = mark == std::string_view::npos ? "" : url.substr(mark + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto is_configured = [&](const auto& pair) { return pair.first == part.substr(0, equals); };
    if (part.empty() || std::any_of(provider.query.begin(), provider.query.end(), is_configured)) continue;
    query.emplace_back(part.substr(0, equals), part.substr(std::min(part.size(), equals + 1)));
  }
  provider.query.insert(provider.query.begin(), query.begin(), query.end());
  provider.base_url = std::string(url.substr(0, mark));
}

std::string ChooseModel(const Options& options) {
  for (const ProviderOptions& provider : options.providers) {
    if (std::string usual = UsualModel(provider); !usual.empty()) return usual;
  }
  for (const ProviderOptions& provider : options.providers) {
    if (provider.api_key.empty()) continue;
    for (const auto& [name, facts] : options.models) {
      if (name.starts_with(provider.name + "/")) return name;
    }
  }
  return "offline";
}

Result<void> CheckModel(const Options& options) {
  if (options.model == "offline") return {};
  const std::string provider = options.model.substr(0, options.model.find('/'));
  if (provider.size() + 1 >= options.model.size()) {
    return Fail(ErrorCode::kInvalidArgument, "the model \"" + options.model + "\" must be offline or PROVIDER/NAME");
  }
  std::string known;
  for (const ProviderOptions& candidate : options.providers) {
    if (candidate.name == provider) return {};
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  return Fail(ErrorCode::kInvalidArgument, "the model \"" + options.model +
                                               "\" names a provider that is not configured (" +
                                               (known.empty() ? "there is none" : "there are: " + known) + ")");
}

// The default data folder, in the user's data folder (XDG Base Directory Specification). kForbidden if tools could have
// redirected it with a link; --data-dir can name a wanted link.
Result<std::string> DefaultDataFolder(const Environment& environment) {
  auto data = environment("XDG_DATA_HOME");
  if (!data || !data->starts_with('/')) {
    const auto home = environment("HOME");
    if (!home) return Options().data_dir;
    data = *home + "/.local/share";
  }
  for (const std::string& folder : {*data + "/reprise", *data + "/reprise/chats"}) {
    std::error_code failed;
    if (std::filesystem::is_symlink(folder, failed)) {
      return Fail(ErrorCode::kForbidden,
                  folder + " is a symbolic link; if it is yours, name the folder with --data-dir");
    }
  }
  return *data + "/reprise/chats";
}

}  // namespace

Result<void> FinishProviders(std::vector<ProviderOptions>& providers) {
  for (ProviderOptions& provider : providers) {
    SplitQuery(provider);
    while (provider.base_url.ends_with('/')) provider.base_url.pop_back();
    if (provider.base_url.empty()) {
      provider.base_url = provider.type == "anthropic" ? "https://api.anthropic.com" : "https://api.openai.com/v1";
    }
    if (!provider.base_url.starts_with("http://") && !provider.base_url.starts_with("https://")) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the base URL of provider " + provider.name + " must begin with http:// or https://");
    }
    for (const char c : provider.api_key) {
      // The key becomes a header's value, and a line end in it would forge further headers.
      if (c <= ' ' || c >= 0x7f) {
        return Fail(ErrorCode::kInvalidArgument, "the API key of provider " + provider.name +
                                                     " has characters that no key has (a space, a line end?)");
      }
    }
  }
  return {};
}

std::string UsualModel(const ProviderOptions& provider) {
  if (provider.api_key.empty()) return {};
  const bool writes = provider.type != "anthropic" && provider.type != "openai_realtime";
  if (provider.name == "openai" && writes) return "openai/gpt-4o-mini";
  if (provider.name == "anthropic" && provider.type == "anthropic") return "anthropic/claude-sonnet-5";
  return {};
}

std::vector<std::string> NotesOf(const Options& options, const Environment& environment) {
  std::vector<std::string> notes;
  if (const std::string keys = Joined(options.server_keys, ", "); !keys.empty()) {
    notes.push_back(
        "reprise.json in a folder is for the chats that work there, and the next version refuses keys of the server in "
        "it: move " +
        keys + " to $XDG_CONFIG_HOME/reprise/reprise.json, or to a file that you name with --config");
  }
  const std::string here = Options().data_dir;
  const bool has_chats = IsThere(here + "/.sealed_by") || IsThere(here + "/.lock");
  if (has_chats && options.data_dir != here && options.data_dir == DefaultDataFolder(environment)) {
    notes.push_back("chats of an earlier version are in ./chats; `--data-dir chats` opens them");
  }
  return notes;
}

bool GetsRequests(const ProviderOptions& provider) {
  const bool is_usual = (provider.name == "openai" && provider.base_url == "https://api.openai.com/v1") ||
                        (provider.name == "anthropic" && provider.base_url == "https://api.anthropic.com");
  return !is_usual || !provider.api_key.empty() || !provider.headers.empty() || !provider.query.empty() ||
         provider.web_search.is_on;
}

std::string NamesOfUsed(const std::vector<ProviderOptions>& providers) {
  std::string names;
  for (const ProviderOptions& each : providers) {
    if (GetsRequests(each)) names += (names.empty() ? "" : ", ") + each.name;
  }
  return names.empty() ? "none" : names;
}

namespace {

// The files that a person is asked to allow.
struct AskedFiles {
  bool config = false;  // Sources::config
  bool found = false;   // the reprise.json here, and the folder's
};

// With the file of a folder, if there is one. `take`: what counts of it. With `asked` those files beat flags and
// variables, their keys go to Options::asked_keys, and they may be unusable as they are.
Result<Options> Merged(const Sources& sources, const MaybeConfig& folder, FolderLayer::Take take,
                       const AskedFiles* asked = nullptr) {
  const Environment& environment = sources.environment;
  Options options;
  options.model.clear();
  options.data_dir.clear();
  options.providers = BuiltInProviders(environment);
  if (const auto own = ConfigFolder(environment)) options.trust_file = *own + "/" + kTrustedFileName;
  ConfigKeys keys;
  const auto apply = [&](const ConfigText& config, const std::optional<FolderLayer>& layer) -> Result<void> {
    ConfigKeys* const to = asked != nullptr && (layer ? asked->found : asked->config) ? &keys : nullptr;
    const auto applied = layer ? ApplyFolderConfig(options, config.text, environment, *layer, to)
                               : ApplyConfig(options, config.text, environment, to);
    if (applied) return {};
    Error wrong = InFront(config.path + ":", applied.error());
    if (layer && wrong.code == ErrorCode::kInvalidArgument) wrong.reason = NameOf(Reason::kInvalidConfig);
    return Fail(std::move(wrong));
  };
  const auto apply_given = [&]() -> Result<void> {
    TRY(ApplyEnvironmentAndFlags(options, sources.flags, environment));
    ApplyTelemetryVariables(options.telemetry, environment);
    return {};
  };
  if (asked != nullptr && asked->config) TRY(apply_given());
  if (sources.config) {
    options.config_file = sources.config->path;
    TRY(apply(*sources.config, std::nullopt));
  }
  if (asked != nullptr && !asked->config) TRY(apply_given());
  if (sources.here) TRY(apply(*sources.here, FolderLayer{.take = FolderLayer::Take::kServerKeys}));
  if (folder) {
    options.folder_file = folder->path;
    options.folder_digest = Sha256Digest({folder->text});
    const bool denies_all = options.approval_mode == ApprovalMode::kDenyAll && asked == nullptr;
    TRY(apply(*folder, FolderLayer{.take = take, .folder = ParentDirectory(PlaceOf(folder->path))}));
    if (denies_all) options.approval_mode = ApprovalMode::kDenyAll;  // it holds in every chat
  }
  if (asked == nullptr) TRY(apply_given());
  if (options.data_dir.empty()) options.data_dir = TRY(DefaultDataFolder(environment));
  TRY(FinishProviders(options.providers));
  if (options.model.empty()) options.model = ChooseModel(options);
  for (const std::string& key : keys) options.asked_keys.try_emplace(key);
  return options;
}

// Every value for people, by its key.
std::map<std::string, std::string> ShownValues(const Options& options) {
  std::map<std::string, std::string> values;
  ForEachSetting(options, [&](const std::string& key, const Setting& setting, const SettingValue& value) {
    values.emplace(key, ShownValue(setting, value));
  });
  return values;
}

// Merged, with a model that there is.
Result<Options> Usable(const Sources& sources, const MaybeConfig& folder, FolderLayer::Take take) {
  Options options = TRY(Merged(sources, folder, take));
  TRY(CheckModel(options));
  return options;
}

// The flag or variable that sets it; empty if there is none.
std::string GiverOf(const Setting& setting, const Sources& sources) {
  if (setting.flag.name.empty()) return {};
  if (sources.flags.contains(std::string(setting.flag.name))) return "--" + std::string(setting.flag.name);
  return sources.environment(EnvironmentName(setting)) ? EnvironmentName(setting) : "";
}

// What a person is asked to allow: what the files of `asked` set. A remark says where another value is in force now,
// or would be without them, because their values may come to count later, and may undo what the user has set.
Result<std::shared_ptr<const Options>> AskedOptions(const Sources& sources, const MaybeConfig& folder,
                                                    FolderLayer::Take take, const AskedFiles& asked,
                                                    const Options& in_force) {
  Options shown = TRY(Merged(sources, folder, take, &asked));
  Sources others = sources;
  if (asked.config) others.config.reset();
  if (asked.found) others.here.reset();
  const Options without = TRY(Merged(others, asked.found ? std::nullopt : folder, take));
  const auto now = ShownValues(in_force), otherwise = ShownValues(without);
  Options usual;
  SettingsDraft draft;
  ForEachSetting(shown, [&](const std::string& key, const Setting& setting, const SettingValue& value) {
    const auto own = shown.asked_keys.find(key);
    if (own == shown.asked_keys.end()) return;
    const std::string text = ShownValue(setting, value);
    const auto in = [&](const auto& values) {
      const auto found = values.find(key);
      return found == values.end() ? text : found->second;
    };
    const std::string present = in(now), before = in(otherwise), giver = GiverOf(setting, sources);
    if (present != text) {
      own->second = !giver.empty() ? "now overridden by " + giver : "now " + (present.empty() ? "none" : present);
    } else if (before != text && before != ShownValue(setting, setting.at(usual, draft))) {
      own->second = "otherwise " + (before.empty() ? "none" : before);
    }
  });
  // A file's providers stand in place of all others.
  const bool lacks_any = std::ranges::any_of(without.providers, [&](const ProviderOptions& provider) {
    return GetsRequests(provider) &&
           std::ranges::find(shown.providers, provider.name, &ProviderOptions::name) == shown.providers.end();
  });
  if (lacks_any) shown.asked_keys["providers"] = "otherwise " + NamesOfUsed(without.providers);
  return std::make_shared<const Options>(std::move(shown));
}

struct Loaded {
  Sources sources;
  Options options;
  std::string workspace;  // the real path
};

// Options::of_folder.
Result<Options::OfFolder> OfFolder(const std::shared_ptr<const Loaded>& loaded, const std::string& folder) {
  if (folder.empty()) return Options::OfFolder{{}, [loaded] { return Usable(loaded->sources, std::nullopt, {}); }};
  const auto& [sources, home, home_path] = *loaded;
  const bool is_home = folder == home_path;
  MaybeConfig file = TRY(ReadFound(is_home && !home.folder_file.empty() ? Resolved(home.folder_file).string()
                                                                        : folder + "/" + kDefaultConfigFile));
  if (IsSameFile(file, sources.config)) file.reset();
  std::string digest;
  if (file) {
    digest = Sha256Digest({file->text});
    // Before it is parsed.
    Options shown = home;
    shown.folder_file = file->path;
    shown.workspace = folder;
    TRY(RequireTrust(shown, {{PlaceOf(file->path), digest}}, /*ask=*/false));
  }
  const auto take = is_home ? FolderLayer::Take::kOwnKeys : FolderLayer::Take::kChatKeys;
  return Options::OfFolder{std::move(digest), [loaded, folder, take, file = std::move(file)]() -> Result<Options> {
                             Options options = TRY(Usable(loaded->sources, file, take));
                             options.workspace = folder;
                             return options;
                           }};
}

Result<void> CheckServer(const Options& options) {
  if (!IsLoopbackHost(options.host) && options.token_file.empty() && !options.auth.has_people()) {
    return Fail(ErrorCode::kInvalidArgument,
                "--host " + options.host + " can be reached from other machines and needs --token-file, or \"auth\"");
  }
  if (options.auth.has_people() && options.workspace_mode == WorkspaceMode::kLocal) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "workspace_mode local is for one user: with \"auth\" it is none, or shared if all may see and change it");
  }
  return {};
}

// Asks once about everything. Without trust in a configuration, errors in its programs are not reported.
Result<void> RequireTrustOf(const Sources& sources, const MaybeConfig& folder, FolderLayer::Take take,
                            const AskedFiles& asked, Options options) {
  FileDigests files;
  for (const MaybeConfig& config : {asked.config ? sources.config : MaybeConfig(), sources.here, folder}) {
    if (config) files[PlaceOf(config->path)] = Sha256Digest({config->text});
  }
  const auto configuration = RequireTrust(options, files, /*ask=*/false);
  if (configuration || !configuration.error().Is(Reason::kUntrusted)) return configuration;
  options.asked = TRY(AskedOptions(sources, folder, take, asked, options));
  if (auto named = FilesToTrust(options)) files.merge(*named);
  return RequireTrust(options, files);
}

}  // namespace

Result<Options> LoadOptions(const Flags& flags, const Environment& environment, LoadedFor what) {
  Sources sources{.flags = flags, .environment = environment};
  TRY(FindConfig(sources));
  // The folder's file is that of the workspace which flags, variables and the first configuration choose.
  Options first;
  if (sources.config) static_cast<void>(ApplyConfig(first, sources.config->text, environment));
  static_cast<void>(ApplyEnvironmentAndFlags(first, flags, environment));
  const std::string place = first.workspace == Options().workspace ? "" : first.workspace + "/";
  MaybeConfig folder = TRY(ReadFound(place + kDefaultConfigFile));
  const bool shows_folder = what == LoadedFor::kShowing && !flags.contains("config");
  const bool is_same = IsSameFile(folder, sources.config);
  if (is_same) folder.reset();
  const bool is_here = IsSameFile(folder, sources.here) || place.empty();
  if (shows_folder && !is_here) sources.here.reset();  // it is not asked about
  const auto take = is_here ? FolderLayer::Take::kOwnKeys : FolderLayer::Take::kChatKeys;
  Options options = TRY(Usable(sources, folder, take));
  TRY(CheckServer(options));
  const std::string above = NearestThere(FullPath(options.data_dir));
  if (IsFile(above)) {
    const bool is_it = above == FullPath(options.data_dir);
    return Fail(ErrorCode::kInvalidArgument, (is_it ? VisibleLine(options.data_dir) + " is a file"
                                                    : VisibleLine(above) + " is a file, so nothing can be below it") +
                                                 "; --data-dir names the folder of the chats");
  }
  // Last, so that the question shows the final options.
  const bool is_open = sources.config && !sources.is_named &&
                       OpenToTools(sources.config->path, options.workspace, ConfigFolder(environment).value_or(""));
  if (!shows_folder && (is_open || sources.here || folder)) {
    TRY(RequireTrustOf(sources, folder, take, {.config = is_open, .found = true}, options));
  }
  if (what == LoadedFor::kShowing) {
    const AskedFiles asked{.config = !shows_folder || is_same, .found = shows_folder};
    options.asked = TRY(AskedOptions(sources, folder, take, asked, options));
  }
  const std::string workspace = Resolved(options.workspace).string();
  const auto loaded = std::make_shared<const Loaded>(Loaded{std::move(sources), options, workspace});
  options.of_folder = [loaded](const std::string& path) { return OfFolder(loaded, path); };
  return options;
}

Result<std::string> WorkspaceOf(const Options& options) {
  if (!options.has_workspace()) return std::string();
  const std::string shown = VisibleLine(options.workspace);
  const auto refuse = [&](const std::string& why) {
    return Fail(ErrorCode::kInvalidArgument, why + "; --workspace DIR names another");
  };
  std::error_code failed;
  const std::string path = std::filesystem::canonical(options.workspace, failed).string();
  if (failed && std::filesystem::path(options.workspace).is_relative()) {
    std::error_code gone;
    static_cast<void>(std::filesystem::current_path(gone));
    if (gone) return refuse("the current folder has been deleted or moved");
  }
  if (failed == std::errc::no_such_file_or_directory) return refuse("there is no folder " + shown + " to work in");
  if (failed) return refuse("the workspace " + shown + " cannot be used: " + failed.message());
  if (!IsDirectory(path)) return refuse("the workspace " + shown + " is not a folder");
  // It would become another name in requests and files, which may be that of another folder.
  if (!IsUtf8(path)) return refuse("the name of the workspace " + VisibleLine(path) + " is not UTF-8; rename it");
  return path;
}

}  // namespace reprise
