#include "cli/hook_files.h"

#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/path.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as many as Linux follows

// What a path leads to.
struct Found {
  enum class Kind { kNothing, kFile, kDirectory };
  Kind kind = Kind::kNothing;
  fs::path path;  // without symbolic links; where nothing was found: as far as it was followed
  bool in_workspace = false;
};

// Follows `path`, which is absolute, as the kernel would. An error says what could be replaced on the way.
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
        if (auto followed = FollowLink(); !followed) return Fail(followed.error());
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

// The words of one command.
class CommandFiles {
 public:
  CommandFiles(const std::vector<std::string>& command, const fs::path& workspace)
      : command_(command), workspace_(workspace) {}

  // An error's message is about `word()`.
  Result<std::vector<std::string>> Find() {
    // The program is run by env: words before it may set variables.
    bool before_program = true;
    for (const std::string& word : command_) {
      word_ = word;
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos) {
        if (before_program && word.starts_with("PATH=")) search_path_ = word.substr(equals + 1);
        if (auto added = Add(word, /*required=*/false); !added) return Fail(added.error());
        const std::string value = word.substr(equals + 1);
        if (auto added = Add(value, NamesFile(word) && NamesFile(value)); !added) return Fail(added.error());
      } else if (before_program && word.find('/') == std::string::npos) {
        if (auto added = AddFromSearchPath(word); !added) return Fail(added.error());
      } else {
        const bool option = word.starts_with('-') && !before_program;
        if (auto added = Add(word, before_program || (!option && NamesFile(word))); !added) return Fail(added.error());
      }
      before_program = before_program && equals != std::string::npos;
    }
    return std::move(files_);
  }

  const std::string& word() const { return word_; }

 private:
  static bool NamesFile(std::string_view word) {
    return word.find('/') != std::string_view::npos && word.find("://") == std::string_view::npos &&
           word.find_first_of(" \t\n\r") == std::string_view::npos;
  }

  Result<void> Add(const std::string& word, bool required) {
    if (word.empty()) return {};
    auto found = PathWalk(workspace_ / word, workspace_).Follow();
    if (!found) return Fail(found.error());
    if (!found->in_workspace) return {};
    if (found->kind == Found::Kind::kNothing && required) {
      return Fail(ErrorCode::kInvalidArgument, "is not there: whoever writes to the workspace could put it there");
    }
    if (found->kind == Found::Kind::kFile) files_.push_back(found->path.string());
    return {};
  }

  Result<void> AddFromSearchPath(const std::string& program) {
    for (const fs::path& each : SearchFolders(search_path_)) {
      const fs::path folder = workspace_ / each;
      if (::access((folder / program).c_str(), X_OK) != 0) continue;
      if (LeadsInto(folder, workspace_)) {
        return Fail(ErrorCode::kInvalidArgument,
                    "is found in the workspace, by way of PATH (in " + folder.string() + "): give its path");
      }
      return Add((folder / program).string(), /*required=*/true);
    }
    return {};
  }

  static std::string InheritedSearchPath() {
    const char* path = std::getenv("PATH");
    return path == nullptr ? std::string() : path;
  }

  const std::vector<std::string>& command_;
  const fs::path& workspace_;
  std::string search_path_ = InheritedSearchPath();
  std::string word_;
  std::vector<std::string> files_;
};

}  // namespace

Result<std::vector<std::string>> FilesOfHooks(const Options& options) {
  std::error_code failed;
  const fs::path workspace = fs::canonical(options.workspace, failed);
  if (failed) return {};  // told elsewhere
  std::vector<std::string> all;
  for (std::size_t i = 0; i < options.hooks.size(); ++i) {
    CommandFiles command(options.hooks[i].command, workspace);
    auto files = command.Find();
    if (!files) {
      return Fail(files.error().code, "hooks[" + std::to_string(i) + "].command: " + command.word() + " " +
                                          files.error().message +
                                          "; what hooks run must be safe from the agent's tools");
    }
    all.insert(all.end(), files->begin(), files->end());
  }
  return all;
}

}  // namespace reprise
