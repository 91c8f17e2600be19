#include "tools/files/run_by_others.h"

#include <dirent.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/path.h"
#include "base/text.h"

namespace reprise {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 20'000;  // to look at for one command
constexpr std::size_t kMostFound = 500;
constexpr int kDeepest = 5;  // folders below the workspace
constexpr std::string_view kGit = ".git";
constexpr std::string_view kAllBelow = "**";
constexpr std::string_view kStars = "*";  // stands for all first names with stars

std::vector<std::string> LowerNamesOf(std::string_view path) { return NamesOnPath(LowerCase(path)); }

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool HasStars(std::string_view pattern) { return pattern.find_first_of("*?[\\") != std::string::npos; }

bool FitsName(const std::string& pattern, const std::string& name) {
  // Most patterns are plain names, and a command may have thousands of files compared with each.
  const std::size_t first = pattern.find_first_of("*?[\\");
  if (first == std::string::npos) return pattern == name;
  const std::size_t last = pattern.find_last_of("*?]\\");
  if (!name.starts_with(std::string_view(pattern).substr(0, first))) return false;
  if (!name.ends_with(std::string_view(pattern).substr(last + 1))) return false;
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// A row with its pattern split.
struct Row {
  std::vector<std::string> names;  // without the `**`
  bool is_below = false;
  bool has_stars = false;  // elsewhere than in the `**`
  const RunByOthers* row = nullptr;
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> made;
    for (const RunByOthers& each : RunByOthers::Table()) {
      Row row{.names = LowerNamesOf(each.pattern), .row = &each};
      row.is_below = row.names.back() == kAllBelow;
      if (row.is_below) row.names.pop_back();
      row.has_stars = std::ranges::any_of(row.names, HasStars);
      made.push_back(std::move(row));
    }
    return made;
  }();
  return rows;
}

// The rows whose first name fits, which is in lower case.
std::vector<const Row*> RowsFor(const std::string& name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, std::vector<const Row*>> made;
    for (const Row& row : Rows()) {
      const std::string_view first = row.names.front();
      made[HasStars(first) ? kStars : first].push_back(&row);
    }
    return made;
  }();
  std::vector<const Row*> fitting;
  for (const Row* const row : by_name.at(kStars)) {
    if (FitsName(row->names.front(), name)) fitting.push_back(row);
  }
  if (const auto plain = by_name.find(name); plain != by_name.end() && name != kStars) {
    fitting.insert(fitting.end(), plain->second.begin(), plain->second.end());
  }
  return fitting;
}

// The number of the row's leading names that match from `at` on.
std::size_t Common(const Row& row, const std::vector<std::string>& names, std::size_t at) {
  std::size_t count = 0;
  while (count < row.names.size() && at + count < names.size() && FitsName(row.names[count], names[at + count])) {
    ++count;
  }
  return count;
}

// Whether a row may begin at this name of a path.
bool MayBegin(const Row& row, std::size_t at, std::string_view home, std::size_t home_names,
              const std::vector<std::string>& names) {
  if (!row.row->only_in_home) return true;
  if (home.empty() || at != home_names) return false;
  const std::vector<std::string> before = LowerNamesOf(home);
  return std::equal(before.begin(), before.end(), names.begin());
}

std::size_t GitAt(const std::vector<std::string>& names) {
  return static_cast<std::size_t>(std::ranges::find(names, kGit) - names.begin());
}

// The entries of a git folder that git obeys, wherever the folder is.
constexpr std::array<std::string_view, 6> kGitObeys = {"config",          "config.worktree", "hooks",
                                                       "info/attributes", "commondir",       "gitdir"};
constexpr std::array<std::string_view, 5> kGitData = {"objects", "refs", "logs", "lfs", "rr-cache"};

