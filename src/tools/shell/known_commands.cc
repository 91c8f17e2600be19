#include "tools/shell/known_commands.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"

namespace reprise {
namespace {

using Names = std::set<std::string_view>;

const Names& Runners() {
  static const Names names = {
      // shells and programs that run a given command
      "sh", "ash", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "yash", "busybox", "toybox",
      "env", "xargs", "parallel", "find", "fd", "fdfind", "sudo", "su", "doas", "pkexec", "runuser", "setpriv", "ssh",
      "scp", "sftp", "rsync", "nice", "ionice", "chrt", "taskset", "nohup", "timeout", "time", "setsid", "stdbuf",
      "unbuffer", "script", "expect", "strace", "ltrace", "gdb", "lldb", "valgrind", "perf", "watch", "chroot",
      "unshare", "nsenter", "bwrap", "firejail", "flatpak", "systemd-run", "at", "batch", "crontab", "flock",
      "start-stop-daemon", "tmux", "screen", "entr", "ld.so", "ld-linux-x86-64.so", "ld-linux.so",
      "ld-linux-aarch64.so", "xvfb-run", "dbus-run-session", "docker", "podman", "kubectl", "vagrant", "run-parts",
      "uv", "dbus-launch", "direnv",
      // build tools, which obey files in a folder
      "make", "gmake", "cmake", "ctest", "ninja", "meson", "ant", "gradle", "gradlew", "mvn", "bazel", "just", "task",
      "rake", "tox", "nox", "pytest", "go", "dune", "scons", "waf", "npx", "pnpx", "bunx", "pip", "pipx", "poetry",
      "gem", "bundle", "composer", "apt", "apt-get", "dpkg",
      // interpreters and compilers
      "python", "pypy", "ipython", "perl", "ruby", "irb", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "php",
      "lua", "luajit", "tclsh", "wish", "Rscript", "R", "julia", "java", "javac", "jshell", "scala", "groovy", "kotlin",
      "ghc", "runghc", "ghci", "elixir", "iex", "erl", "guile", "sbcl", "clisp", "racket", "osascript", "gcc", "cc",
      "g++", "c++", "clang", "clang++", "tcc", "ld", "as", "m4", "bc", "dc", "awk", "gawk", "mawk", "nawk", "sed",
      "gsed", "ed", "jjs", "sqlite", "psql", "mysql", "gnuplot", "tex", "latex", "pdflatex", "xelatex", "lualatex",
      // programs with their own language, shell or pager
      "ex", "vi", "view", "vim", "nvim", "rvim", "vimdiff", "nano", "emacs", "emacsclient", "less", "more", "most",
      "man", "info", "mail", "mutt", "ftp", "lftp", "telnet", "nc", "ncat", "netcat", "socat", "openssl", "gpg", "tar",
      "bsdtar", "cpio", "zip", "unzip", "7z", "7za", "ar", "split", "tee", "dd", "xxd", "date", "hostname", "mount",
      "umount", "ip", "iptables", "systemctl", "service", "journalctl", "logger", "xdg-open", "open", "gdbserver",
      "wine", "qemu", "svn", "hg", "gh", "terraform", "ansible", "aws", "helm",
      // more of each kind
      "posh", "lksh", "sash", "elvish", "nu", "pwsh", "xonsh", "rc", "es", "osh", "newgrp", "sg", "login", "sem",
      "chronic", "ifne", "pee", "vipe", "vidir", "eatmydata", "fakeroot", "fakechroot", "faketime", "proot", "schroot",
      "pbuilder", "rlwrap", "dotenv", "foreman", "nodemon", "pm2", "supervisord", "setarch", "linux32", "linux64",
      "i386", "x86_64", "prlimit", "capsh", "numactl", "cpulimit", "cgexec", "systemd-inhibit", "systemd-cat",
      "systemd-nspawn", "machinectl", "ssh-agent", "ssh-keygen", "ssh-add", "sshpass", "autossh", "mosh", "rsh",
      "rlogin", "dbclient", "pssh", "pdsh", "gfind", "rclone", "xterm", "uxterm", "urxvt", "konsole", "gnome-terminal",
      "x-terminal-emulator", "kitty", "alacritty", "xinit", "startx", "run-mailcap", "see", "edit", "editor", "pager",
      "sensible-editor", "sensible-pager", "sensible-browser", "select-editor", "visudo", "vipw", "pico", "joe", "jed",
      "micro", "hx", "kak", "gvim", "mc", "mcedit", "ranger", "w3m", "lynx", "links", "elinks", "bat", "batcat",
      "delta", "tig", "lazygit", "jj", "fossil", "bzr", "cvs", "darcs", "glab", "hub", "tcpdump", "tshark", "nmap",
      "bpftrace", "rr", "nix", "nix-shell", "nix-build", "guix", "snap", "brew", "yum", "dnf", "rpm", "pacman", "apk",
      "zypper", "aptitude", "conda", "mamba", "pyenv", "rbenv", "nvm", "corepack", "hatch", "pdm", "pipenv", "eslint",
      "prettier", "jest", "mocha", "vitest", "ava", "vite", "webpack", "rollup", "turbo", "nx", "lerna", "gulp",
      "grunt", "cypress", "playwright", "mypy", "pylint", "flake8", "pre-commit", "sphinx-build", "mkdocs", "jupyter",
      "rails", "rspec", "bundler", "phpunit", "swift", "dotnet", "msbuild", "rustc", "dart", "flutter", "zig", "nim",
      "crystal", "ocaml", "opam", "stack", "cabal", "lein", "clj", "clojure", "sbt", "mill", "buck", "pants", "mix",
      "rebar", "autoconf", "automake", "autoreconf", "libtool", "configure", "bear", "ccache", "sccache", "distcc",
      "octave", "maxima", "sage", "gap", "magick", "convert", "mogrify", "gs", "groff", "troff", "nroff", "pic",
      "original-awk", "csplit", "patch", "pax", "shar", "unshar", "rar", "unrar", "duckdb", "mariadb", "mongo",
      "mongosh", "redis-cli", "nerdctl", "buildah", "ctr", "runc", "crun", "lxc", "incus", "minikube", "oc", "nomad",
      "consul", "packer", "pulumi", "cdk", "serverless", "vercel", "netlify", "wrangler", "gcloud", "az", "heroku",
      "flyctl", "logrotate", "fzf", "ack", "ag", "rename", "prename", "file-rename", "hyperfine", "watchexec", "reflex",
      "chpst", "softlimit", "setuidgid", "dtach", "abduco", "ldd", "help2man", "uvx", "pixi", "mise", "asdf", "devbox",
      "run0", "logsave", "gitk", "catchsegv", "apropos", "whatis"};
  return names;
}

// Options that hand another program to one that otherwise runs none.
struct Handing {
  std::string_view program, sub_command;       // empty sub-command: any
  std::string_view letters = {};               // may be combined with others
  std::vector<std::string_view> options = {};  // long options, perhaps shortened or with a value
};

const std::vector<Handing>& Handings() {
  static const std::vector<Handing> handings = {
      {"sort", "", "", {"--compress-program"}},
      {"rg", "", "z", {"--pre", "--hostname-bin", "--search-zip"}},
      {"ugrep", "", "", {"--filter", "--pager", "--view"}},
      {"file", "", "zZ", {"--uncompress", "--uncompress-noreport"}},
      {"diff", "", "l", {"--paginate"}},
      {"diff3", "", "", {"--diff-program"}},
      {"sdiff", "", "o", {"--diff-program", "--output"}},
      {"wdiff", "", "a", {"--auto-pager"}},
      {"install", "", "", {"--strip-program"}},
      {"wget", "", "e", {"--execute", "--use-askpass", "--config"}},
      {"pandoc", "", "FL", {"--filter", "--lua-filter", "--pdf-engine", "--defaults"}},
      {"borg", "", "", {"--rsh", "--remote-path"}},
      {"restic", "", "o", {"--option", "--password-command"}},
      {"rdiff-backup", "", "", {"--remote-schema"}},
      {"nm", "", "", {"--plugin"}},
      {"objdump", "", "", {"--plugin"}},
      {"objcopy", "", "", {"--plugin"}},
      {"strip", "", "", {"--plugin"}},
      {"ranlib", "", "", {"--plugin"}},
      {"size", "", "", {"--plugin"}},
      {"git", "archive", "", {"--exec", "--remote"}},
      {"git", "blame", "", {"--textconv"}},
      {"git", "branch", "", {"--edit-description"}},
      {"git", "cat-file", "", {"--textconv", "--filters"}},
      {"git", "cherry-pick", "", {"--strategy"}},
      {"git", "clone", "uc", {"--upload-pack", "--config", "--template"}},
      {"git", "diff", "", {"--ext-diff", "--textconv"}},
      {"git", "fetch", "", {"--upload-pack"}},
      {"git", "fetch-pack", "", {"--upload-pack", "--exec"}},
      {"git", "format-patch", "", {"--ext-diff", "--textconv"}},
      {"git", "grep", "O", {"--open-files-in-pager", "--textconv"}},
      {"git", "init", "", {"--template"}},
      {"git", "log", "", {"--ext-diff", "--textconv", "--show-signature"}},
      {"git", "ls-remote", "", {"--upload-pack", "--exec"}},
      {"git", "merge", "s", {"--strategy"}},
      {"git", "pull", "s", {"--upload-pack", "--strategy"}},
      {"git", "push", "", {"--receive-pack", "--exec"}},
      {"git", "rebase", "xs", {"--exec", "--strategy"}},
      {"git", "reflog", "", {"--ext-diff", "--textconv", "--show-signature"}},
      {"git", "revert", "", {"--strategy"}},
      {"git", "send-pack", "", {"--receive-pack", "--exec"}},
      {"git", "show", "", {"--ext-diff", "--textconv", "--show-signature"}},
      {"git", "stash", "", {"--ext-diff", "--textconv"}},
      {"git", "whatchanged", "", {"--ext-diff", "--textconv", "--show-signature"}},
      {"cargo", "", "", {"--config"}},
      {"npm",
       "",
       "c",
       {"--script-shell", "--shell", "--git", "--editor", "--browser", "--viewer", "--node-options", "--call",
        "--userconfig", "--globalconfig", "--init-module", "--onload-script"}},
      {"pnpm", "", "c", {"--script-shell", "--shell-mode", "--node-options", "--use-node-version", "--config"}},
      {"yarn", "", "", {"--script-shell", "--use-yarnrc", "--node-options"}},
  };
  return handings;
}
// Other options with the same beginning as one of those.
const Names& OtherOptions() {
  static const Names names = {"--text", "--global", "--no", "--", "--out"};
  return names;
}

const Names& ShellChangers() {
  static const Names names = {
      "cd",        "chdir",    "pushd",  "popd",    "export",  "set",      "unset",    "alias",     "unalias",
      "eval",      "exec",     ".",      "source",  "trap",    "umask",    "ulimit",   "command",   "builtin",
      "hash",      "readonly", "local",  "shift",   "getopts", "read",     "mapfile",  "readarray", "let",
      "declare",   "typeset",  "enable", "shopt",   "history", "fc",       "bind",     "bg",        "fg",
      "jobs",      "wait",     "disown", "suspend", "return",  "break",    "continue", "times",     "complete",
      "compgen",   "caller",   "logout", "coproc",  "setopt",  "unsetopt", "emulate",  "zmodload",  "autoload",
      "functions", "integer",  "float",  "nameref", "sched",   "print",    "vared"};
  return names;
}

const std::vector<Tail>& Tails() {
  static const std::vector<Tail> tails = {
      {{"ls"},
       "aAlhrtSRF1dgGiknopqsuUXxcCmN",
       {"--all", "--almost-all", "--human-readable", "--recursive", "--directory", "--reverse", "--color="}},
      {{"cat"}, "nbsAevEtT"},
      {{"head"}, "ncqv", {"--lines=", "--bytes="}, true},
      {{"tail"}, "ncqv", {"--lines=", "--bytes="}, true},
      {{"wc"}, "lwcmL"},
      {{"grep"},
       "rRniIlLcvwxEFPHhosqABCmea",
       {"--include=", "--exclude=", "--exclude-dir=", "--color=", "--recursive", "--ignore-case", "--line-number",
        "--count", "--files-with-matches", "--max-count=", "--context=", "--fixed-strings", "--extended-regexp",
        "--word-regexp"}},
      {{"rg"},
       "niIlLcvwxFsSgtTABCmeouU",
       {"--files", "--hidden", "--no-ignore", "--glob=", "--type=", "--count",
        "--max-count=", "--context=", "--no-heading", "--line-number", "--ignore-case", "--fixed-strings", "--color="}},
      {{"diff"}, "urqNwbBiaU", {"--unified", "--unified=", "--brief", "--recursive", "--color="}},
      {{"cmp"}, "sl"},
      {{"echo"}, "neE"},
      {{"sort"}, "rnuhVfbdgMkts", {"--reverse", "--numeric-sort", "--unique", "--human-numeric-sort"}},
      {{"uniq"}, "cdui", {}, false, /*takes_words=*/false},
      {{"cut"}, "dfbcs", {"--delimiter=", "--fields=", "--characters="}},
      {{"tr"}, "dsc"},
      {{"nl"}, "ba"},
      {{"basename"}, "as"},
      {{"dirname"}, ""},
      {{"realpath"}, "esmLP"},
      {{"readlink"}, "fem"},
      {{"stat"}, "cL", {"--format=", "--printf="}},
      {{"file"}, "bLi"},
      {{"du"}, "shackdxm", {"--max-depth=", "--summarize", "--human-readable"}},
      {{"df"}, "hTiak"},
      {{"md5sum"}, "bt"},
      {{"sha1sum"}, "bt"},
      {{"sha256sum"}, "bt"},
      {{"sha512sum"}, "bt"},
      {{"od"}, "AtxcNj"},
      {{"strings"}, "nat"},
      {{"tree"}, "LadfFhpsI"},
      {{"which"}, "a"},
      {{"jq"}, "rcsSneMja", {"--raw-output", "--compact-output", "--slurp"}},
      {{"git", "status"},
       "sbuvz",
       {"--short", "--branch", "--porcelain", "--porcelain=", "--untracked-files=", "--ignored", "--long",
        "--show-stash"}},
      {{"git", "log"},
       "nisEF",
       {"--oneline",    "--graph",        "--decorate",  "--all",         "--abbrev-commit", "--reverse",
        "--stat",       "--shortstat",    "--name-only", "--name-status", "--no-color",      "--merges",
        "--no-merges",  "--first-parent", "--follow",    "--since=",      "--until=",        "--after=",
        "--before=",    "--author=",      "--grep=",     "--format=",     "--pretty=",       "--date=",
        "--max-count=", "--no-patch",     "--"},
       true},
      {{"git", "diff"},
       "wbU",
       {"--stat", "--cached", "--staged", "--name-only", "--name-status", "--shortstat", "--numstat", "--check",
        "--unified=", "--no-color", "--no-ext-diff", "--no-textconv", "--"}},
      {{"git", "show"},
       "swU",
       {"--stat", "--name-only", "--name-status", "--oneline", "--no-patch", "--no-color",
        "--format=", "--pretty=", "--no-ext-diff", "--no-textconv", "--"}},
      {{"git", "branch"}, "arv", {"--all", "--remotes", "--list", "--show-current", "--verbose"}, false, false},
      {{"git", "ls-files"}, "cdomst", {"--cached", "--modified", "--others", "--deleted", "--exclude-standard", "--"}},
      {{"git", "blame"}, "lsw"},
      {{"git", "rev-parse"},
       "q",
       {"--short", "--short=", "--abbrev-ref", "--show-toplevel", "--verify", "--is-inside-work-tree", "--git-dir"}},
      {{"git", "add"}, "Aun", {"--all", "--update", "--dry-run", "--"}},
      {{"npm", "test"}, "", {}, false, true, /*only_plain=*/true},
      {{"npm", "run", "?"}, "", {}, false, true, /*only_plain=*/true},
      {{"pnpm", "test"}, "", {}, false, true, /*only_plain=*/true},
      {{"pnpm", "run", "?"}, "", {}, false, true, /*only_plain=*/true},
      {{"yarn", "test"}, "", {}, false, true, /*only_plain=*/true},
      {{"yarn", "run", "?"}, "", {}, false, true, /*only_plain=*/true},
      {{"cargo", "test"}, "qv", {"--release", "--all", "--workspace", "--lib", "--quiet", "--verbose"}},
      {{"cargo", "build"}, "qv", {"--release", "--all", "--workspace", "--lib", "--quiet", "--verbose"}},
      {{"cargo", "check"}, "qv", {"--release", "--all", "--workspace", "--lib", "--quiet", "--verbose"}},
  };
  return tails;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == ','; });
}

