#include "mcp/server_command.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {
namespace {

constexpr std::array<const char*, 10> kInherited = {"PATH", "HOME",   "USER", "LOGNAME", "SHELL",
                                                    "LANG", "LC_ALL", "TERM", "TZ",      "TMPDIR"};
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

bool IsProgram(const std::string& path) {
  std::error_code failed;
  return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, failed);
}

// Empty if there is none.
std::string FindProgram(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) {
    std::error_code failed;
    const std::string program = std::filesystem::absolute(name, failed).string();
    return !failed && IsProgram(program) ? program : "";
  }
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string directory(path.substr(0, colon));
    // An empty or relative entry means the current directory: nothing to take programs from.
    if (directory.starts_with('/') && IsProgram(directory + "/" + name)) return directory + "/" + name;
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
  }
  return "";
}

}  // namespace

Result<Command> ServerCommand(const McpServerOptions& options, const std::string& directory) {
  std::map<std::string, std::string> environment = {{"PATH", std::string(kDefaultPath)}};
  for (const char* name : kInherited) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  for (const auto& [name, value] : options.environment) environment[name] = value;
  const std::string program = FindProgram(options.command, environment["PATH"]);
  if (program.empty()) return Fail(ErrorCode::kNotFound, "there is no program " + options.command);
  Command command{.argv = {program}, .environment = {}, .directory = directory};
  command.argv.insert(command.argv.end(), options.arguments.begin(), options.arguments.end());
  for (const auto& [name, value] : environment) command.environment.push_back(name + "=" + value);
  return command;
}

}  // namespace reprise