void AddGitFolder(const fs::path& folder, FoundRunByOthers& found) {
  std::error_code error;
  for (const std::string_view name : kGitObeys) {
    const fs::path path = folder / name;
    if (IsThere(path)) {
      found.there.push_back(path.string());
    } else if (name != "gitdir") {
      found.missing.push_back(path.string());
    }
  }
  for (const char* const below : {"modules", "worktrees"}) {
    std::size_t looked_at = 0;
    for (auto at = fs::recursive_directory_iterator(folder / below, error);
         !error && at != fs::recursive_directory_iterator() && ++looked_at < kMostEntries; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (IsOneOf(name, {"objects", "refs", "logs"})) at.disable_recursion_pending();
      if (!IsOneOf(name, {"config", "config.worktree", "hooks", "commondir", "gitdir"})) continue;
      found.there.push_back(at->path().string());
      if (name == "hooks") at.disable_recursion_pending();
    }
  }
}

}  // namespace

const std::vector<RunByOthers>& RunByOthers::Table() {
  static const std::vector<RunByOthers> table = {
      {".gitmodules", "git"},
      {".gitattributes", "git"},
      {".gitconfig", "git"},
      {".hg/hgrc", "hg"},
      {".jj/repo/config.toml", "jj"},
      {".husky/**", "git (hooks)"},
      {".githooks/**", "git (hooks)"},
      {".pre-commit-config.yaml", "pre-commit"},
      {"lefthook.yml", "lefthook"},
      {".lefthook.yml", "lefthook"},
      {".envrc", "direnv"},
      {".autoenv", "autoenv"},
      {".autoenv.zsh", "autoenv"},
      {"mise.toml", "mise"},
      {".mise.toml", "mise"},
      {".mise/**", "mise"},
      {".vscode/**", "the editor (VS Code)"},
      {"*.code-workspace", "the editor (VS Code)"},
      {".devcontainer/**", "the editor (VS Code)"},
      {".devcontainer.json", "the editor (VS Code)"},
      {".idea/**", "the editor (JetBrains)"},
      {".run/**", "the editor (JetBrains)"},
      {".zed/**", "the editor (Zed)"},
      {".fleet/**", "the editor (Fleet)"},
      {"*.sublime-project", "the editor (Sublime Text)"},
      {".dir-locals.el", "the editor (Emacs)"},
      {".exrc", "the editor (Vim)"},
      {".vimrc", "the editor (Vim)"},
      {".nvimrc", "the editor (Vim)"},
      {".nvim.lua", "the editor (Vim)"},
      {".lvimrc", "the editor (Vim)"},
      {".cursor/**", "an agent"},
      {".claude/**", "an agent"},
      {".codex/**", "an agent"},
      {".gemini/**", "an agent"},
      {".mcp.json", "an agent"},
      {".npmrc", "npm"},
      {".pnpmfile.cjs", "pnpm"},
      {".yarnrc", "yarn"},
      {".yarnrc.yml", "yarn"},
      {".yarn/releases/**", "yarn"},
      {".yarn/plugins/**", "yarn"},
      {".cargo/config", "cargo"},
      {".cargo/config.toml", "cargo"},
      {".bazelrc", "bazel"},
      {".gdbinit", "gdb"},
      {".lldbinit", "lldb"},
      {".profile", "the shell", true},
      {".bash*", "the shell", true},
      {".zsh*", "the shell", true},
      {".zprofile", "the shell", true},
      {".zlog*", "the shell", true},
      {".kshrc", "the shell", true},
      {".cshrc", "the shell", true},
      {".tcshrc", "the shell", true},
      {".login", "the shell", true},
      {".inputrc", "the shell", true},
      {".oh-my-zsh/**", "the shell", true},
      {".config/fish/**", "the shell", true},
      {".config/git/**", "git", true},
      {".config/direnv/**", "direnv", true},
      {".config/mise/**", "mise", true},
      {".config/systemd/**", "systemd", true},
      {".config/environment.d/**", "systemd", true},
      {".config/autostart/**", "the desktop", true},
      {".local/share/applications/**", "the desktop", true},
      {".local/share/systemd/**", "systemd", true},
      {".xprofile", "the desktop", true},
      {".xsession*", "the desktop", true},
      {".xinitrc", "the desktop", true},
      {".pam_environment", "the log-in", true},
      {"bin/**", "the shell, by PATH", true},
      {".local/bin/**", "the shell, by PATH", true},
      {".cargo/bin/**", "the shell, by PATH", true},
      {"go/bin/**", "the shell, by PATH", true},
      {".local/lib/**", "python", true},
      {".config/pip/**", "pip", true},
      {".pythonrc*", "python", true},
      {".vim/**", "the editor (Vim)", true},
      {".config/nvim/**", "the editor (Vim)", true},
      {".emacs*", "the editor (Emacs)", true},
      {".emacs.d/**", "the editor (Emacs)", true},
      {".config/emacs/**", "the editor (Emacs)", true},
      {".config/Code/User/**", "the editor (VS Code)", true},
      {".vscode-server/**", "the editor (VS Code)", true},
      {".tmux.conf", "tmux", true},
      {".screenrc", "screen", true},
  };
  return table;
}

