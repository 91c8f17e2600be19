#include "tools/files/known_paths.h"

#include <fnmatch.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/path.h"
#include "base/text.h"

namespace reprise {

namespace {

// Below the home folder.
constexpr auto kInHome = std::to_array<std::string_view>(
    {// Keys and logins of the system
     ".ssh", ".gnupg", ".pki", ".password-store", ".netrc", "_netrc", ".Xauthority", ".ICEauthority", ".krb5",
     ".k5login", ".smbcredentials", ".vnc", ".wg", ".ecryptfs", ".Private", ".keychain", ".yubico", ".age", ".mutt",
     ".msmtprc", ".fetchmailrc", ".mbsyncrc", ".offlineimaprc", ".authinfo", ".authinfo.gpg", ".esmtprc",
     // Clouds and clusters
     ".aws", ".azure", ".kube", ".docker", ".oci", ".aliyun", ".bluemix", ".terraform.d", ".terraformrc", ".pulumi",
     ".vault-token", ".s3cfg", ".boto", ".mc", ".minikube", ".fly", ".databrickscfg", ".snowflake", ".snowsql",
     ".cloudflared", ".doctl", ".heroku", ".vercel", ".netlify", ".ansible/galaxy_token", ".chef", ".sentryclirc",
     // Languages and their registries
     ".git-credentials", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
     ".gem/credentials", ".bundle/config", ".composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml",
     ".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".sbt/.credentials", ".ivy2/.credentials", ".hex",
     ".condarc", ".kaggle", ".huggingface", ".cache/huggingface/token", ".streamlit/secrets.toml",
     // Databases
     ".pgpass", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".dbeaver", ".dbeaver4", ".local/share/DBeaverData",
     // Browsers, mail, messengers
     ".mozilla", ".thunderbird", ".opera", ".purple", ".irssi", ".weechat", ".zoom", ".electrum", ".bitcoin",
     ".ethereum", ".var/app", "snap",
     // Agents
     ".claude", ".claude.json", ".codex", ".gemini", ".aider.conf.yml", ".copilot", ".cursor", ".continue", ".goose",
     ".ollama/id_ed25519", ".openai", ".anthropic", ".railway", ".ngrok2", ".ngrok", ".vercel", ".wrangler",
     ".supabase",
     // Histories of what the user typed
     ".bash_history", ".zsh_history", ".zhistory", ".histfile", ".history", ".sh_history", ".ash_history",
     ".ksh_history", ".zsh_sessions", ".python_history", ".node_repl_history", ".irb_history", ".psql_history",
     ".mysql_history", ".mariadb_history", ".sqlite_history", ".rediscli_history", ".dbshell", ".mongo", ".lesshst",
     ".viminfo", ".gdb_history", ".wget-hsts"});

// Below ~/.config and $XDG_CONFIG_HOME.
constexpr auto kInConfig = std::to_array<std::string_view>({"reprise",
                                                            "gcloud",
                                                            "gh",
                                                            "glab-cli",
                                                            "hub",
                                                            "github-copilot",
                                                            "op",
                                                            "rclone",
                                                            "containers/auth.json",
                                                            "doctl",
                                                            "configstore",
                                                            "netlify",
                                                            "heroku",
                                                            "fly",
                                                            "stripe",
                                                            "sops",
                                                            "age",
                                                            "helm",
                                                            "argocd",
                                                            "hcloud",
                                                            "scw",
                                                            "linode-cli",
                                                            "vultr-cli",
                                                            "databricks",
                                                            "git/credentials",
                                                            "pip/pip.conf",
                                                            "pypoetry/auth.toml",
                                                            "composer/auth.json",
                                                            "uv",
                                                            "NuGet",
                                                            "chromium",
                                                            "google-chrome",
                                                            "google-chrome-beta",
                                                            "google-chrome-unstable",
                                                            "BraveSoftware",
                                                            "vivaldi",
                                                            "microsoft-edge",
                                                            "opera",
                                                            "Bitwarden",
                                                            "1Password",
                                                            "keepassxc",
                                                            "KeePass",
                                                            "Slack",
                                                            "discord",
                                                            "Signal",
                                                            "Element",
                                                            "evolution",
                                                            "goa-1.0",
                                                            "kwalletrc",
                                                            "Code/User/globalStorage",
                                                            "VSCodium/User/globalStorage",
                                                            "Cursor/User/globalStorage",
                                                            "JetBrains",
                                                            "claude",
                                                            "codex",
                                                            "goose",
                                                            "opencode",
                                                            "filezilla",
                                                            "remmina",
                                                            "rustdesk",
                                                            "AnyDesk",
                                                            "msmtp",
                                                            "neomutt",
                                                            "aerc",
                                                            "himalaya",
                                                            "syncthing",
                                                            "Yubico",
                                                            "solana",
                                                            "ngrok",
                                                            "railway",
                                                            "vercel",
                                                            "wrangler",
                                                            "supabase"});

// Below ~/.local/share and $XDG_DATA_HOME.
constexpr auto kInData =
    std::to_array<std::string_view>({"reprise", "keyrings", "kwalletd", "gnupg", "evolution", "fish/fish_history",
                                     "TelegramDesktop", "password-store", "opencode", "goose", "claude", "remmina",
                                     "containers/auth.json", "networkmanagement", "recently-used.xbel", "atuin"});

// Below ~/.local/state and $XDG_STATE_HOME.
constexpr auto kInState = std::to_array<std::string_view>(
    {"reprise", "python_history", "bash/history", "zsh/history", "lesshst", "syncthing"});

// nullopt if the folder cannot be read.
std::optional<std::set<std::string>> NamesIn(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return names;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    names.insert(at->path().filename().string());
  }
  if (error) return std::nullopt;
  return names;
}

void Append(const std::string& folder, std::span<const std::string_view> names, std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  if (!folder.starts_with('/')) return;  // the XDG specification says to ignore it
  std::error_code error;
  const fs::path known = fs::weakly_canonical(folder, error);
  const fs::path place = error ? fs::path(folder) : known;
  std::string above = place.string();
  while (above.ends_with('/')) above.pop_back();
  // Most of the names do not exist, so they cannot be links. Checking each one would take much of the start's time.
  const std::optional<std::set<std::string>> there = NamesIn(place);
  for (const std::string_view name : names) {
    std::string path = above;
    path.append("/").append(name);
    if (!there || there->contains(std::string(name.substr(0, name.find('/'))))) {
      if (const fs::path real = fs::weakly_canonical(path, error); !error) path = real.string();
    }
    paths.push_back(std::move(path));
  }
}

std::vector<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {};
  return {value};
}

}  // namespace

