#include "app/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>

#include "app/options.h"
#include "app/secrets.h"
#include "app/trust.h"
#include "base/json.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/text.h"
#include "crypto/digest.h"
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
  const auto choices = ChoicesOf(setting);
  const std::string names = Joined(choices, ", ");
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

std::string NamesOf(const NamedTexts& pairs) { return Joined(std::views::keys(pairs), ", "); }

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

namespace {

// The configuration's text, and the variables that it and telemetry use.
TurnSettings SourcesOf(const Options& options, const Environment& environment) {
  TurnSettings sources;
  const Environment noted = [&](const std::string& name) {
    auto value = environment(name);
    if (value) sources["variable " + name] = Sha256Digest({*value});
    return value;
  };
  Options scratch;
  ApplyTelemetryVariables(scratch.telemetry, noted);
  for (const auto& [key, file] : {std::pair<std::string, std::string>("configuration", options.config_file),
                                  {"configuration of the folder", options.folder_file}}) {
    if (file.empty()) continue;
    const auto text = ReadSmallFile(file, kMaxConfigFile);
    if (text) static_cast<void>(ApplyConfig(scratch, *text, noted));
    sources[key] = Resolved(file).string() + " " + Sha256Digest({text.value_or("")});
  }
  return sources;
}

}  // namespace

TurnSettings SettingsOfTurns(const Options& options, const Environment& environment) {
  TurnSettings settings = SourcesOf(options, environment);
  settings["workspace"] = Resolved(options.workspace).string();
  settings["model"] = options.model;
  for (const ProviderOptions& provider : options.providers) {
    settings["provider " + provider.name] = provider.base_url;
    if (!provider.api_key.empty()) settings["key of provider " + provider.name] = Sha256Digest({provider.api_key});
    const WebSearchOptions& search = provider.web_search;
    if (!search.is_on) continue;
    settings["web search of provider " + provider.name] = std::to_string(search.max_uses) + " " +
                                                          QuotedWords(search.allowed_domains) + " " +
                                                          QuotedWords(search.blocked_domains);
  }
  for (auto& [key, value] : ValuesOfTurns(options)) settings[std::move(key)] = std::move(value);
  return settings;
}

TurnSettings SettingsOfAllChats(const Options& options, const Environment& environment) {
  const auto base = options.of_folder ? options.of_folder({}).and_then([](const auto& none) { return none.options(); })
                                      : Result<Options>(options);
  TurnSettings settings = SettingsOfTurns(base.value_or(options), environment);
  for (const char* const own : {"workspace", "approval_mode", "model"}) settings.erase(own);
  return settings;
}

std::string DigestOf(const TurnSettings& settings) { return Sha256Digest({DumpJson(Json(settings))}); }

