#include "app/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "app/secrets.h"
#include "base/text.h"
#include "wire/message.h"

namespace reprise {
namespace {

std::string NumberText(double number) {
  if (number == std::floor(number)) return std::to_string(static_cast<std::int64_t>(number));
  std::ostringstream text;
  text << number;
  return text.str();
}

// Keeps the places of empty choices.
std::vector<std::string> SplitChoices(std::string_view choices) {
  std::vector<std::string> names;
  if (choices.empty()) return names;
  AnyPart(choices, ',', [&](std::string_view name) { return names.emplace_back(name), false; });
  return names;
}

std::optional<double> NumberFor(const Setting& setting, Scalar::Kind kind, std::string_view text) {
  const auto number = ParseNumber<double>(text);
  const bool is_whole = kind == Scalar::Kind::kInteger || setting.rules.range.whole;
  if (!number || !std::isfinite(*number)) return std::nullopt;
  if (is_whole && text.find_first_not_of("0123456789", text.starts_with('-') ? 1 : 0) != std::string_view::npos) {
    return std::nullopt;
  }
  const NumberRange& range = setting.rules.range;
  if ((range.above ? *number <= range.low : *number < range.low) || *number > range.high) return std::nullopt;
  return range.above && kind == Scalar::Kind::kSeconds ? std::max(*number, 0.001) : *number;
}

// "an integer from 0 to 65535", "one of a, b, c".
std::string WantedScalar(const Setting& setting, Scalar::Kind kind) {
  if (kind == Scalar::Kind::kBool) return "true or false";
  std::string names;
  const auto choices = ChoicesOf(setting);
  for (const std::string& choice : choices) names += (names.empty() ? "" : ", ") + choice;
  if (kind == Scalar::Kind::kName) return choices.size() > 2 ? "one of " + names : choices[0] + " or " + choices.back();
  const NumberRange& range = setting.rules.range;
  const bool is_whole = kind == Scalar::Kind::kInteger || range.whole;
  std::string text = (names.empty() ? "" : names + " or ") + (is_whole ? "an integer" : "a number");
  if (kind == Scalar::Kind::kSeconds) text += " of seconds";
  const std::string low = NumberText(range.low), high = NumberText(range.high);
  if (range.high == kNoHighest) return text + " from " + low + " on";
  if (range.above) return text + " above " + low + ", at most " + high;
  return text + " from " + low + (setting.rules.zero.empty() ? "" : " (" + std::string(setting.rules.zero) + ")") +
         " to " + high;
}

std::string WithoutSecrets(const Setting& setting, const std::string& text) {
  if (setting.rules.secrets == AddSecretsOfDatabase) return WithoutPassword(text);
  if (setting.rules.secrets == AddSecretsOfQuery) return text.substr(0, text.find('?'));
  return setting.rules.secrets == nullptr || text.empty() ? text : "***";
}

std::string ShownScalar(const Setting& setting, const Scalar& value) {
  const auto number = value.get(value.at);
  if (!number) return {};
  const auto names = value.kind == Scalar::Kind::kBool ? Texts{"false", "true"} : SplitChoices(setting.rules.choices);
  if (*number < static_cast<double>(names.size())) return names[static_cast<std::size_t>(*number)];
  if (value.kind == Scalar::Kind::kSeconds) return SecondsOf(std::chrono::milliseconds(std::llround(*number * 1000)));
  return NumberText(*number) +
         (*number == 0 && !setting.rules.zero.empty() ? " (" + std::string(setting.rules.zero) + ")" : "");
}

// Variables for scripts and tests of this repository.
constexpr std::array<std::string_view, 4> kOfScripts = {"REPRISE_BIN", "REPRISE_BENCH", "REPRISE_E2E_SLACK",
                                                        "REPRISE_WERROR"};

bool IsOneOf(std::string_view name, const auto& names) { return std::ranges::find(names, name) != names.end(); }

const Setting* FindWhere(auto fits) {
  const auto found = std::find_if(Settings().begin(), Settings().end(), fits);
  return found == Settings().end() ? nullptr : &*found;
}

}  // namespace

const Setting* FindSetting(std::string_view flag) {
  return FindWhere([&](const Setting& setting) { return !flag.empty() && setting.flag.name == flag; });
}

const Setting* FindSettingByKey(std::string_view key) {
  return FindWhere([&](const Setting& setting) { return setting.key == key; });
}

std::optional<Layer> LayerOf(std::string_view key) {
  std::optional<Layer> layer;
  for (const Setting& setting : Settings()) {
    if (!setting.key.starts_with(key)) continue;
    const std::string_view rest = setting.key.substr(key.size());
    if (!rest.empty() && rest[0] != '.' && rest[0] != '[') continue;
    if (layer && *layer != setting.rules.layer) return std::nullopt;
    layer = setting.rules.layer;
  }
  return layer;
}

std::string EnvironmentName(const Setting& setting) {
  std::string name = "REPRISE_";
  for (const char c : setting.flag.name) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

std::vector<std::string> UnknownVariables(const char* const* environment) {
  std::vector<std::string> known = {"REPRISE_CONFIG", "REPRISE_LOCAL_PORTS", "REPRISE_URL"};
  for (const Setting& setting : Settings()) {
    if (!setting.flag.name.empty()) known.push_back(EnvironmentName(setting));
  }
  std::vector<std::string> unknown;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with("REPRISE_") || IsOneOf(name, known) || IsOneOf(name, kOfScripts)) continue;
    unknown.push_back("the variable " + std::string(name) + " is no setting" + DidYouMean(name, known));
  }
  return unknown;
}

