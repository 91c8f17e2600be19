#include "app/program_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/path.h"
#include "base/try.h"
#include "mcp/server_launch.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as many as Linux follows

// The target of a path.
struct Found {
  enum class Kind { kNothing, kFile, kDirectory };
  Kind kind = Kind::kNothing;
  fs::path path;  // without symbolic links; if nothing was found, as far as it was followed
  bool in_workspace = false;
};

// Follows `path`, which is absolute, like the kernel. An error names a part that could be replaced.
class PathWalk {
 public:
  PathWalk(const fs::path& path, const fs::path& workspace) : workspace_(workspace), left_(path.begin(), path.end()) {}

  Result<Found> Follow() {
    while (!left_.empty()) {
      const fs::path name = std::move(left_.front());
      left_.pop_front();
      if (name.empty() || name == "." || name == "/") continue;
      if (name == "..") {
        if (InWorkspace()) return Fail(ErrorCode::kInvalidArgument, "leads through \"..\" in the workspace");
        at_ = at_.parent_path();
        continue;
      }
      at_ /= name;
      std::error_code failed;
      const fs::file_status status = fs::symlink_status(at_, failed);
      if (failed || !fs::exists(status)) return Found{.path = at_, .in_workspace = InWorkspace()};
      if (fs::is_symlink(status)) {
        TRY(FollowLink());
      }
    }
    return AtTheEnd();
  }

 private:
  bool InWorkspace() const { return at_ != workspace_ && LiesBeneath(at_, workspace_); }

  Result<void> FollowLink() {
    if (InWorkspace()) return Fail(ErrorCode::kInvalidArgument, "is or leads through a symbolic link in the workspace");
    std::error_code failed;
    const fs::path target = fs::read_symlink(at_, failed);
    if (failed || ++links_ > kMaxLinks) return Fail(ErrorCode::kInvalidArgument, "has too many symbolic links");
    at_ = target.is_absolute() ? fs::path("/") : at_.parent_path();
    left_.insert(left_.begin(), target.begin(), target.end());
    return {};
  }

  Result<Found> AtTheEnd() const {
    std::error_code failed;
    Found found{.kind = Found::Kind::kFile, .path = at_, .in_workspace = InWorkspace()};
    if (fs::is_directory(at_, failed)) {
      found.kind = Found::Kind::kDirectory;
    } else if (found.in_workspace && fs::hard_link_count(at_, failed) > 1) {
      return Fail(ErrorCode::kInvalidArgument, "has further names (hard links), by which it could be changed");
    }
    return found;
  }

  const fs::path& workspace_;
  fs::path at_ = "/";
  std::deque<fs::path> left_;
  int links_ = 0;
};

// One command and the folders it is relative to.
struct ProgramWords {
  std::vector<std::string> words;
  fs::path program_directory, directory;  // for the first word, and for the others
  std::string search_path{};
  bool takes_variables = false;  // run by env: words before the program may set variables
};

// The files that one command names.
class CommandFiles {
 public:
  CommandFiles(ProgramWords command, const fs::path& workspace) : command_(std::move(command)), workspace_(workspace) {}

  // An error's message is about `word()`.
  Result<std::vector<std::string>> Find() {
    bool before_program = true;
    for (const std::string& word : command_.words) {
      word_ = word;
      const bool variable = before_program && command_.takes_variables && word.find('=') != std::string::npos;
      if (variable && word.starts_with("PATH=")) command_.search_path = word.substr(word.find('=') + 1);
      TRY(before_program && !variable ? AddProgram(word) : AddArgument(word));
      Note(word);
      before_program = variable;
    }
    return std::move(files_);
  }

  const std::string& word() const { return word_; }

 private:
  static bool NamesFile(std::string_view word) {
    return word.find('/') != std::string_view::npos && word.find("://") == std::string_view::npos &&
           word.find_first_of(" \t\n\r") == std::string_view::npos;
  }

  // Updates the meaning of the next word.
  void Note(const std::string& word) {
    folder_follows_ = TakesFolder(word);
    if (IsInterpreter(word)) {  // also after env, nice and the like
      before_script_ = true;
      runs_folders_ = RunsFolders(word);
      return;
    }
    if (word == "-m" || word == "-c") runs_folders_ = false;
    if (!word.starts_with('-')) before_script_ = false;
  }

  // Whether this is an option of a runner that takes the folder to run in or from.
  bool TakesFolder(std::string_view option) const {
    constexpr std::array<std::string_view, 8> kRunners = {"npm", "pnpm", "yarn", "make", "env", "uv", "bun", "deno"};
    constexpr std::array<std::string_view, 8> kOptions = {"--prefix", "--directory", "-C",     "--chdir",
                                                          "--cwd",    "--project",   "--from", "--dir"};
    const std::string program = fs::path(command_.words.front()).filename().string();
    const bool runner = std::ranges::find(kRunners, program) != kRunners.end();
    return (runner || before_script_) && std::ranges::find(kOptions, option) != kOptions.end();
  }

  // The folder from which `word` runs something; empty if none.
  std::string ProgramFolder(const std::string& word) const {
    const std::size_t equals = word.find('=');
    if (folder_follows_) return word;
    if (equals != std::string::npos && TakesFolder(word.substr(0, equals))) return word.substr(equals + 1);
    return before_script_ && runs_folders_ && !word.starts_with('-') ? word : "";
  }

  Result<void> AddProgram(const std::string& word) {
    if (word.find('/') == std::string::npos) return AddFromSearchPath(word);
    return Add(command_.program_directory / word, /*required=*/true);
  }

