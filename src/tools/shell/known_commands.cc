#include "tools/shell/known_commands.h"

#include <algorithm>
#include <set>

namespace reprise {
namespace {

using Names = std::set<std::string_view>;

const Names& Runners() {
  static const Names names = {
      // shells, and what runs a command that it is given
      "sh", "ash", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "yash", "busybox", "toybox",
      "env", "xargs", "parallel", "find", "fd", "fdfind", "sudo", "su", "doas", "pkexec", "runuser", "setpriv", "ssh",
      "scp", "sftp", "rsync", "nice", "ionice", "chrt", "taskset", "nohup", "timeout", "time", "setsid", "stdbuf",
      "unbuffer", "script", "expect", "strace", "ltrace", "gdb", "lldb", "valgrind", "perf", "watch", "chroot",
      "unshare", "nsenter", "bwrap", "firejail", "flatpak", "systemd-run", "at", "batch", "crontab", "flock",
      "start-stop-daemon", "tmux", "screen", "entr", "ld.so", "ld-linux-x86-64.so", "ld-linux.so",
      "ld-linux-aarch64.so", "xvfb-run", "dbus-run-session", "docker", "podman", "kubectl", "vagrant", "run-parts",
      "uv", "dbus-launch", "direnv",
      // what builds by instructions that lie in a folder
      "make", "gmake", "cmake", "ctest", "ninja", "meson", "ant", "gradle", "gradlew", "mvn", "bazel", "just", "task",
      "rake", "tox", "nox", "pytest", "go", "dune", "scons", "waf", "npx", "pnpx", "bunx", "pip", "pipx", "poetry",
      "gem", "bundle", "composer", "apt", "apt-get", "dpkg",
      // interpreters and compilers
      "python", "pypy", "ipython", "perl", "ruby", "irb", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "php",
      "lua", "luajit", "tclsh", "wish", "Rscript", "R", "julia", "java", "javac", "jshell", "scala", "groovy", "kotlin",
      "ghc", "runghc", "ghci", "elixir", "iex", "erl", "guile", "sbcl", "clisp", "racket", "osascript", "gcc", "cc",
      "g++", "c++", "clang", "clang++", "tcc", "ld", "as", "m4", "bc", "dc", "awk", "gawk", "mawk", "nawk", "sed",
      "gsed", "ed", "jjs", "sqlite", "psql", "mysql", "gnuplot", "tex", "latex", "pdflatex", "xelatex", "lualatex",
      // with a language, a shell or a pager of their own
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
      "flyctl", "logrotate", "fzf", "ack", "ag"};
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

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == ','; });
}

bool IsPlainText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') || std::string_view("_./:,=-").find(c) != std::string_view::npos;
  });
}

bool FitsWords(const Tail& tail, std::size_t count, const auto& word_at) {
  if (tail.words.size() > count) return false;
  for (std::size_t i = 0; i < tail.words.size(); ++i) {
    const std::string_view expected = tail.words[i], word = word_at(i);
    // A script's name, not an option or a list.
    const bool is_script = !word.empty() && (IsLetter(word.front()) || word.front() == '_') && !RunsWhatItIsGiven(word);
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
    // %G has git check signatures, by a program that the repository's configuration names.
    const bool checks = (name == "--format=" || name == "--pretty=") && word.find('G') != std::string_view::npos &&
                        word.find('%') != std::string_view::npos;
    return !checks && std::find(tail.options.begin(), tail.options.end(), name) != tail.options.end();
  }
  const std::size_t digits = word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
  const std::string_view letters = word.substr(1, digits == std::string_view::npos ? digits : digits - 1);
  const bool has_number = digits == std::string_view::npos || IsNumber(word.substr(digits));
  // "ls -1"
  if (letters.empty()) return word.size() == 2 && tail.letters.find(word[1]) != std::string_view::npos;
  return has_number && std::all_of(letters.begin(), letters.end(),
                                   [&](char c) { return tail.letters.find(c) != std::string_view::npos; });
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
  // These run nothing that they are given. Of any other sub-command that is not known.
  static const Names git = {
      "add",      "am",         "apply",        "blame",        "branch",      "cat-file",     "check-ignore",
      "checkout", "cherry",     "clean",        "cherry-pick",  "commit",      "describe",     "count-objects",
      "diff",     "fsck",       "for-each-ref", "gc",           "hash-object", "init",         "log",
      "ls-files", "ls-tree",    "merge",        "merge-base",   "mv",          "name-rev",     "notes",
      "prune",    "range-diff", "read-tree",    "reflog",       "remote",      "reset",        "restore",
      "rev-list", "revert",     "rev-parse",    "rm",           "shortlog",    "show",         "show-ref",
      "stash",    "status",     "switch",       "symbolic-ref", "tag",         "update-index", "update-ref",
      "worktree", "write-tree", "whatchanged"};
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
    // Each name that the shell puts in its place begins like this.
    const bool is_safe =
        !text.empty() && (IsLetter(text.front()) || text.front() == '.' || text.front() == '/' || text.front() == '_');
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
