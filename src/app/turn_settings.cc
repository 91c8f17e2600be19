#include "app/turn_settings.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/options.h"
#include "app/trust.h"
#include "base/json.h"
#include "base/path.h"
#include "base/private_file.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxConfigFile = 1 << 20;

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

}  // namespace reprise
