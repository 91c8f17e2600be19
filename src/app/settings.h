#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/system.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

using Texts = std::vector<std::string>;
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// A number, a time, yes or no, or a name of a few: its value as a number; nullopt if it is not set.
struct Scalar {
  enum class Kind {
    kInteger,
    kNumber,
    kSeconds,
    kBool,
    kName,  // the number is the name's index in Setting::choices
  };
  Kind kind;
  void* at;
  std::optional<double> (*get)(const void* at);
  void (*set)(void* at, double number);
};

// The place of a setting's value. The type says what a flag and the configuration file must hold.
using SettingValue = std::variant<Scalar, std::string*, Texts*, NamedTexts*>;

// Values of a list's element, or of a section that counts only with a certain `type`, while they are read or shown.
struct SettingsDraft {
  enum class Place { kFolder, kBucket };  // of the files

  ProviderOptions provider;
  ModelFacts facts;
  ModelPrice price;
  McpServerOptions server;
  McpAuthOptions login;
  std::string login_type;
  HookOptions hook;
  ToolRule rule;
  Place files = Place::kFolder;
  BucketOptions bucket;
};

// The numbers that a setting takes; times in seconds.
struct NumberRange {
  double low = 0, high = 0;
  bool above = false;  // excludes `low` itself
  bool whole = false;  // for a time: whole seconds only
};
inline constexpr double kNoHighest = 1e12;

// How the question whether to trust a configuration shows a setting (app/trust.h).
enum class Told {
  kAsOfTurns,   // by its key: it affects how a turn runs
  kAsOfServer,  // by its key: it affects how a server listens, logs and stops
  kFirst,       // by its key, above all others: it weakens the confinement of tools
  kInWords,     // in a text of its own
};

// Which layers of the configuration may set it (app/options.h); flags and variables may set all that have one.
enum class Layer {
  kChat,    // also the reprise.json of a folder, for the chats that work there
  kServer,  // the user's or the named file alone
};

// --NAME, and the environment variable REPRISE_NAME. `name` is empty if there is none.
struct Flag {
  std::string_view name{};
  std::string_view placeholder{};  // its value in help; empty for a switch
  std::string_view help{};
};

// The valid values of a setting, and its texts for people.
struct SettingRules {
  NumberRange range{};
  // Separated by commas, in the order of the enumerators; an empty one cannot be chosen. Integers may have some too.
  std::string_view choices{};
  // The fault of a text, or of one in a list: "must be ..."; empty if it is valid. Null: it must not be empty.
  std::string (*wrong)(const std::string& text) = nullptr;
  bool (*is_name)(const std::string& name) = nullptr;  // for named texts
  // Adds the secrets in a text; `name` is that of a named text. Null if there are none.
  void (*secrets)(std::string_view name, std::string_view text, std::vector<std::string>& secrets) = nullptr;
  bool may_lack_variable = false;  // an unset variable makes it empty, not an error
  bool expands_home = false;       // "~" at the beginning of a path
  bool may_be_one = false;         // accepts a text in place of a list
  Told told = Told::kAsOfTurns;
  std::string_view zero{};  // the meaning of 0, if that is not obvious
  std::string_view note{};  // for people, about any value but the default
  Layer layer = Layer::kChat;
};

// One setting. Flags, variables, the configuration file, help, the question of trust, and redaction for models and logs
// all use the table of settings. tests/app/settings_test.cc compares it with the schema and the docs.
struct Setting {
  // The key in the configuration file: "tools.timeout_s", "providers.NAME.type", "hooks[].event".
  std::string_view key;
  SettingValue (*at)(Options& options, SettingsDraft& draft);
  SettingRules rules{};
  Flag flag{};
};

// In the order of help and of the question whether to trust a configuration.
std::span<const Setting> Settings();
// Null if there is none.
const Setting* FindSetting(std::string_view flag);
const Setting* FindSettingByKey(std::string_view key);
// The layer of a key, or of all keys below it; nullopt if they differ, or there are none.
std::optional<Layer> LayerOf(std::string_view key);

// REQUIRES: it has a flag.
std::string EnvironmentName(const Setting& setting);
// One sentence for each variable of `environment` ("NAME=value", ended by null) that is named like a setting but is
// none. Without values.
std::vector<std::string> UnknownVariables(const char* const* environment);
// The texts that it takes, for completion; empty for any.
std::vector<std::string> ChoicesOf(const Setting& setting);

// "must be an integer from 0 to 65535", "must be one of a, b, c".
std::string MustBe(const Setting& setting, Scalar::Kind kind);
// The fault of a text, or of one in a list: "must be ..."; empty if it is valid.
std::string WrongWith(const Setting& setting, const std::string& text);
// Checks a text and stores it. The error tells the expected value, without the setting's name.
Result<void> Store(const Setting& setting, const Scalar& to, std::string_view text);
// The same for the text of a flag or variable, which separates lists by commas. REQUIRES: it has a flag.
Result<void> ApplySetting(const Setting& setting, Options& options, std::string_view text);

// A value for people: no secrets; only the names of named texts.
std::string ShownValue(const Setting& setting, const SettingValue& value);
// A command line, or a list of names.
std::string QuotedWords(const Texts& words);
std::string NamesOf(const NamedTexts& pairs);
std::string SecondsOf(std::chrono::milliseconds time);

// Passes every value of `options`: single settings, models, providers and MCP servers. `key` holds their names.
void ForEachSetting(
    const Options& options,
    const std::function<void(const std::string& key, const Setting& setting, const SettingValue& value)>& use);

// The settings that affect how a turn runs, by their configuration keys: folder, mode, model, configuration and all
// other settings, except how a server listens, logs and stops. Secrets and the configuration's text are digests
// ("sha256:...").
using TurnSettings = std::map<std::string, std::string>;

// From options that were just loaded in `environment`.
TurnSettings SettingsOfTurns(const Options& options, const Environment& environment);

// Those that chats in all folders have: without folder, mode and model, and without the folder's file.
TurnSettings SettingsOfAllChats(const Options& options, const Environment& environment);

// Equal for equal settings only.
std::string DigestOf(const TurnSettings& settings);

inline constexpr std::size_t kMaxConfigFile = 1 << 20;  // bytes of a configuration file
// The member of SettingsFileOf that holds the settings of all chats, as an object.
inline constexpr const char* kOfAllChats = "of_all_chats";

// The file in a data folder where its server has noted its settings, as a JSON object.
std::string SettingsFileOf(const Options& options);

}  // namespace reprise
