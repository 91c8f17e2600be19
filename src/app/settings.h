#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

using Texts = std::vector<std::string>;
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// A number, a time, yes or no, or one of a few names: what it is as a number. nullopt: it is not set.
struct Scalar {
  enum class Kind {
    kInteger,
    kNumber,
    kSeconds,
    kBool,
    kName,  // the number is the name's place among Setting::choices
  };
  Kind kind;
  void* at;
  std::optional<double> (*get)(const void* at);
  void (*set)(void* at, double number);
};

// Where a setting's value is kept. The type says what a flag and the configuration file must hold.
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

// The numbers that a setting takes; of times, in seconds.
struct NumberRange {
  double low = 0, high = 0;
  bool above = false;  // `low` itself is not one of them
  bool whole = false;  // of a time: no parts of a second
};
inline constexpr double kNoHighest = 1e12;

// How a person who is asked to trust a configuration is told of a setting (app/trust.h).
enum class Told {
  kAsOfTurns,   // by its key: it decides how a turn runs
  kAsOfServer,  // by its key: it decides how a server listens, logs and stops
  kFirst,       // by its key, above all others: it takes the walls away that tools are behind
  kInWords,     // in words of its own
};

// --NAME, and the environment variable REPRISE_NAME. `name` is empty if there is none.
struct Flag {
  std::string_view name{};
  std::string_view placeholder{};  // what help shows for its value; empty: a switch that needs none
  std::string_view help{};
};

// What a setting takes, and what is told of it.
struct SettingRules {
  NumberRange range{};
  // Separated by commas, in the order of the enumerators; an empty one cannot be chosen. An integer may have some too.
  std::string_view choices{};
  // What is wrong with a text, or with one of a list: "must be ...". Empty: nothing. Null: it must not be empty.
  std::string (*wrong)(const std::string& text) = nullptr;
  bool (*is_name)(const std::string& name) = nullptr;  // of named texts
  // Adds what is secret in a text; `name`: of a named one. Null: nothing is.
  void (*secrets)(std::string_view name, std::string_view text, std::vector<std::string>& secrets) = nullptr;
  bool may_lack_variable = false;  // it is empty then, and not an error
  bool expands_home = false;       // "~" at the beginning of a path
  bool may_be_one = false;         // a text in place of a list
  Told told = Told::kAsOfTurns;
  std::string_view zero{};  // what 0 means, if that is not obvious
  std::string_view note{};  // what a person should know of any value but the default
};

// One setting. Flags, variables, the configuration file, help, what a person is asked to trust and what is kept from
// models and logs: all of them come from the table of these. tests/app/settings_test.cc holds the schema and the docs
// against it.
struct Setting {
  // In the configuration file: "tools.timeout_s", "providers.NAME.type", "hooks[].event".
  std::string_view key;
  SettingValue (*at)(Options& options, SettingsDraft& draft);
  SettingRules rules{};
  Flag flag{};
};

// In the order in which help and a person who is asked to trust a configuration see them.
std::span<const Setting> Settings();
// Null if there is none.
const Setting* FindSetting(std::string_view flag);
const Setting* FindSettingByKey(std::string_view key);

// REQUIRES: it has a flag.
std::string EnvironmentName(const Setting& setting);
// One sentence for each variable of `environment` ("NAME=value", ended by a null) that is called like a setting and is
// none. Values are not in it.
std::vector<std::string> UnknownVariables(const char* const* environment);
// The texts that it takes, for completion; empty: any.
std::vector<std::string> ChoicesOf(const Setting& setting);

// "must be an integer from 0 to 65535", "must be one of a, b, c".
std::string MustBe(const Setting& setting, Scalar::Kind kind);
// What is wrong with a text, or with one of a list: "must be ..."; empty: nothing.
std::string WrongWith(const Setting& setting, const std::string& text);
// Checks a text and stores it. The error says what would have been right, without naming the setting.
Result<void> Store(const Setting& setting, const Scalar& to, std::string_view text);
// The same for what a flag or a variable says; lists are separated by commas. REQUIRES: it has a flag.
Result<void> ApplySetting(const Setting& setting, Options& options, std::string_view text);

// A value for people: without secrets, of named texts the names.
std::string ShownValue(const Setting& setting, const SettingValue& value);
// A command line, or a list of names.
std::string QuotedWords(const Texts& words);
std::string NamesOf(const NamedTexts& pairs);
std::string SecondsOf(std::chrono::milliseconds time);

// Every value that `options` has of single settings, models, providers and MCP servers. `key` has their names.
void ForEachSetting(
    const Options& options,
    const std::function<void(const std::string& key, const Setting& setting, const SettingValue& value)>& use);

}  // namespace reprise