bool IsPlainText(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return IsAsciiLetter(c) || (c >= '0' && c <= '9') || std::string_view("_./:,=-").find(c) != std::string_view::npos;
  });
}

bool FitsWords(const Tail& tail, std::size_t count, const auto& word_at) {
  if (tail.words.size() > count) return false;
  for (std::size_t i = 0; i < tail.words.size(); ++i) {
    const std::string_view expected = tail.words[i], word = word_at(i);
    // The name of a script, not an option or a list.
    const bool is_script =
        !word.empty() && (IsAsciiLetter(word.front()) || word.front() == '_') && !RunsWhatItIsGiven(word);
    const bool fits = expected == "?" ? is_script : expected == word;
    if (!fits) return false;
  }
  return true;
}

bool IsKnownOption(const Tail& tail, std::string_view word) {
  if (tail.takes_number && IsNumber(word.substr(1))) return true;
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const std::string_view name = equals == std::string_view::npos ? word : word.substr(0, equals + 1);
    // %G makes git check signatures with a program that the repository's configuration names.
    const bool checks = (name == "--format=" || name == "--pretty=") && word.find('G') != std::string_view::npos &&
                        word.find('%') != std::string_view::npos;
    return !checks && std::ranges::find(tail.options, name) != tail.options.end();
  }
  const std::size_t digits = word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
  const std::string_view letters = word.substr(1, digits == std::string_view::npos ? digits : digits - 1);
  const bool has_number = digits == std::string_view::npos || IsNumber(word.substr(digits));
  // "ls -1"
  if (letters.empty()) return word.size() == 2 && tail.letters.find(word[1]) != std::string_view::npos;
  return has_number &&
         std::ranges::all_of(letters, [&](char c) { return tail.letters.find(c) != std::string_view::npos; });
}

}  // namespace