std::vector<std::string> ChoicesOf(const Setting& setting) {
  if (setting.flag.placeholder == "BOOL") return {"true", "false"};
  auto names = SplitChoices(setting.rules.choices);
  std::erase(names, "");
  return names;
}

std::string MustBe(const Setting& setting, Scalar::Kind kind) { return "must be " + WantedScalar(setting, kind); }

std::string WrongWith(const Setting& setting, const std::string& text) {
  if (text.find('\0') != std::string::npos) return "must be a text without a NUL character";
  const auto choices = ChoicesOf(setting);
  if (!choices.empty() && std::ranges::find(choices, text) == choices.end()) {
    return MustBe(setting, Scalar::Kind::kName);
  }
  if (setting.rules.wrong != nullptr) return setting.rules.wrong(text);
  return text.empty() ? "must be a text that is not empty" : "";
}

Result<void> Store(const Setting& setting, const Scalar& to, std::string_view text) {
  auto names = SplitChoices(setting.rules.choices);
  if (to.kind == Scalar::Kind::kBool) names = {"false", "true", "0", "1"};
  const auto name = text.empty() ? names.end() : std::ranges::find(names, text);
  std::optional<double> number;
  if (name != names.end()) {
    number = name - names.begin();
    if (to.kind == Scalar::Kind::kBool) number = (name - names.begin()) % 2;
  } else if (to.kind != Scalar::Kind::kBool && to.kind != Scalar::Kind::kName) {
    number = NumberFor(setting, to.kind, text);
  }
  if (!number) return Fail(ErrorCode::kInvalidArgument, MustBe(setting, to.kind));
  to.set(to.at, *number);
  return {};
}

Result<void> ApplySetting(const Setting& setting, Options& options, std::string_view text) {
  SettingsDraft draft;
  const SettingValue to = setting.at(options, draft);
  if (const Scalar* const scalar = std::get_if<Scalar>(&to)) return Store(setting, *scalar, text);
  Texts parts = {std::string(text)};
  if (std::holds_alternative<Texts*>(to)) {
    parts.clear();
    if (!text.empty()) AnyPart(text, ',', [&](auto part) { return parts.emplace_back(TrimBlanks(part)), false; });
  }
  for (const std::string& part : parts) {
    if (std::string wrong = WrongWith(setting, part); !wrong.empty()) return Fail(ErrorCode::kInvalidArgument, wrong);
  }
  if (Texts* const* texts = std::get_if<Texts*>(&to)) **texts = std::move(parts);
  if (std::string* const* one = std::get_if<std::string*>(&to)) **one = std::move(parts.front());
  return {};
}

std::string ShownValue(const Setting& setting, const SettingValue& value) {
  if (const Scalar* const scalar = std::get_if<Scalar>(&value)) return ShownScalar(setting, *scalar);
  if (NamedTexts* const* pairs = std::get_if<NamedTexts*>(&value)) return NamesOf(**pairs);
  if (std::string* const* text = std::get_if<std::string*>(&value)) return WithoutSecrets(setting, **text);
  Texts words = *std::get<Texts*>(value);
  for (std::string& word : words) word = WithoutSecrets(setting, word);
  return QuotedWords(words);
}

std::string QuotedWords(const Texts& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\r\n'\"") == std::string::npos;
    line += (line.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return line;
}

std::string NamesOf(const NamedTexts& pairs) {
  std::string names;
  for (const auto& [name, value] : pairs) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string SecondsOf(std::chrono::milliseconds time) {
  const std::int64_t whole = time.count() / 1000, rest = time.count() % 1000;
  return std::to_string(whole) + (rest == 0 ? "" : "." + std::to_string(1000 + rest).substr(1)) + " s";
}

void ForEachSetting(
    const Options& options,
    const std::function<void(const std::string& key, const Setting& setting, const SettingValue& value)>& use) {
  Options copy = options;
  SettingsDraft draft;
  // The settings of one list element, or of none.
  const auto use_below = [&](std::string_view list, const std::string& name) {
    constexpr std::string_view kName = ".NAME.";
    for (const Setting& setting : Settings()) {
      const bool is_single = setting.key.find(kName) == setting.key.npos && setting.key.find("[]") == setting.key.npos;
      if (list.empty() && is_single) use(std::string(setting.key), setting, setting.at(copy, draft));
      if (list.empty() || !setting.key.starts_with(std::string(list) + std::string(kName))) continue;
      const auto member = setting.key.substr(list.size() + kName.size());
      use(std::string(list) + "." + name + "." + std::string(member), setting, setting.at(copy, draft));
    }
  };
  if (options.bucket) draft.files = SettingsDraft::Place::kBucket, draft.bucket = *options.bucket;
  use_below({}, {});
  std::map<std::string, ModelFacts> models = options.models;
  for (const auto& [name, price] : options.prices) models.try_emplace(name);
  for (const auto& [name, facts] : models) {
    const auto price = options.prices.find(name);
    draft.facts = facts;
    draft.price = price == options.prices.end() ? ModelPrice() : price->second;
    use_below("models", name);
  }
  for (const ProviderOptions& provider : options.providers) {
    draft.provider = provider;
    use_below("providers", provider.name);
  }
  for (const McpServerOptions& server : options.mcp_servers) {
    draft.server = server;
    draft.login = server.auth.value_or(McpAuthOptions());
    use_below("mcpServers", server.name);
  }
}

}  // namespace reprise
