#include "tools/files/known_paths.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

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
constexpr auto kInConfig = std::to_array<std::string_view>(
    {// Clouds, hosts of code and of programs
     "reprise", "gcloud", "gh", "glab-cli", "hub", "github-copilot", "op", "rclone", "containers/auth.json", "doctl",
     "configstore", "netlify", "heroku", "fly", "stripe", "sops", "age", "helm", "argocd", "hcloud", "scw",
     "linode-cli", "vultr-cli", "databricks", "git/credentials", "pip/pip.conf", "pypoetry/auth.toml",
     "composer/auth.json", "uv", "NuGet",
     // Browsers, keepers of passwords, messengers
     "chromium", "google-chrome", "google-chrome-beta", "google-chrome-unstable", "BraveSoftware", "vivaldi",
     "microsoft-edge", "opera", "Bitwarden", "1Password", "keepassxc", "KeePass", "Slack", "discord", "Signal",
     "Element", "evolution", "goa-1.0", "kwalletrc",
     // Editors and agents
     "Code/User/globalStorage", "VSCodium/User/globalStorage", "Cursor/User/globalStorage", "JetBrains", "claude",
     "codex", "goose", "opencode",
     // Ways to other machines, mail, money
     "filezilla", "remmina", "rustdesk", "AnyDesk", "msmtp", "neomutt", "aerc", "himalaya", "syncthing", "Yubico",
     "solana", "ngrok", "railway", "vercel", "wrangler", "supabase"});

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

}  // namespace reprise