UserFolders FoldersOfThisUser() {
  UserFolders folders{.homes = Variable("HOME"),
                      .configs = Variable("XDG_CONFIG_HOME"),
                      .data = Variable("XDG_DATA_HOME"),
                      .states = Variable("XDG_STATE_HOME")};
  std::array<char, 16 * 1024> text;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &found) == 0 && found != nullptr) {
    const std::string home = found->pw_dir;
    const bool known = std::ranges::find(folders.homes, home) != folders.homes.end();
    if (!known && home.size() > 1) folders.homes.push_back(home);
  }
  return folders;
}

std::vector<std::string> SecretPaths(const UserFolders& folders) {
  std::vector<std::string> paths;
  for (const std::string& home : folders.homes) {
    Append(home, kInHome, paths);
    Append(home + "/.config", kInConfig, paths);
    Append(home + "/.local/share", kInData, paths);
    Append(home + "/.local/state", kInState, paths);
  }
  for (const std::string& folder : folders.configs) Append(folder, kInConfig, paths);
  for (const std::string& folder : folders.data) Append(folder, kInData, paths);
  for (const std::string& folder : folders.states) Append(folder, kInState, paths);
  return paths;
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 20'000;  // to look at for one command
constexpr std::size_t kMostFound = 500;
constexpr int kDeepest = 5;  // folders below the workspace
constexpr std::string_view kGit = ".git";
constexpr std::string_view kAllBelow = "**";

std::vector<std::string> LowerNamesOf(std::string_view path) { return NamesOnPath(LowerCase(path)); }

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool FitsName(const std::string& pattern, const std::string& name) {
  // Most patterns are plain names, and a command may have thousands of files compared with each.
  if (pattern.find_first_of("*?[\\") == std::string::npos) return pattern == name;
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// A row with its pattern split.
struct Row {
  std::vector<std::string> names;  // without the `**`
  bool is_below = false;
  const RunByOthers* row = nullptr;
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> made;
    for (const RunByOthers& each : RunByOthers::Table()) {
      Row row{.names = LowerNamesOf(each.pattern), .row = &each};
      row.is_below = row.names.back() == kAllBelow;
      if (row.is_below) row.names.pop_back();
      made.push_back(std::move(row));
    }
    return made;
  }();
  return rows;
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

FoundRunByOthers FindRunByOthers(const std::string& folder, const std::string& home,
                                 const std::vector<std::string>& closed) {
  FoundRunByOthers found;
  std::error_code error;
  struct Left {
    fs::path path;
    int depth;
  };
  std::deque<Left> left{{folder, 0}};
  std::size_t looked_at = 0;
  const auto add = [&](const fs::path& at, const Row& row) {
    const std::string_view pattern = row.row->pattern;
    const fs::path path = at / pattern.substr(0, pattern.size() - (row.is_below ? kAllBelow.size() + 1 : 0));
    if (IsThere(path)) {
      found.there.push_back(path.string());
    } else if (at == folder) {
      found.missing.push_back(path.string());
    }
  };
  while (!left.empty() && looked_at < kMostEntries && found.there.size() < kMostFound) {
    const auto [at, depth] = std::move(left.front());
    left.pop_front();
    const bool is_git = at.filename() == kGit;
    if (is_git || (fs::is_regular_file(at / "HEAD", error) && fs::is_directory(at / "objects", error))) {
      AddGitFolder(at, found);
      if (is_git) continue;
    }
    for (const Row& row : Rows()) {
      const bool has_stars = row.row->pattern.find_first_of("*?") < row.row->pattern.size() - (row.is_below ? 2 : 0);
      if (has_stars || (row.row->only_in_home && at != home)) continue;
      if (depth == 0) add(at, row);  // the others are found below by their first name
    }
    for (auto entry = fs::directory_iterator(at, fs::directory_options::skip_permission_denied, error);
         !error && entry != fs::directory_iterator() && ++looked_at < kMostEntries; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const std::string lower = LowerCase(name);
      if (lower == kGit) {
        std::error_code failed;
        // git obeys a link, or a file that names the folder, as a whole.
        if (entry->is_directory(failed) && !entry->is_symlink(failed)) {
          AddGitFolder(entry->path(), found);
        } else {
          found.there.push_back(entry->path().string());
        }
        continue;
      }
      bool is_taken = false;
      for (const Row& row : Rows()) {
        if ((row.row->only_in_home && at != home) || !FitsName(row.names.front(), lower)) continue;
        const bool has_stars = row.row->pattern.find_first_of("*?") < row.row->pattern.size() - (row.is_below ? 2 : 0);
        if (depth > 0 || has_stars) {
          if (row.names.size() == 1) {
            found.there.push_back(entry->path().string());
          } else {
            add(at, row);
          }
        }
        is_taken = is_taken || (row.names.size() == 1 && row.is_below);
      }
      std::error_code failed;
      if (is_taken || depth == kDeepest || name == "node_modules") continue;
      if (!entry->is_directory(failed) || entry->is_symlink(failed)) continue;
      if (std::ranges::find(closed, entry->path().native()) == closed.end()) {
        left.push_back({entry->path(), depth + 1});
      }
    }
  }
  if (!IsThere(fs::path(folder) / kGit)) {
    found.missing.push_back((fs::path(folder) / kGit).string());
  }
  return found;
}

std::string HomeIn(const std::string& workspace, std::string_view home) {
  if (home.empty() || home.front() != '/') return {};
  const fs::path real = Resolved(fs::path(home));
  if (!LiesBeneath(real, workspace)) return {};
  return real.lexically_relative(workspace).string();
}

}  // namespace reprise
