#include "client/joined_server.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "app/settings.h"
#include "base/path.h"
#include "base/terminal_text.h"
#include "store/file_names.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

bool IsGiven(std::string_view name, const Flags& flags, const Environment& environment) {
  return flags.contains(std::string(name)) || environment(EnvironmentName(*FindSetting(name))).has_value();
}

Error Differs(const std::string& what) {
  return Error{.code = ErrorCode::kConflict,
               .reason = "other_settings",
               .message = "a server of these chats runs already, and " + what +
                          "; leave its clients or stop it, or take other chats (--data-dir DIR)"};
}

// The server has written its lock file when it started.
bool HasChangedSince(const std::string& config_file, const std::string& lock_file) {
  std::error_code unknown;
  if (config_file.empty()) return false;
  const auto changed = fs::last_write_time(config_file, unknown), started = fs::last_write_time(lock_file, unknown);
  return !unknown && changed > started;
}

}  // namespace

Result<std::vector<std::string>> CompareWithServer(ServerClient& server, const Options& options, const Flags& flags,
                                                   const Environment& environment) {
  std::vector<std::string> notes;
  const auto said = server.Call("GET", "/tools");
  if (!said) return notes;
  const Options usual;
  const std::string place = TextMember(*said, "workspace"), wanted = Resolved(options.workspace).string();
  if (!place.empty() && place != wanted) {
    const bool insists = options.workspace != usual.workspace || IsGiven("workspace", flags, environment);
    if (insists) return Fail(Differs("works in " + place + ", not in " + wanted));
    notes.push_back("The server runs already, and works in " + place + " (this is " + wanted + ").");
  }
  const std::string mode = TextMember(*said, "approval_mode");
  Options other;
  const bool is_known = FindSetting("approval-mode")->apply(other, mode).has_value();
  if (is_known && other.approval_mode != options.approval_mode) {
    const bool insists = options.approval_mode != usual.approval_mode || IsGiven("approval-mode", flags, environment);
    if (insists) return Fail(Differs("its approval mode is " + mode));
    notes.push_back("The server runs already, and its approval mode is " + mode + ".");
  }
  if (HasChangedSince(options.config_file, LockFile(options.data_dir))) {
    notes.push_back("The server has read " + options.config_file +
                    " before it was changed, and reads it again when it starts.");
  }
  return notes;
}

}  // namespace reprise