std::string_view ProgramName(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool RunsWhatItIsGiven(std::string_view program) {
  const std::string_view name = ProgramName(program);
  if (Runners().contains(name)) return true;
  // python3.11, vim.tiny, perl5.36-x86_64-linux-gnu, x86_64-linux-gnu-gcc-12
  const std::size_t end = name.find_last_not_of("0123456789.-");
  const std::string_view bare = name.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return Runners().contains(bare) || Runners().contains(name.substr(0, name.find_first_of("0123456789.-"))) ||
         Runners().contains(bare.substr(bare.rfind('-') + 1));
}

bool FilesDecide(std::string_view program) {
  if (ProgramName(program) == "git") return false;
  return RunsWhatItIsGiven(program) || HasSubCommands(program) || program.find('/') != std::string_view::npos;
}

bool OnlyReadsItsInput(const std::vector<ShellWord>& words) {
  return KnownPrefix(words) > 0 && !FilesDecide(words.front().text);
}

bool ChangesTheShell(std::string_view program) { return ShellChangers().contains(program); }

bool HasSubCommands(std::string_view program) {
  static const Names names = {"git", "npm", "pnpm", "yarn", "cargo", "rustup"};
  return names.contains(ProgramName(program));
}

bool MayRunItsWords(const std::vector<ShellWord>& words) {
  // These run none of their words. Other sub-commands are unknown, so they may.
  static const Names git = {
      "add",        "am",       "apply",        "blame",       "branch",       "cat-file",    "check-ignore",
      "checkout",   "cherry",   "clean",        "cherry-pick", "commit",       "describe",    "count-objects",
      "diff",       "fsck",     "for-each-ref", "gc",          "grep",         "hash-object", "init",
      "log",        "ls-files", "ls-tree",      "merge",       "merge-base",   "mv",          "name-rev",
      "notes",      "prune",    "range-diff",   "read-tree",   "reflog",       "remote",      "reset",
      "restore",    "rev-list", "revert",       "rev-parse",   "rm",           "shortlog",    "show",
      "show-ref",   "stash",    "status",       "switch",      "symbolic-ref", "tag",         "update-index",
      "update-ref", "worktree", "write-tree",   "whatchanged"};
  static const Names packages = {"add",  "audit",     "ci",     "i",       "info",    "install", "link",  "list",
                                 "ls",   "outdated",  "pack",   "publish", "remove",  "run",     "start", "t",
                                 "test", "uninstall", "unlink", "update",  "version", "view",    "why",   "config"};
  const std::string_view program = ProgramName(words.front().text);
  static const Names toolchains = {"check", "component", "default",   "override",
                                   "show",  "target",    "toolchain", "update"};
  if (program == "cargo" || !HasSubCommands(program)) return false;
  const Names& plain = program == "git" ? git : program == "rustup" ? toolchains : packages;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].is_literal()) return true;
    if (words[i].text == "-C") {
      ++i;
    } else if (!words[i].text.starts_with('-')) {
      return !plain.contains(words[i].text);
    }
  }
  return false;
}