bool IsGitsOwnData(std::string_view path) {
  const std::vector<std::string> names = LowerNamesOf(path);
  if (names.empty()) return true;
  const auto is_data = [](const std::string& name) { return std::ranges::find(kGitData, name) != kGitData.end(); };
  if (is_data(names.front())) return true;
  const std::string& last = names.back();
  if (names.front() == "modules" || names.front() == "worktrees") {
    // A submodule may have any name.
    const bool is_obeyed = IsOneOf(last, {"config", "config.worktree", "commondir", "gitdir", "attributes"}) ||
                           std::find(names.begin() + 1, names.end(), "hooks") != names.end();
    if (is_obeyed) return false;
    if (std::any_of(names.begin() + 1, names.end(), is_data)) return true;
  } else if (names.size() > 1) {
    return last.ends_with(".sample");
  }
  return last.starts_with("index") || last.starts_with("sharedindex.") || last.ends_with("head") ||
         last.ends_with(".lock") || last.ends_with(".sample") ||
         IsOneOf(last, {"packed-refs", "commit_editmsg", "merge_msg", "merge_mode", "merge_rr", "squash_msg",
                        "tag_editmsg", "auto_merge", "shallow", "gc.log", "gc.pid", "branches"});
}

std::string_view WhoRuns(std::string_view path, std::string_view home) {
  const std::vector<std::string> names = LowerNamesOf(path);
  if (const std::size_t git = GitAt(names); git < names.size()) {
    std::string below;
    for (std::size_t i = git + 1; i < names.size(); ++i) below += (below.empty() ? "" : "/") + names[i];
    return !below.empty() && IsGitsOwnData(below) ? std::string_view() : "git";
  }
  const std::size_t home_names = LowerNamesOf(home).size();
  for (const Row& row : Rows()) {
    for (std::size_t at = 0; at < names.size(); ++at) {
      if (!MayBegin(row, at, home, home_names, names) || Common(row, names, at) < row.names.size()) continue;
      const std::size_t end = at + row.names.size();
      if (row.is_below ? end < names.size() : end == names.size()) return row.row->who;
    }
  }
  return {};
}

bool MayHoldWhatOthersRun(std::string_view path, std::string_view home) {
  const std::vector<std::string> names = LowerNamesOf(path);
  if (GitAt(names) < names.size()) return true;
  const std::size_t home_names = LowerNamesOf(home).size();
  for (const Row& row : Rows()) {
    for (std::size_t at = 0; at < names.size(); ++at) {
      if (!MayBegin(row, at, home, home_names, names)) continue;
      const std::size_t common = Common(row, names, at);
      const bool goes_on = at + common == names.size() && common > 0 && (common < row.names.size() || row.is_below);
      if (goes_on || (row.is_below && common == row.names.size())) return true;
    }
  }
  return false;
}

