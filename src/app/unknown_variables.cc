#include "app/unknown_variables.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "app/settings.h"
#include "base/did_you_mean.h"

namespace reprise {
namespace {

// What scripts and tests of this repository read.
constexpr std::array<std::string_view, 4> kOfScripts = {"REPRISE_BIN", "REPRISE_BENCH", "REPRISE_E2E_SLACK",
                                                        "REPRISE_WERROR"};

bool IsOneOf(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> UnknownVariables(const char* const* environment) {
  std::vector<std::string> known = {"REPRISE_CONFIG", "REPRISE_URL"};
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

}  // namespace reprise