bool OnlyTakesNames(std::string_view program) {
  static const Names names = {"mkdir", "rmdir", "cp",   "mv",    "rm",    "ln",     "touch", "chmod", "chown",
                              "chgrp", "pwd",   "true", "false", "sleep", "printf", "test",  "[",     "seq",
                              "kill",  "type",  "id",   "uname", "curl",  "mktemp", "comm",  "paste", "gzip"};
  return names.contains(ProgramName(program));
}

namespace {

// The index of the sub-command of git and its like; the number of words if there is none.
std::size_t SubCommandAt(const std::vector<ShellWord>& words) {
  std::size_t at = 1;
  while (at < words.size() && words[at].is_literal() && words[at].text.starts_with('-')) {
    at += words[at].text == "-C" || words[at].text == "--prefix" ? 2 : 1;
  }
  return std::min(at, words.size());
}

// Whether it is git's own sub-command, which no alias can replace.
bool IsOfGit(std::string_view sub_command) {
  static const Names names = {
      // what people use
      "add", "am", "apply", "archive", "bisect", "blame", "branch", "bundle", "checkout", "cherry", "cherry-pick",
      "clean", "clone", "commit", "config", "describe", "diff", "fetch", "format-patch", "fsck", "gc", "grep", "help",
      "init", "log", "ls-files", "merge", "mv", "notes", "prune", "pull", "push", "range-diff", "rebase", "reflog",
      "remote", "reset", "restore", "revert", "rm", "shortlog", "show", "sparse-checkout", "stage", "stash", "status",
      "submodule", "switch", "tag", "version", "worktree",
      // and programs
      "annotate", "bugreport", "cat-file", "check-attr", "check-ignore", "check-mailmap", "check-ref-format",
      "checkout-index", "column", "commit-graph", "commit-tree", "count-objects", "diagnose", "diff-files",
      "diff-index", "diff-tree", "fast-export", "fetch-pack", "fmt-merge-msg", "for-each-ref", "get-tar-commit-id",
      "hash-object", "index-pack", "init-db", "interpret-trailers", "ls-remote", "ls-tree", "mailinfo", "mailsplit",
      "merge-base", "merge-file", "merge-tree", "mktag", "mktree", "multi-pack-index", "name-rev", "pack-objects",
      "pack-refs", "patch-id", "prune-packed", "read-tree", "repack", "replace", "rerere", "rev-list", "rev-parse",
      "send-pack", "show-branch", "show-index", "show-ref", "stripspace", "symbolic-ref", "unpack-file",
      "unpack-objects", "update-index", "update-ref", "update-server-info", "var", "verify-commit", "verify-pack",
      "verify-tag", "write-tree"};
  return names.contains(sub_command);
}

bool IsOfCargo(std::string_view sub_command) {
  static const Names names = {// short forms
                              "b", "c", "d", "r", "t",
                              // whole names
                              "add", "bench", "build", "check", "clean", "clippy", "config", "doc", "fetch", "fix",
                              "fmt", "generate-lockfile", "help", "info", "init", "install", "locate-project", "login",
                              "logout", "metadata", "new", "owner", "package", "pkgid", "publish", "remove", "report",
                              "rm", "run", "rustc", "rustdoc", "search", "test", "tree", "uninstall", "update",
                              "vendor", "verify-project", "version", "yank"};
  return names.contains(sub_command);
}

// Whether `git config` does more than read, or change a harmless setting.
bool SetsGit(const std::vector<ShellWord>& words, std::size_t at) {
  static const Names harmless = {"user.name",     "user.email",    "init.defaultbranch", "push.default",
                                 "pull.rebase",   "pull.ff",       "fetch.prune",        "merge.conflictstyle",
                                 "core.autocrlf", "core.filemode", "core.ignorecase",    "safe.directory",
                                 "color.ui",      "commit.gpgsign"};
  std::vector<std::string_view> plain;
  for (std::size_t i = at + 1; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    if (!words[i].is_literal()) return true;
    if (text.starts_with("--get") || text == "--list" || text == "-l") return false;
    if (text == "-e" || text == "--edit") return true;
    if (!text.starts_with('-')) plain.push_back(text);
  }
  if (plain.empty() || plain.front() == "get" || plain.front() == "list") return false;
  if (plain.front() == "set" || plain.front() == "unset") plain.erase(plain.begin());
  if (plain.size() == 1 && plain.front() != "edit") return false;
  return plain.empty() || !harmless.contains(LowerCase(plain.front()));
}

bool IsHandedByOption(const Handing& handing, const std::vector<ShellWord>& words, std::size_t from) {
  for (std::size_t i = from; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    // A file may be named like an option.
    if (!words[i].is_literal() && (words[i].kind == ShellWord::Kind::kOpaque || text.empty() || text.front() == '-')) {
      return true;
    }
    if (text == "--") return false;
    if (!text.starts_with('-')) continue;
    if (!text.starts_with("--")) {
      if (text.find_first_of(handing.letters, 1) != std::string_view::npos) return true;
      continue;
    }
    const std::string_view name = text.substr(0, text.find('='));
    if (OtherOptions().contains(name)) continue;
    for (const std::string_view option : handing.options) {
      if (option.starts_with(name)) return true;
    }
  }
  return false;
}

// Other names of a sub-command, with blanks between them.
struct Renamed {
  std::string_view program, usual, others;
};
constexpr auto kRenamed = std::to_array<Renamed>({
    {"git", "add", "stage"},
    {"git", "init", "init-db"},
    {"cargo", "build", "b"},
    {"cargo", "check", "c"},
    {"cargo", "doc", "d"},
    {"cargo", "run", "r"},
    {"cargo", "test", "t"},
    {"cargo", "remove", "rm"},
    {"npm", "audit", "aud"},
    {"npm", "bugs", "issues"},
    {"npm", "ci", "clean-install ic install-clean isntall-clean"},
    {"npm", "config", "c get"},
    {"npm", "dedupe", "ddp"},
    {"npm", "dist-tag", "dist-tags"},
    {"npm", "docs", "home"},
    {"npm", "exec", "x"},
    {"npm", "explain", "why"},
    {"npm", "init", "create innit"},
    {"npm", "install", "i add in ins inst insta instal isnt isnta isntal isntall"},
    {"npm", "link", "ln"},
    {"npm", "list", "ls la ll"},
    {"npm", "login", "adduser add-user"},
    {"npm", "owner", "author"},
    {"npm", "rebuild", "rb"},
    {"npm", "run", "run-script rum urn"},
    {"npm", "search", "find s se"},
    {"npm", "test", "t tst"},
    {"npm", "uninstall", "unlink remove rm r un"},
    {"npm", "update", "up upgrade udpate"},
    {"npm", "version", "verison"},
    {"npm", "view", "info show v"},
    {"pnpm", "exec", "x"},
    {"pnpm", "install", "i"},
    {"pnpm", "link", "ln"},
    {"pnpm", "list", "ls la ll"},
    {"pnpm", "rebuild", "rb"},
    {"pnpm", "remove", "rm r un uninstall"},
    {"pnpm", "run", "run-script rum urn"},
    {"pnpm", "test", "t tst"},
    {"pnpm", "unlink", "dislink"},
    {"pnpm", "update", "up upgrade"},
    {"yarn", "exec", "x"},
    {"yarn", "list", "ls"},
    {"yarn", "upgrade", "up"},
});

// The sub-commands that no other is short for. Others are the user's scripts to pnpm and yarn; to npm they may be
// beginnings of these.
bool IsOfPackages(std::string_view program, std::string_view sub_command) {
  static const Names npm = {
      // what people use
      "audit", "ci", "config", "dedupe", "diff", "docs", "edit", "exec", "explain", "help", "init", "install", "link",
      "list", "login", "logout", "outdated", "pack", "prune", "publish", "rebuild", "restart", "root", "run", "search",
      "start", "stop", "test", "uninstall", "update", "version", "view",
      // and the others of npm 10
      "access", "bugs", "cache", "completion", "deprecate", "dist-tag", "doctor", "explore", "fund", "hook", "org",
      "owner", "ping", "pkg", "prefix", "profile", "query", "repo", "set", "shrinkwrap", "star", "stars", "team",
      "token", "unpublish", "unstar", "whoami"};
  static const Names others = {
      // of yarn and pnpm
      "add", "audit", "bin", "cache", "config", "create", "dlx", "exec", "global", "import", "info", "init", "install",
      "licenses", "link", "list", "login", "logout", "node", "outdated", "pack", "publish", "rebuild", "remove",
      // and more
      "restart", "run", "start", "stop", "tag", "test", "unlink", "update", "upgrade", "version", "why", "workspace",
      "workspaces"};
  static const Names pnpm = {"deploy", "env", "fetch", "patch", "prune", "root", "server", "setup", "store"};
  if (program == "pnpm" && pnpm.contains(sub_command)) return true;
  return (program == "npm" ? npm : others).contains(sub_command);
}

}  // namespace