namespace {

std::string PathBelow(const std::string& folder, std::string_view name) {
  std::string path = folder;
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

// Searches a folder, and the nearest folders below it first. Runs before each command, over thousands of entries.
class RunByOthersSearch {
 public:
  RunByOthersSearch(const std::string& folder, const std::string& home, const std::vector<std::string>& closed)
      : folder_(folder), home_(home) {
    for (const std::string& path : closed) {
      if (path.starts_with(folder)) closed_.insert(path);
    }
  }

  FoundRunByOthers Run() {
    left_.push_back({.path = folder_, .is_home = folder_ == home_});
    while (!left_.empty() && looked_at_ < kMostEntries && found_.there.size() < kMostFound) {
      const Left at = std::move(left_.front());
      left_.pop_front();
      LookInto(at);
    }
    if (!IsThere(PathBelow(folder_, kGit))) found_.missing.push_back(PathBelow(folder_, kGit));
    return std::move(found_);
  }

 private:
  struct Left {
    std::string path;
    int depth = 0;
    bool is_home = false;
  };

  void LookInto(const Left& at) {
    if (fs::path(at.path).filename() == kGit) return AddGitFolder(at.path, found_);
    if (at.depth == 0) {  // the others are found below by their first name
      for (const Row& row : Rows()) {
        if (!row.has_stars && (!row.row->only_in_home || at.is_home)) Add(at, row);
      }
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(at.path.c_str()), &::closedir);
    bool may_be_git = folder == nullptr, is_cut = false;
    while (const dirent* const entry = folder == nullptr ? nullptr : ::readdir(folder.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if ((is_cut = ++looked_at_ >= kMostEntries)) break;
      may_be_git = LookAt(at, *entry) || may_be_git;
    }
    std::error_code error;
    if ((may_be_git || is_cut) && fs::is_regular_file(PathBelow(at.path, "HEAD"), error) &&
        fs::is_directory(PathBelow(at.path, "objects"), error)) {
      AddGitFolder(at.path, found_);
    }
  }

  // Whether it tells that the folder may be one of git's.
  bool LookAt(const Left& at, const dirent& entry) {
    const std::string name = entry.d_name, lower = LowerCase(name);
    if (lower == kGit) {
      // git obeys a link, or a file that names the folder, as a whole.
      if (IsFolder(at, entry)) {
        AddGitFolder(PathBelow(at.path, name), found_);
      } else {
        found_.there.push_back(PathBelow(at.path, name));
      }
      return false;
    }
    bool is_taken = false;
    for (const Row* const row : RowsFor(lower)) {
      if (row->row->only_in_home && !at.is_home) continue;
      if (at.depth > 0 || row->has_stars) {
        if (row->names.size() == 1) {
          found_.there.push_back(PathBelow(at.path, name));
        } else {
          Add(at, *row);
        }
      }
      is_taken = is_taken || (row->names.size() == 1 && row->is_below);
    }
    if (!is_taken && at.depth < kDeepest && name != "node_modules" && IsFolder(at, entry)) {
      std::string path = PathBelow(at.path, name);
      const bool is_home = path == home_;
      if (!closed_.contains(path)) left_.push_back({std::move(path), at.depth + 1, is_home});
    }
    return lower == "head";
  }

  void Add(const Left& at, const Row& row) {
    const std::string_view pattern = row.row->pattern;
    std::string path =
        PathBelow(at.path, pattern.substr(0, pattern.size() - (row.is_below ? kAllBelow.size() + 1 : 0)));
    if (IsThere(path)) {
      found_.there.push_back(std::move(path));
    } else if (at.depth == 0) {
      found_.missing.push_back(std::move(path));
    }
  }

  // False for a link.
  static bool IsFolder(const Left& at, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
    std::error_code error;
    return fs::is_directory(fs::symlink_status(PathBelow(at.path, entry.d_name), error));
  }

  const std::string folder_;
  const std::string home_;
  std::set<std::string> closed_;
  std::deque<Left> left_;
  std::size_t looked_at_ = 0;
  FoundRunByOthers found_;
};

}  // namespace

FoundRunByOthers FindRunByOthers(const std::string& folder, const std::string& home,
                                 const std::vector<std::string>& closed) {
  return RunByOthersSearch(folder, home, closed).Run();
}

std::string HomeIn(const std::string& workspace, std::string_view home) {
  if (home.empty() || home.front() != '/') return {};
  const fs::path real = Resolved(fs::path(home));
  if (!LiesBeneath(real, workspace)) return {};
  return real.lexically_relative(workspace).string();
}

}  // namespace reprise