  Result<void> AddArgument(const std::string& word) {
    const fs::path& directory = command_.directory;
    std::error_code failed;
    if (const std::string folder = ProgramFolder(word);
        !folder.empty() && fs::is_directory(directory / folder, failed) && LeadsInto(directory / folder, workspace_)) {
      return Fail(ErrorCode::kInvalidArgument,
                  "is a folder of programs in the workspace: name a file, or a folder elsewhere");
    }
    if (word.empty() || (!before_script_ && IsDataFile(word))) return {};
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return Add(directory / word, !word.starts_with('-') && NamesFile(word));
    TRY(Add(directory / word, /*required=*/false));
    const std::string value = word.substr(equals + 1);
    if (value.empty()) return {};
    return Add(directory / value, NamesFile(word) && NamesFile(value));
  }

  Result<void> Add(const fs::path& path, bool required) {
    auto found = TRY(PathWalk(path, workspace_).Follow());
    if (!found.in_workspace) return {};
    if (found.kind == Found::Kind::kNothing && required) {
      return Fail(ErrorCode::kInvalidArgument, "is not there: whoever writes to the workspace could put it there");
    }
    if (found.kind == Found::Kind::kFile) files_.push_back(found.path.string());
    return {};
  }

  Result<void> AddFromSearchPath(const std::string& program) {
    for (const fs::path& each : SearchFolders(command_.search_path)) {
      const fs::path folder = workspace_ / each;
      if (::access((folder / program).c_str(), X_OK) != 0) continue;
      if (LeadsInto(folder, workspace_)) {
        return Fail(ErrorCode::kInvalidArgument,
                    "is found in the workspace, by way of PATH (in " + folder.string() + "): give its path");
      }
      return Add(folder / program, /*required=*/true);
    }
    return {};
  }

  ProgramWords command_;
  const fs::path& workspace_;
  std::string word_;
  bool before_script_ = false, runs_folders_ = false, folder_follows_ = false;
  std::vector<std::string> files_;
};

std::string InheritedSearchPath() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? std::string() : path;
}

// Variables that tell programs where to find code. Other variables may name workspace files, which are data.
bool LeadsToCode(std::string_view name) {
  constexpr std::array<std::string_view, 20> kNames = {"PATH",       "NODE_PATH",     "NODE_OPTIONS",      "PYTHONPATH",
                                                       "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE",    "PERL5LIB",
                                                       "PERL5OPT",   "RUBYLIB",       "RUBYOPT",           "GEM_PATH",
                                                       "GEM_HOME",   "CLASSPATH",     "JAVA_TOOL_OPTIONS", "BASH_ENV",
                                                       "ENV",        "DENO_DIR",      "BUN_OPTIONS",       "PHPRC"};
  return name.starts_with("LD_") || std::ranges::find(kNames, name) != kNames.end();
}

bool NamesWorkspace(std::string_view value, const fs::path& workspace) {
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(": =,;\t\"'"), value.size());
    const fs::path part(value.substr(0, end));
    if (part.is_absolute() && LeadsInto(part, workspace)) return true;
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return false;
}

Result<void> CheckSurroundings(const McpServerOptions& server, const std::string& place, const fs::path& workspace) {
  if (!server.cwd.empty() && LeadsInto(server.cwd, workspace)) {
    return Fail(ErrorCode::kInvalidArgument,
                place + ".cwd: " + server.cwd +
                    " lies in the workspace, where the agent's tools could put what the server then runs; name "
                    "another folder, or none");
  }
  for (const auto& [name, value] : server.environment) {
    if (!LeadsToCode(name) || !NamesWorkspace(value, workspace)) continue;
    return Fail(ErrorCode::kInvalidArgument,
                place + ".env." + name +
                    " leads into the workspace, where the agent's tools could put what the server then runs");
  }
  return {};
}

ProgramWords WordsOf(const McpServerOptions& server, const fs::path& workspace) {
  std::error_code failed;
  ProgramWords command{.words = {server.command},
                       .program_directory = fs::current_path(failed),
                       .directory = server.cwd.empty() ? fs::path("/") : fs::path(server.cwd)};
  command.words.insert(command.words.end(), server.arguments.begin(), server.arguments.end());
  std::string path = InheritedSearchPath();
  for (const auto& [name, value] : server.environment) {
    if (name == "PATH") path = value;
  }
  command.search_path = SearchPathOutside(path, workspace);
  return command;
}

Result<void> AddFiles(ProgramWords words, const std::string& place, const fs::path& workspace,
                      std::vector<std::string>& all) {
  CommandFiles command(std::move(words), workspace);
  auto files = command.Find();
  if (!files) {
    return Fail(files.error().code, place + ".command: " + command.word() + " " + files.error().message +
                                        "; what is run must be safe from the agent's tools");
  }
  all.insert(all.end(), files->begin(), files->end());
  return {};
}

}  // namespace

Result<std::vector<std::string>> FilesOfPrograms(const Options& options) {
  std::error_code failed;
  const fs::path workspace = fs::canonical(options.workspace, failed);
  if (failed) return {};  // reported elsewhere
  std::vector<std::string> all;
  for (std::size_t i = 0; i < options.hooks.size(); ++i) {
    ProgramWords words{.words = options.hooks[i].command,
                       .program_directory = workspace,
                       .directory = workspace,
                       .search_path = InheritedSearchPath(),
                       .takes_variables = true};
    TRY(AddFiles(std::move(words), "hooks[" + std::to_string(i) + "]", workspace, all));
  }
  for (const McpServerOptions& server : options.mcp_servers) {
    if (server.command.empty()) continue;
    const std::string place = "mcpServers." + server.name;
    TRY(CheckSurroundings(server, place, workspace));
    TRY(AddFiles(WordsOf(server, workspace), place, workspace, all));
  }
  return all;
}

}  // namespace reprise