std::optional<std::vector<ShellWord>> WithUsualNames(std::vector<ShellWord> words) {
  const std::string program = LowerCase(ProgramName(words.front().text));
  if (!HasSubCommands(program)) return words;
  if (program == "cargo" && words.size() > 1 && words[1].text.starts_with('+')) words.erase(words.begin() + 1);
  const std::size_t at = SubCommandAt(words);
  if (program == "yarn" && words.size() == 1) words.push_back({"install"});
  if (at == words.size() || !words[at].is_literal()) return words;
  std::string& name = words[at].text;
  for (const Renamed& each : kRenamed) {
    for (std::string_view left = each.others; each.program == program && !left.empty();) {
      if (TakeWord(left) == name) name = each.usual, left = {};
    }
  }
  if (program == "rustup" && (name == "install" || name == "uninstall")) {
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), {"toolchain"});
  }
  const bool is_of_packages = program == "npm" || program == "pnpm" || program == "yarn";
  if (!is_of_packages) return words;
  static const Names own_scripts = {"test", "start", "stop", "restart"};
  const bool is_script = own_scripts.contains(name) || (program != "npm" && !IsOfPackages(program, name));
  // Before it, the value of an option may look like it.
  if ((at > 1 && words[at - 1].text.find('=') == std::string::npos) || name.starts_with("install-"))
    return std::nullopt;
  if (!is_script && !IsOfPackages(program, name)) return std::nullopt;
  if (is_script) words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), {"run"});
  return words;
}

