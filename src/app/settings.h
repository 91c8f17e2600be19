#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// A list is an array of texts in the configuration file, and separated by commas elsewhere.
enum class SettingKind { kText, kInteger, kNumber, kBool, kList };

// One setting that a flag and an environment variable can give as text. "data-dir" is the flag --data-dir, the variable
// REPRISE_DATA_DIR and the configuration file's key data_dir ("tool-timeout-s" is tools.timeout_s there).
struct Setting {
  std::string_view name;
  std::string_view placeholder;  // what help shows for its value; empty: a switch that needs none
  std::string_view help;
  SettingKind kind;  // what the configuration file must hold
  // Checks the text and stores it. The error says what would have been right, without naming the setting.
  Result<void> (*apply)(Options& options, std::string_view text);
  std::string_view choices = {};  // the values there are, separated by commas; empty: any. For completion
};

std::span<const Setting> Settings();
std::string EnvironmentName(const Setting& setting);
std::string ConfigKey(const Setting& setting);
// Null if there is none of that name.
const Setting* FindSetting(std::string_view name);

}  // namespace reprise
