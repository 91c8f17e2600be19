#include "tools/shell/command_pattern.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "support/source_directory.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::command_pattern_test {
namespace {

using Lines = std::vector<std::string>;

nlohmann::json Table() {
  std::ifstream file(SourceDirectory() + "/tests/data/command_lines/lines.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

Lines Patterns(std::string_view command) {
  Lines patterns;
  for (const CallPattern& each : PatternsOfCommand(command)) patterns.push_back(each.pattern);
  return patterns;
}

bool Covers(const Lines& patterns, std::string_view command) { return CommandCoveredBy(patterns, command).has_value(); }

TEST_CASE("command patterns: the usual patterns cover harmless lines and no hostile ones", "[tools]") {
  const auto table = Table();
  const Lines patterns = table.at("patterns");
  const Lines hostile = table.at("hostile"), harmless = table.at("harmless");
  REQUIRE(hostile.size() >= 400);
  REQUIRE(harmless.size() >= 100);
  for (const std::string& pattern : patterns) {
    CAPTURE(pattern);
    CHECK(MeaningOfCommandPattern(pattern, PatternUse::kAllow));
  }
  for (const std::string& line : hostile) {
    CAPTURE(line);
    CHECK_FALSE(Covers(patterns, line));
  }
  for (const std::string& line : harmless) {
    CAPTURE(line);
    CHECK(Covers(patterns, line));
  }
}

TEST_CASE("command patterns: an offered pattern covers its call and no hostile line", "[tools]") {
  const auto table = Table();
  Lines offered;
  for (const std::string line : table.at("harmless")) {
    for (const CallPattern& each : PatternsOfCommand(line)) {
      CAPTURE(line, each.pattern);
      CHECK(Covers({each.pattern}, line));
      CHECK(MeaningOfCommandPattern(each.pattern, PatternUse::kAllow).value_or("") == each.means);
      CHECK(each.means.ends_with("."));
      offered.push_back(each.pattern);
    }
  }
  REQUIRE(offered.size() > 100);
  // "git status *" is offered and the table's list has only "git status"; likewise for the others here.
  const Lines covered_by_wider = {"git status -s x", "git status x", "npm run build x", "cd web && git status"};
  for (const std::string line : table.at("hostile")) {
    if (std::find(covered_by_wider.begin(), covered_by_wider.end(), line) != covered_by_wider.end()) continue;
    CAPTURE(line);
    CHECK_FALSE(Covers(offered, line));
  }
}

TEST_CASE("command patterns: the narrowest comes first, without a * for programs that run their words", "[tools]") {
  CHECK(Patterns("git status") == Lines{"git status", "git status *"});
  CHECK(Patterns("git log -5 | head -2") == Lines{"git log -5; head -2", "git log *; head *"});
  CHECK(Patterns("cd web && npm test && ls") == Lines{"cd web && npm test && ls", "cd web && npm test * && ls *"});
  CHECK(Patterns("ls src/*.cc") == Lines{"ls *"});
  CHECK(Patterns("make test") == Lines{"make test"});
  for (const char* line : {"python3 -c 'x y'", "env ls", "xargs ls", "find . -name x", "sudo ls", "bash -c ls",
                           "git push origin", "npm install", "tar xf a"}) {
    CAPTURE(line);
    for (const std::string& pattern : Patterns(line)) CHECK(pattern.find('*') == std::string::npos);
    CHECK(Patterns(line).size() == 1);
  }
  for (const char* line : {"ls $x", "ls > x", "X=1 ls", "ls & id", "$(ls)", "echo x | sh", "cd /tmp; ls", "eval ls",
                           "for x in y; do ls; done", ""}) {
    CAPTURE(line);
    CHECK(Patterns(line).empty());
  }
}

TEST_CASE("command patterns: the sentence is made of the pattern", "[tools]") {
  const auto meaning = [](const char* pattern) {
    return MeaningOfCommandPattern(pattern, PatternUse::kAllow).value_or("-");
  };
  CHECK(meaning("pwd") == "Runs exactly `pwd`, alone or in one line with other commands that are allowed.");
  CHECK(meaning("make test") ==
        "Runs exactly `make test` (files decide what that does, and they may change), alone or in one line with other "
        "commands that are allowed.");
  CHECK(meaning("wc *") ==
        "Runs `wc` followed by any words that do not begin with -, + or @, and by no options but -l, -w, -c, -m, -L, "
        "alone "
        "or in one line with other commands that are allowed.");
  CHECK(meaning("frobnicate now *") ==
        "Runs `frobnicate now` followed by any words that do not begin with -, + or @, alone or in one line with other "
        "commands that are allowed.");
  CHECK(MeaningOfCommandPattern("git push", PatternUse::kHold).value_or("") ==
        "Every command line with a command that begins with `git push`, whatever follows; one that could have it and "
        "cannot be told asks.");
}

TEST_CASE("command patterns: refuses patterns that cannot be trusted", "[tools]") {
  for (const char* pattern :
       {"",        "*",           "git *",         "npm *",  "git push *", "git config *",   "env *",
        "bash *",  "python3 *",   "python3.11 *",  "find *", "sudo *",     "/usr/bin/env *", "make *",
        "xargs *", "cd web",      "cd *",          "eval x", "export A=b", "ls$x",           "ls ?",
        "ls *.c",  "l* x",        "ls * x",        "A=b ls", "ls > x",     "ls | wc",        "ls && wc",
        "$(ls)",   "ls \xc3\xa4", "git log --* x", "awk *",  "vim *",      "git -C x *"}) {
    CAPTURE(pattern);
    CHECK_FALSE(MeaningOfCommandPattern(pattern, PatternUse::kAllow));
    CHECK_FALSE(Covers({pattern}, "ls"));
  }
  for (const char* pattern : {"", "*", "ls | wc", "$(ls)", "cd x && ls", "ls ?"}) {
    CAPTURE(pattern);
    CHECK_FALSE(MeaningOfCommandPattern(pattern, PatternUse::kHold));
  }
}

TEST_CASE("command patterns: each part of a line needs one, and the needed ones are returned", "[tools]") {
  const Lines patterns = {"git status", "git log *", "head *"};
  CHECK(CommandCoveredBy(patterns, "git log | head -5 && git status") == std::vector<std::size_t>{1, 2, 0});
  CHECK(CommandCoveredBy(patterns, "git status") == std::vector<std::size_t>{0});
  CHECK_FALSE(CommandCoveredBy(patterns, "git log | tail"));
  CHECK_FALSE(CommandCoveredBy({}, "git status"));
}

TEST_CASE("command patterns: one that holds back applies to all that might match", "[tools]") {
  const auto touch = [](const char* pattern, const char* command) { return CommandTouches(pattern, command); };
  for (const char* line : {"git push",
                           "git push origin main",
                           "/usr/bin/git push",
                           "git -C x push",
                           "git --no-pager push",
                           "\\git push",
                           "'git' \"push\"",
                           "GIT push",
                           "ls; git push",
                           "ls | git push",
                           "ls && git push",
                           "ls & git push",
                           "X=1 git push",
                           "git push > x",
                           "env git push",
                           "sudo git push",
                           "xargs git push",
                           "nice -n 5 git push",
                           "timeout 5 git push",
                           "busybox git push",
                           "command git push",
                           "exec git push",
                           "git\tpush",
                           "find . -exec git push \\;",
                           "git push $x",
                           "git push *"}) {
    CAPTURE(line);
    CHECK(touch("git push", line) == Touch::kYes);
    CHECK(touch("git push *", line) == Touch::kYes);
  }
  for (const char* line : {"$g push",
                           "git $p",
                           "git p*",
                           "g?t push",
                           "$(echo git) push",
                           "`git push`",
                           "sh -c 'git push'",
                           "bash x",
                           "python3 -c x",
                           "eval x",
                           "if git push; then ls; fi",
                           "git -c alias.x=push x",
                           "xargs -n1 x",
                           "(git push)",
                           "git push <<E\nE",
                           "X=1",
                           "{ git push; }",
                           "ls --x=git",
                           ". x",
                           "git() { x; }",
                           "g{it,x} push",
                           "git bisect run git push",
                           "git -C x submodule foreach git push",
                           "git rebase -x 'git push' main",
                           "git rebase --exec='x && GIT push' main",
                           "git difftool -y -x 'git push;:' x",
                           "git grep -O'git push;:' x",
                           "npm exec -- git push",
                           "npm exec -c 'cd x && git push'",
                           "pnpm dlx x --do='git push'",
                           "yarn exec git push",
                           "rustup run stable git push",
                           "hyperfine 'git push'",
                           "unknown --run 'sh -c \"git push\"'",
                           "unknown 'git push \"'"}) {
    CAPTURE(line);
    CHECK(touch("git push", line) != Touch::kNo);
  }
  for (const char* line : {"git status", "git commit -m x", "ls", "echo git push", "ls *.c", "cat $x", "ls > git",
                           "git log push", "cd x && ls", "grep 'git push' x", "git commit -m 'git push later'",
                           "git tag -m 'before git push' x", "npm run git push", "git rebase main",
                           "unknown 'x y' --z='a b'", "cargo test push", "npm test -- --x='git push'"}) {
    CAPTURE(line);
    CHECK(touch("git push", line) == Touch::kNo);
  }
  CHECK(touch("rm -rf", "rm -rf x") == Touch::kYes);
  CHECK(touch("rm -rf", "rm -r -f x") == Touch::kMaybe);
  CHECK(touch("rm -rf", "rm --recursive x") == Touch::kMaybe);
  CHECK(touch("rm -rf", "rm x") == Touch::kNo);
  CHECK(touch("rm; mv", "mv a b") == Touch::kYes);
}

TEST_CASE("command patterns: a program may run another through an option, an alias or a setting", "[tools]") {
  for (const char* line :
       {// an option of a program that otherwise runs nothing, in each of its spellings
        "sort -S 1b --compress-program=sh r.txt", "sort -S 1b --compress-program sh r.txt", "sort --comp=sh r.txt",
        "sort --c=sh r", "sort -S1b '--compress-program=./x' r", "sort r --compress-prog=/bin/dash",
        "sort --compress-program=$X r", "sort $X r", "sort --compress{-program=sh,} r", "sort *", "sort *.txt",
        "cat r | sort --compress-program=sh", "/usr/bin/sort --compress-program=sh r", "rg --pre sh", "rg --pre=sh x",
        "rg x --pre ./x.sh", "rg --hostname-bin=./x y", "rg -z x", "rg -nz x", "rg --search-zip x", "rg --sear x",
        "file -z x", "file --uncompress x", "diff -l a b", "diff --pag a b", "diff3 --diff-program=./x a b c",
        "sdiff --diff-program=./x a b", "sdiff -o out a b", "install --strip-program=./x -s a b",
        "install -s --strip-p=./x a b", "wget -e use_askpass=./x y", "wget --use-askpass=./x y",
        "pandoc --filter=./x a", "pandoc -F ./x a", "pandoc --lua-f=x a", "restic --password-command=./x ls",
        "borg --rsh=./x list", "objdump --plugin=./x.so a", "nm --plugin ./x a",
        // sub-commands of git
        "git grep -Osh x", "git grep -O x", "git grep -nO x", "git grep --open-files-in-pager=sh x",
        "git grep --open x", "git -C a grep -Osh x", "git diff --ext-diff", "git log -p --ext-diff",
        "git show --textconv x", "git log --show-signature", "git log --show-sig", "git rebase -x ./x main",
        "git rebase --exec=./x main", "git rebase --ex ./x", "git push --receive-pack=./x y z", "git push --exec ./x y",
        "git fetch --upload-pack=./x y", "git pull --upload-pack ./x", "git pull -s x", "git merge -s x y",
        "git merge --strategy=x y", "git clone -u ./x y", "git clone --upload-pack=./x y",
        "git clone -c core.pager=x y", "git clone --template=./x y", "git init --template=./x",
        "git ls-remote --upload-pack=./x y", "git archive --remote=x --exec=./y HEAD", "git bisect run ./x",
        "git bisect run sh x", "git submodule foreach ./x", "git filter-branch --tree-filter ./x", "git difftool -x x",
        "git difftool --extcmd=./x", "git mergetool --tool=x", "git send-email --smtp-server=./x a",
        "git instaweb --httpd=./x", "git maintenance run", "git for-each-repo --config=x y", "git fetch ext::sh",
        "git fetch 'ext::./x y'", "git remote add x 'ext::sh -c x'", "git branch --edit-description",
        "git cat-file --textconv HEAD:x", "git blame --textconv x", "git stash show --ext-diff",
        // options of git itself, and what they set
        "git -c core.pager=./x log", "git -c core.fsmonitor=./x status", "git -ccore.pager=x log",
        "git --exec-path=./x status", "git --config-env=core.pager=X log", "git -p log",
        // aliases and settings
        "git config alias.p push; git p", "git p", "git config set alias.p push", "git config --global alias.p push",
        "git config core.pager ./x", "git config core.fsmonitor ./x && git status", "git config core.hooksPath x",
        "git config --add filter.x.clean ./x", "git config -f .git/config core.editor x", "git config --edit",
        "git config -e", "git config edit", "git config --file=x core.pager y", "git config diff.external ./x",
        "git unknown-command", "git-push origin", "/usr/lib/git-core/git-push", "cargo p", "cargo --config alias.p=x p",
        "cargo --config 'target.x.runner=\"./x\"' run", "npm config set script-shell ./x", "npm set script-shell=x",
        "npm --script-shell=./x run t", "npm run t --script-shell ./x", "npm --script-sh=./x test", "npm -c x exec",
        "pnpm --script-shell=./x test", "yarn config set yarnPath ./x", "npm --git=./x install", "npm --node-o=x t",
        // programs that are not known, with one that runs anything
        "unknown sh r.txt", "unknown --do=sh", "unknown -x'sh r'", "unknown --do='bash r'", "unknown python3 x",
        "unknown --shell=/bin/dash x", "unknown -xsh", "unknown env x",
        // programs that run what they are given, by whatever option
        "tar --to-command=./x -xf a", "tar -I ./x -cf a b", "tar --checkpoint-action=exec=./x -cf a b",
        "rsync -e ./x a b:c", "find . -exec ./x ';'", "man -P ./x y", "sed -n '1e ./x' y", "sed 'w x' y",
        "awk 'BEGIN{system(\"./x\")}'", "xargs ./x", "env -S './x y'", "less x", "vim -c '!x' y", "zip -TT ./x a b",
        "ssh -o ProxyCommand=./x h", "scp -S ./x a b:c", "sftp -D ./x", "make SHELL=./x", "tcpdump -z ./x -r a",
        "prename 's/x/y/e' a", "hyperfine ./x", "watch ./x", "time ./x", "nice ./x", "split --filter=./x a"}) {
    CAPTURE(line);
    CHECK(CommandTouches("touch", line) == Touch::kMaybe);
  }
  for (const char* line : {"sort -r a",
                           "sort -S 1b a",
                           "sort --reverse -- --compress-program=sh",
                           "rg -n x",
                           "rg --pretty x",
                           "rg --hidden 'sh -c' .",
                           "file -b x",
                           "diff -u a b",
                           "diff --text a b",
                           "install -m 644 a b",
                           "git status",
                           "git log --oneline",
                           "git log -p",
                           "git diff --stat",
                           "git diff --text",
                           "git grep x",
                           "git grep -n sh",
                           "git push origin main",
                           "git fetch --all",
                           "git pull --rebase",
                           "git clone https://x/y",
                           "git commit -m 'sh x'",
                           "git commit --template=x",
                           "git rebase main",
                           "git merge --no-ff x",
                           "git -C a status",
                           "git config user.name x",
                           "git config --global user.email x",
                           "git config --get core.pager",
                           "git config core.pager",
                           "git config --list",
                           "git config -l",
                           "git config get core.pager",
                           "git init",
                           "git checkout -b x",
                           "git add -A",
                           "git submodule update",
                           "git bisect good",
                           "git stash",
                           "git remote -v",
                           "cargo test",
                           "cargo build --release",
                           "cargo +nightly test",
                           "npm test",
                           "npm run build",
                           "npm install x",
                           "npm ci",
                           "npm --global list",
                           "npm config get x",
                           "npm test -- --script-shell=x",
                           "yarn add x",
                           "ls sh",
                           "cat bash",
                           "mkdir sh",
                           "cp sh env",
                           "grep -r sh .",
                           "echo env",
                           "wc -l x",
                           "printf sh",
                           "unknown x --y=z",
                           "curl -o x https://y/",
                           "head -5 x | sort | uniq -c"}) {
    CAPTURE(line);
    CHECK(CommandTouches("touch", line) == Touch::kNo);
  }
  // A denied name is still seen behind them.
  for (const char* line : {"git -c x=y push", "env git push", "git --no-pager -C x push"}) {
    CAPTURE(line);
    CHECK(CommandTouches("git push", line) != Touch::kNo);
  }
}

TEST_CASE("command patterns: a sub-command is held back under its other names too", "[tools]") {
  struct Case {
    const char *pattern, *line;
    Touch touch;
  };
  for (const Case& each : std::vector<Case>{
           {"npm run deploy", "npm run-script deploy", Touch::kYes},
           {"npm run deploy", "npm --silent rum deploy", Touch::kMaybe},
           {"npm run deploy", "npm urn deploy", Touch::kYes},
           {"npm run deploy", "npm --prefix x run deploy", Touch::kMaybe},
           {"npm run deploy", "npm run build", Touch::kNo},
           {"npm run deploy", "env npm run-script deploy", Touch::kYes},
           {"npm run-script deploy", "npm run deploy", Touch::kYes},
           {"npm test", "npm t", Touch::kYes},
           {"npm test", "npm tst", Touch::kYes},
           {"npm test", "npm run test", Touch::kYes},
           {"npm test", "NPM t", Touch::kYes},
           {"npm test", "npm install-test", Touch::kMaybe},
           {"npm run", "npm start", Touch::kYes},
           {"npm install", "npm i", Touch::kYes},
           {"npm install", "npm isntall x", Touch::kYes},
           {"npm install", "npm ls", Touch::kNo},
           {"npm publish", "npm publ --dry-run", Touch::kMaybe},
           {"npm publish", "npm version 1.0.1", Touch::kNo},
           {"npm uninstall", "npm rm x", Touch::kYes},
           {"pnpm run deploy", "pnpm deploy x", Touch::kNo},
           {"pnpm run build", "pnpm build", Touch::kYes},
           {"pnpm run build", "pnpm --filter test build", Touch::kMaybe},
           {"pnpm install", "pnpm i", Touch::kYes},
           {"yarn run deploy", "yarn deploy", Touch::kYes},
           {"yarn install", "yarn", Touch::kYes},
           {"yarn add", "yarn --cwd x add y", Touch::kMaybe},
           {"cargo build", "cargo b", Touch::kYes},
           {"cargo build", "cargo +nightly b --release", Touch::kYes},
           {"cargo build", "cargo test", Touch::kNo},
           {"git add", "git stage x", Touch::kYes},
           {"git stage", "git add x", Touch::kYes},
           {"rustup toolchain install", "rustup install nightly", Touch::kYes},
           {"docker push", "docker image push x", Touch::kMaybe},
           {"make deploy", "make all", Touch::kMaybe},
           {"cat secrets", "cat notes", Touch::kNo},
           {"mkdir x", "mkdir y", Touch::kNo},
       }) {
    CAPTURE(each.pattern, each.line);
    CHECK(CommandTouches(each.pattern, each.line) == each.touch);
  }
}

TEST_CASE("command patterns: a program that is not known may run whatever it is given", "[tools]") {
  for (const char* line : {"choom -n 0 -- touch a", "choom -n 0 -- /usr/bin/tou?h a", "choom -n 0 -- /u*/bin/touch a",
                           "choom -n 0 -- $SHELL -c 't\"\"ouch a'", "choom -n 0 -- rbash -c x", "tini -- mawk x",
                           "gosu me find . -exec x ;", "op run -- make", "unknown --do='mawk x'"}) {
    CAPTURE(line);
    CHECK(CommandTouches("touch", line) == Touch::kMaybe);
  }
  for (const char* line : {"mkdir $x", "cp *.c x", "grep -r $x .", "choom -n 0 -- ls"}) {
    CAPTURE(line);
    CHECK(CommandTouches("touch", line) == Touch::kNo);
  }
}

// --- what really runs ------------------------------------------------------------------------------------------------

// Lines of the table, mutated at random with shell syntax.
std::string Spoilt(std::mt19937& random, const Lines& harmless, const Lines& hostile) {
  static const Lines pieces = {"'",
                               "\"",
                               "\\",
                               "$",
                               "$(touch owned)",
                               "`touch owned`",
                               "${x}",
                               "&&",
                               "||",
                               "|",
                               ";",
                               "&",
                               "\n",
                               " ",
                               "\t",
                               ">",
                               ">>",
                               "<",
                               "2>&1",
                               "*",
                               "?",
                               "[a]",
                               "~",
                               "#",
                               "=",
                               "!",
                               "{a,b}",
                               "--",
                               "-x",
                               "--output=x",
                               "-o x",
                               "sh",
                               "touch owned",
                               "x=1",
                               "cd /tmp",
                               "\r",
                               "\\\n",
                               "<<E\n",
                               "(",
                               ")",
                               "eval ",
                               "exec ",
                               "/",
                               ".",
                               "..",
                               "-",
                               "+",
                               "@",
                               "\xc3\xa4",
                               "\xc2\xa0",
                               "env ",
                               ">/dev/null"};
  const auto one_of = [&](const Lines& lines) { return lines[random() % lines.size()]; };
  std::string line = one_of(random() % 5 == 0 ? hostile : harmless);
  for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const std::size_t at = random() % (line.size() + 1);
    switch (random() % 5) {
      case 0:
      case 1:
        line.insert(at, one_of(pieces));
        break;
      case 2:
        line.erase(at, 1 + random() % 3);
        break;
      case 3:
        line +=
            std::array{" ", ";", " | ", " && ", "\n"}[random() % 5] + one_of(random() % 2 == 0 ? hostile : harmless);
        break;
      default:
        const std::string other = one_of(random() % 2 == 0 ? hostile : harmless);
        line = line.substr(0, at) + other.substr(random() % (other.size() + 1));
    }
  }
  return line;
}

// A folder to run lines in, where every program is one that writes down how it was called.
class Stage {
 public:
  Stage() {
    namespace fs = std::filesystem;
    for (const char* name : {"programs", "calls", "work/web", "work/src"})
      fs::create_directories(directory_.File(name));
    const std::string program =
        directory_.Write("program",
                         "#!/bin/sh\nfor word in \"${0##*/}\" \"$@\"; do printf '%s\\n' \"$word\"; done > " +
                             directory_.File("calls") + "/$$\n",
                         0700);
    for (const char* name :
         {"git",     "ls",     "cat",   "head",  "tail", "grep", "rg",   "wc",       "sort", "uniq", "cut",
          "tr",      "diff",   "file",  "du",    "stat", "tree", "jq",   "which",    "make", "bash", "cargo",
          "npm",     "pytest", "sh",    "touch", "env",  "rm",   "find", "sed",      "awk",  "id",   "node",
          "python3", "tee",    "xargs", "sudo",  "ssh",  "perl", "vim",  "sha256sum"}) {
      fs::create_symlink(program, directory_.File("programs/") + name);
    }
    for (const char* name : {"work/run.sh", "work/web/run.sh"}) fs::create_symlink(program, directory_.File(name));
    for (const char* name : {"work/a.txt", "work/-x", "work/src/a.cc"}) static_cast<void>(directory_.Write(name, ""));
    files_ = Files();
  }

  // The words of each call that the line came to.
  std::vector<Lines> Run(const char* shell, const std::string& line) const {
    const std::string path = "PATH=" + directory_.File("programs"), work = directory_.File("work");
    const std::array<const char*, 4> arguments{shell, "-c", line.c_str(), nullptr};
    const std::array<const char*, 2> environment{path.c_str(), nullptr};
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const int nothing = ::open("/dev/null", O_RDWR);
      for (const int fd : {0, 1, 2}) ::dup2(nothing, fd);
      if (::chdir(work.c_str()) != 0) ::_exit(1);
      ::execve(shell, const_cast<char**>(arguments.data()), const_cast<char**>(environment.data()));
      ::_exit(1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    std::vector<Lines> calls;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.File("calls"))) {
      std::ifstream file(entry.path());
      Lines words;
      for (std::string word; std::getline(file, word);) words.push_back(word);
      calls.push_back(std::move(words));
      std::filesystem::remove(entry.path());
    }
    return calls;
  }

  bool IsAsItWas() const { return Files() == files_; }

 private:
  Lines Files() const {
    Lines files;
    for (const auto& each : std::filesystem::recursive_directory_iterator(directory_.File("work")))
      files.push_back(each.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  TempDirectory directory_;
  Lines files_;
};

// Uses only the pattern's words; other tests check the options that may follow.
bool IsSpokenOf(const Lines& patterns, const Lines& words) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    std::istringstream text(pattern.starts_with("cd web && ") ? pattern.substr(10) : pattern);
    Lines said;
    for (std::string word; text >> word;) said.push_back(word.starts_with("./") ? word.substr(2) : word);
    const bool is_open = said.back() == "*";
    if (is_open) said.pop_back();
    const bool begins_so = words.size() >= said.size() && std::equal(said.begin(), said.end(), words.begin());
    return begins_so && (is_open || words.size() == said.size());
  });
}

TEST_CASE("command patterns: in a real shell a covered line runs only what the patterns cover", "[tools]") {
  const auto table = Table();
  const Lines patterns = table.at("patterns"), harmless = table.at("harmless"), hostile = table.at("hostile");
  const char* const chosen = std::getenv("REPRISE_COMMAND_LINES");
  const std::size_t wanted = chosen ? std::strtoul(chosen, nullptr, 10) : 80;
  std::mt19937 random(Catch::rngSeed());
  const Stage stage;
  std::size_t calls = 0;
  for (std::size_t covered = 0; covered < wanted;) {
    const std::string line = Spoilt(random, harmless, hostile);
    if (!Covers(patterns, line)) continue;
    ++covered;
    for (const char* shell : {"/bin/sh", "/bin/bash"}) {
      if (::access(shell, X_OK) != 0) continue;
      CAPTURE(shell, line);
      for (const Lines& words : stage.Run(shell, line)) {
        CAPTURE(words);
        CHECK(IsSpokenOf(patterns, words));
        ++calls;
      }
      REQUIRE(stage.IsAsItWas());
    }
  }
  CHECK(calls >= wanted / 2);
}

}  // namespace
}  // namespace reprise::command_pattern_test