bool IsHandedAProgram(const std::vector<ShellWord>& words) {
  const std::string_view program = ProgramName(words.front().text);
  if (program.starts_with("git-")) return true;
  const std::size_t at = HasSubCommands(program) ? SubCommandAt(words) : 0;
  const std::string_view sub_command = at > 0 && at < words.size() ? std::string_view(words[at].text) : "";
  if (at > 0 && at < words.size()) {
    if (!words[at].is_literal()) return true;
    const std::string_view next = at + 1 < words.size() ? std::string_view(words[at + 1].text) : "";
    if (program == "git") {
      // An alias or a program git-NAME, or one of git's own commands for this.
      if (!IsOfGit(sub_command)) return true;
      if (sub_command == "config" && SetsGit(words, at)) return true;
      const bool runs = (sub_command == "bisect" && next == "run") || (sub_command == "submodule" && next == "foreach");
      if (runs) return true;
    } else if (program == "cargo") {
      if (!IsOfCargo(sub_command) && !sub_command.starts_with('+')) return true;
    } else if (sub_command == "set" || (sub_command == "config" && (next == "set" || next == "edit"))) {
      return true;
    }
  }
  // git accepts `ext::sh -c ...` as an address.
  const bool runs_address = program == "git" && std::ranges::any_of(words, [](const ShellWord& each) {
                              return each.text.find("ext::") != std::string::npos;
                            });
  return runs_address || std::any_of(Handings().begin(), Handings().end(), [&](const Handing& each) {
           return each.program == program && (each.sub_command.empty() || each.sub_command == sub_command) &&
                  IsHandedByOption(each, words, each.sub_command.empty() ? 1 : at + 1);
         });
}