std::string SettingsFileOf(const Options& options) { return options.data_dir + "/.settings"; }
namespace {

std::string UrlUnder(std::string_view base, std::string_view path) {
  while (base.ends_with('/')) base.remove_suffix(1);
  return std::string(base) + std::string(path);
}

bool IsUrl(std::string_view text) {
  const bool has_scheme = text.starts_with("http://") || text.starts_with("https://");
  return has_scheme && std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

class Variables {
 public:
  Variables(TelemetryOptions& options, const Environment& environment) : options_(options), environment_(environment) {}

  void Apply() {
    if (const auto text = Read("OTEL_SDK_DISABLED")) options_.disabled = EqualsIgnoringCase(*text, "true");
    if (const auto url = ReadUrl("OTEL_EXPORTER_OTLP_ENDPOINT")) SetOtlpEndpoint(options_, *url);
    ApplyTo(options_.traces, "TRACES");
    ApplyTo(options_.metrics, "METRICS");
    if (const auto text = Read("OTEL_RESOURCE_ATTRIBUTES")) {
      if (auto pairs = Pairs(*text)) {
        for (auto& [key, value] : *pairs) {
          if (key == "service.name") options_.service_name = value;
          options_.resource.emplace_back(std::move(key), std::move(value));
        }
      } else {
        Complain("OTEL_RESOURCE_ATTRIBUTES", "must be key=value pairs, separated by commas, percent-encoded");
      }
    }
    if (const auto name = Read("OTEL_SERVICE_NAME")) options_.service_name = *name;
    ApplySampler();
    ApplyMilliseconds("OTEL_BSP_SCHEDULE_DELAY", options_.schedule_delay);
    ApplyMilliseconds("OTEL_BSP_EXPORT_TIMEOUT", options_.export_timeout);
    ApplyMilliseconds("OTEL_METRIC_EXPORT_INTERVAL", options_.metrics_interval);
    ApplyCount("OTEL_BSP_MAX_QUEUE_SIZE", options_.max_queue);
    ApplyCount("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", options_.max_batch);
    options_.max_batch = std::min(options_.max_batch, options_.max_queue);
  }

 private:
  std::optional<std::string> Read(const std::string& name) const { return environment_(name); }
  // The variable of one signal, else that of all.
  std::optional<std::pair<std::string, std::string>> ReadFor(std::string_view signal, const std::string& what) const {
    for (const std::string& name :
         {"OTEL_EXPORTER_OTLP_" + std::string(signal) + "_" + what, "OTEL_EXPORTER_OTLP_" + what}) {
      if (auto text = Read(name)) return std::pair(name, *std::move(text));
    }
    return std::nullopt;
  }
  void Complain(const std::string& name, const std::string& why) {
    std::string problem = "the variable " + name + " " + why;
    auto& problems = options_.problems;
    if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(std::move(problem));
  }

  std::optional<std::string> ReadUrl(const std::string& name) {
    auto text = Read(name);
    if (!text || IsUrl(*text)) return text;
    Complain(name, "must be a URL that begins with http:// or https://");
    return std::nullopt;
  }

  void ApplyTo(OtlpEndpoint& endpoint, const std::string& signal) {
    if (auto url = ReadUrl("OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT")) endpoint.url = *std::move(url);
    const std::string exporter = "OTEL_" + signal + "_EXPORTER";
    if (const auto chosen = Read(exporter); chosen == "none") {
      endpoint.url.clear();
    } else if (chosen && chosen != "otlp") {
      Complain(exporter, "must be otlp or none; GET /metrics serves Prometheus whatever it says");
    }
    if (const auto protocol = ReadFor(signal, "PROTOCOL"); protocol && protocol->second != "http/protobuf") {
      if (!endpoint.url.empty()) {
        Complain(protocol->first,
                 "must be http/protobuf, which is all that is spoken here (collectors take it at port "
                 "4318): what it is about is not sent");
      }
      endpoint.url.clear();
    }
    if (const auto headers = ReadFor(signal, "HEADERS")) {
      if (auto pairs = Pairs(headers->second)) {
        for (auto& pair : *pairs) endpoint.headers.push_back(std::move(pair));
      } else {
        Complain(headers->first, "must be name=value pairs, separated by commas, percent-encoded");
      }
    }
    if (const auto timeout = ReadFor(signal, "TIMEOUT")) ApplyMilliseconds(timeout->first, endpoint.timeout);
  }

  // Parses W3C Baggage: "a=b, c=d%20e". Refuses values that would forge a header.
  static std::optional<std::vector<std::pair<std::string, std::string>>> Pairs(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> pairs;
    const bool is_wrong = AnyPart(text, ',', [&](std::string_view part) {
      part = TrimBlanks(part);
      if (part.empty()) return false;
      const std::size_t equals = part.find('=');
      if (equals == 0 || equals == std::string_view::npos) return true;
      const auto key = PercentDecoded(TrimBlanks(part.substr(0, equals)));
      const auto value = PercentDecoded(TrimBlanks(part.substr(equals + 1)));
      const auto is_plain = [](const std::string& decoded) {
        return IsUtf8(decoded) && std::ranges::none_of(decoded, [](unsigned char c) { return c < ' ' || c == 0x7f; });
      };
      if (!key || !value || !is_plain(*key) || !is_plain(*value)) return true;
      pairs.emplace_back(*key, *value);
      return false;
    });
    if (is_wrong) return std::nullopt;
    return pairs;
  }

  std::optional<std::int64_t> Number(const std::string& name) {
    const auto text = Read(name);
    if (!text) return std::nullopt;
    const auto value = ParseNumber<std::int64_t>(*text);
    constexpr std::int64_t kMost = 86'400'000;
    if (value && *value >= 1 && *value <= kMost) return value;
    Complain(name, "must be a whole number from 1 to " + std::to_string(kMost));
    return std::nullopt;
  }
  void ApplyMilliseconds(const std::string& name, std::chrono::milliseconds& target) {
    if (const auto value = Number(name)) target = std::chrono::milliseconds(*value);
  }
  void ApplyCount(const std::string& name, std::size_t& target) {
    constexpr std::int64_t kMost = 100'000;
    if (const auto value = Number(name)) target = static_cast<std::size_t>(std::min(*value, kMost));
  }

  void ApplySampler() {
    const auto text = Read("OTEL_TRACES_SAMPLER");
    if (!text) return;
    constexpr std::string_view kParent = "parentbased_";
    std::string_view name = *text;
    SamplerOptions sampler{.follows_parent = name.starts_with(kParent)};
    if (sampler.follows_parent) name.remove_prefix(kParent.size());
    if (name == "always_off") {
      sampler.ratio = 0;
    } else if (name == "traceidratio") {
      sampler.ratio = Ratio();
    } else if (name != "always_on") {
      return Complain("OTEL_TRACES_SAMPLER",
                      "must be always_on, always_off or traceidratio, or one of them behind "
                      "parentbased_");
    }
    options_.sampler = sampler;
  }
  double Ratio() {
    const auto text = Read("OTEL_TRACES_SAMPLER_ARG");
    if (!text) return 1;
    const auto ratio = ParseNumber<double>(*text);
    if (ratio && *ratio >= 0 && *ratio <= 1) return *ratio;
    Complain("OTEL_TRACES_SAMPLER_ARG", "must be a number from 0 to 1");
    return 1;
  }

  TelemetryOptions& options_;
  const Environment& environment_;
};

}  // namespace

void SetOtlpEndpoint(TelemetryOptions& options, std::string_view base_url) {
  options.traces.url = UrlUnder(base_url, "/v1/traces");
  options.metrics.url = UrlUnder(base_url, "/v1/metrics");
}

void ApplyTelemetryVariables(TelemetryOptions& options, const Environment& environment) {
  Variables(options, environment).Apply();
}

}  // namespace reprise
