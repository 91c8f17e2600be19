#include "tools/shell/git_configuration.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stop_token>

#include "base/system.h"
#include "tools/shell/command_runner.h"

namespace reprise {

namespace {

constexpr std::array<const char*, 3> kGitPrograms = {"/usr/bin/git", "/bin/git", "/usr/local/bin/git"};
constexpr std::chrono::seconds kMaxReading{2};
constexpr std::size_t kMaxListed = 1024 * 1024;

// As git lists them, in lower case, and sorted. A whole section ends with a dot. Nothing here names a program or a file
// that git would read, and nothing is a login.
constexpr auto kPermitted = std::to_array<std::string_view>(
    {// How git talks, and who writes
     "advice.", "apply.ignorewhitespace", "apply.whitespace", "author.email", "author.name", "branch.autosetupmerge",
     "branch.autosetuprebase", "branch.sort", "color.", "column.", "commit.cleanup", "commit.status", "commit.verbose",
     "committer.email", "committer.name",
     // Files and differences
     "core.abbrev", "core.autocrlf", "core.commentchar", "core.eol", "core.logallrefupdates", "core.quotepath",
     "core.safecrlf", "core.whitespace", "diff.algorithm", "diff.colormoved", "diff.colormovedws", "diff.context",
     "diff.indentheuristic", "diff.interhunkcontext", "diff.mnemonicprefix", "diff.noprefix", "diff.renamelimit",
     "diff.renames", "diff.statgraphwidth", "diff.submodule", "diff.wserrorhighlight",
     // How commits move
     "fetch.parallel", "fetch.prune", "fetch.prunetags", "i18n.commitencoding", "i18n.logoutputencoding",
     "init.defaultbranch", "log.abbrevcommit", "log.date", "log.decorate", "log.follow", "merge.conflictstyle",
     "merge.ff", "merge.log", "merge.renames", "pull.ff", "pull.octopus", "pull.rebase", "push.autosetupremote",
     "push.default", "push.followtags", "rebase.abbreviatecommands", "rebase.autosquash", "rebase.autostash",
     "rebase.missingcommitscheck", "rebase.stat", "rebase.updaterefs", "rerere.autoupdate", "rerere.enabled",
     "safe.directory", "status.", "tag.sort", "user.email", "user.name", "user.useconfigonly"});

bool IsPermitted(std::string_view name) {
  return std::ranges::any_of(kPermitted, [name](std::string_view each) {
    return each.ends_with('.') ? name.starts_with(each) && name.find('.', each.size()) == name.npos : name == each;
  });
}

std::string Quoted(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '\n') {
      quoted += "\\n";
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

std::string PermittedGitSettings(std::string_view listed) {
  std::string text;
  while (!listed.empty()) {
    // "section.name", and a newline before the value if there is one.
    const std::string_view setting = listed.substr(0, listed.find('\0'));
    listed.remove_prefix(std::min(setting.size() + 1, listed.size()));
    const std::string_view name = setting.substr(0, setting.find('\n'));
    if (!IsPermitted(name)) continue;
    const std::size_t dot = name.find('.');
    text.append("[").append(name.substr(0, dot)).append("]\n\t").append(name.substr(dot + 1));
    if (name.size() < setting.size()) text.append(" = ").append(Quoted(setting.substr(name.size() + 1)));
    text += '\n';
  }
  return text;
}

GitConfiguration::Options GitConfiguration::OfThisUser(const std::string& directory) {
  const auto inherited = [variable = ProcessEnvironment()](const char* name) { return variable(name).value_or(""); };
  const std::string home = inherited("HOME"), xdg = inherited("XDG_CONFIG_HOME"),
                    named = inherited("GIT_CONFIG_GLOBAL");
  Options options{.directory = directory, .environment = {"HOME=" + home, "PATH=/usr/bin:/bin"}, .files = {}};
  if (!xdg.empty()) options.environment.push_back("XDG_CONFIG_HOME=" + xdg);
  if (!named.empty()) options.environment.push_back("GIT_CONFIG_GLOBAL=" + named);
  options.files = {named, home + "/.gitconfig", (xdg.empty() ? home + "/.config" : xdg) + "/git/config"};
  return options;
}

std::string GitConfiguration::State() const {
  std::string state;
  for (const std::string& file : options_.files) {
    struct stat status {};
    if (file.empty() || ::stat(file.c_str(), &status) != 0) {
      state += "-;";
      continue;
    }
    state += std::to_string(status.st_ino) + " " + std::to_string(status.st_size) + " " +
             std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + ";";
  }
  return state;
}

std::string GitConfiguration::Text() const {
  const auto* const program =
      std::ranges::find_if(kGitPrograms, [](const char* path) { return ::access(path, X_OK) == 0; });
  if (program == kGitPrograms.end()) return {};
  const MutexLock lock(mutex_);
  std::string state = State();
  if (state_ == state) return text_;
  // Reading settings runs nothing that they name.
  const Command command{.argv = {*program, "config", "--global", "--includes", "--list", "-z"},
                        .environment = options_.environment,
                        .directory = options_.directory};
  const CommandLimits limits{.timeout = kMaxReading, .max_output_bytes = kMaxListed};
  const auto result = RunCommandOn({}, command, limits, std::stop_token());
  // Without a file of the user, git fails.
  const bool ok = result && result->end == CommandResult::End::kExited && result->status == 0;
  text_ = ok ? PermittedGitSettings(result->output) : std::string();
  state_ = std::move(state);
  return text_;
}

}  // namespace reprise