const Tail* FindTail(const std::vector<std::string>& words) {
  for (const Tail& tail : Tails()) {
    if (tail.words.size() == words.size() &&
        FitsWords(tail, words.size(), [&](std::size_t i) { return std::string_view(words[i]); })) {
      return &tail;
    }
  }
  return nullptr;
}

std::size_t KnownPrefix(const std::vector<ShellWord>& words) {
  std::size_t longest = 0;
  for (const Tail& tail : Tails()) {
    const auto word_at = [&](std::size_t i) {
      return words[i].is_literal() ? std::string_view(words[i].text) : std::string_view();
    };
    if (FitsWords(tail, words.size(), word_at)) longest = std::max(longest, tail.words.size());
  }
  return longest;
}

bool MayFollow(const Tail* tail, const ShellWord& word) {
  if (word.kind == ShellWord::Kind::kOpaque) return false;
  const std::string_view text = word.text;
  if (word.kind == ShellWord::Kind::kGlob) {
    // All names that the shell substitutes begin like this.
    const bool is_safe = !text.empty() && (IsAsciiLetter(text.front()) || text.front() == '.' || text.front() == '/' ||
                                           text.front() == '_');
    return is_safe && (tail == nullptr || (tail->takes_words && !tail->only_plain));
  }
  if (text.starts_with('-')) return tail != nullptr && text.size() > 1 && IsKnownOption(*tail, text);
  if (tail != nullptr && !tail->takes_words) return false;
  if (tail != nullptr && tail->only_plain && !IsPlainText(text)) return false;
  return !text.starts_with('+') && !text.starts_with('@');
}

std::string WhatMayFollow(const Tail* tail) {
  std::string text = "followed by any words that do not begin with -, + or @";
  if (tail != nullptr && tail->only_plain) text += " and have only letters, digits and _./:,=-";
  if (tail != nullptr && !tail->takes_words) text = "followed by nothing";
  std::vector<std::string> options;
  if (tail != nullptr && tail->takes_number) options.emplace_back("-NUMBER");
  if (tail != nullptr) {
    for (const char letter : tail->letters) options.push_back(std::string("-") + letter);
    for (const std::string_view option : tail->options) {
      options.push_back(std::string(option) + (option.ends_with('=') ? "..." : ""));
    }
  }
  if (options.empty()) return text;
  text += tail->takes_words ? ", and by no options but" : " but the options";
  for (std::size_t i = 0; i < options.size(); ++i) text += (i == 0 ? " " : ", ") + options[i];
  return text;
}

}  // namespace reprise
