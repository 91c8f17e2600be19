#include "client/joined_server.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/posix_file_system.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMostSettings = 16 << 20;
constexpr std::size_t kMostNamed = 6;

// "approval_mode is approve_all there and ask here"
std::string Difference(const std::string& key, const std::string& there, const std::string& here) {
  const auto digest = [](std::string_view value) { return value.find("sha256:"); };
  if (key == "configuration") {
    const std::string its = there.substr(0, digest(there)), ours = here.substr(0, digest(here));
    if (its == ours) return "its configuration " + its + "was changed after the server started";
    return "its configuration is " + (its.empty() ? "none " : its) + "and here " + (ours.empty() ? "none" : ours);
  }
  if (digest(there) == 0 || digest(here) == 0) return key + " is another";
  return key + " is " + (there.empty() ? "none" : there) + " there and " + (here.empty() ? "none" : here) + " here";
}

}  // namespace

TurnSettings NotedSettings(const Options& options) {
  TurnSettings settings;
  const auto text = Disk().ReadFile(SettingsFileOf(options), kMostSettings);
  const auto noted = text ? ParseJson(*text) : Fail(text.error());
  if (!noted || !noted->is_object()) return settings;
  for (const auto& [key, value] : noted->items()) settings[key] = value.is_string() ? value.get<std::string>() : "";
  return settings;
}

Error Differs(const RunningServer& server, const TurnSettings& wanted, const Options& options) {
  std::vector<std::string> differences;
  if (auto theirs = NotedSettings(options); !theirs.empty()) {
    for (const auto& [key, value] : wanted) theirs.try_emplace(key);
    // What people ask about first.
    std::vector<std::string> keys = {"workspace", "approval_mode", "model", "configuration"};
    for (const auto& [key, value] : theirs) keys.push_back(key);
    for (const std::string& key : keys) {
      const auto there = theirs.extract(key);
      if (there.empty()) continue;
      const auto here = wanted.find(key);
      const std::string ours = here == wanted.end() ? "" : here->second;
      if (there.mapped() != ours) differences.push_back(Difference(key, there.mapped(), ours));
    }
  }
  std::string what = differences.empty() ? "it does not say with which" : "";
  for (std::size_t i = 0; i < std::min(kMostNamed, differences.size()); ++i)
    what += (i == 0 ? "" : "; ") + differences[i];
  if (differences.size() > kMostNamed) what += "; and " + std::to_string(differences.size() - kMostNamed) + " more";
  return Refused(Reason::kOtherSettings, "a server of these chats runs already, with other settings: " + what + ". " +
                 (server.pid.empty() ? "Leave its clients" : "Leave its clients or stop it (kill " + server.pid + ")") +
                 ", or take other chats (--data-dir DIR), or work with it as it is (--url " + server.url + ")");
}

}  // namespace reprise
