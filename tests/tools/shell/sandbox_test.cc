#include "tools/shell/sandbox.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "support/test.h"
#include "tools/files/known_paths.h"
#include "tools/files/run_by_others.h"
#include "tools/shell/command_runner.h"
#include "tools/tool_fixture.h"

namespace reprise::sandbox_test {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Sets an environment variable during its life.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    Set(value);
  }
  ~Variable() { Set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void Set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* const name_;
  std::optional<std::string> before_;
};

// A home with secrets; the workspace lies in it, or is it.
class HomeFixture : public ToolFixture {
 public:
  HomeFixture() : home_variable_("HOME", home()) {
    for (const char* name : {".ssh", ".config/op", ".mozilla", "other", "toolchain/bin", "cache", ".cargo"}) {
      fs::create_directories(home() + "/" + name);
    }
    for (const char* name : {".ssh/id_rsa", ".netrc", ".bash_history", ".config/op/config", ".mozilla/cookies",
                             "other/file", ".cargo/credentials.toml"}) {
      WriteOutside(std::string("home/") + name, "canary\n");
    }
    WriteOutside("home/toolchain/bin/tool", "#!/bin/sh\necho tool runs\n");
    ::chmod((home() + "/toolchain/bin/tool").c_str(), 0755);
  }

  std::string home() const { return outside() + "/home"; }
  ToolOptions WorkingIn(const std::string& folder) {
    ToolOptions options = Options();
    options.workspace_directory = folder;
    return options;
  }
  bool Sandboxed() {
    const bool sandboxed = !Has(registry->Find("run_shell")->traits().approval_reason, "WITHOUT");
    if (!sandboxed) WARN("skipped: this machine has no sandbox for commands");
    return sandboxed;
  }
  bool Asks(const std::string& tool, const std::string& arguments) {
    return registry->Find(tool)->ReasonToAsk(arguments).has_value();
  }
  std::string Shell(const std::string& command) { return Run("run_shell", Args({{"command", command}})).output; }

 private:
  Variable home_variable_;
};

constexpr const char* kReadAll =
    "for f in .ssh/id_rsa .netrc .bash_history .config/op/config .mozilla/cookies .cargo/credentials.toml; do cat ";

}  // namespace

TEST_CASE_METHOD(HomeFixture, "Sandbox: shows only the workspace and configured paths of the home",
                 "[tools][sandbox]") {
  fs::create_directory(home() + "/project");
  auto options = WorkingIn(home() + "/project");
  fs::create_directory_symlink(home() + "/toolchain", home() + "/current");
  options.shell.readable_paths = {home() + "/toolchain", home() + "/current", home() + "/absent", home() + "/.cargo"};
  options.shell.writable_paths = {home() + "/cache/"};
  Rebuild(std::move(options));
  if (!Sandboxed()) return;
  CHECK_FALSE(Has(
      Shell(std::string(kReadAll) + home() + "/$f; done; cat " + home() + "/other/file " + outside() + "/secret.txt"),
      "canary"));
  CHECK_FALSE(Has(Shell("cat " + outside() + "/secret.txt"), "top secret"));
  CHECK(Shell("ls -A ~; echo $HOME") == ".cargo\ncache\ncurrent\nproject\ntoolchain\n" + home() + "\n");
  CHECK(Shell("~/toolchain/bin/tool; ~/current/bin/tool") == "tool runs\ntool runs\n");
  Shell("touch ~/toolchain/new ~/cache/made ~/mine made");
  CHECK_FALSE(fs::exists(home() + "/toolchain/new"));
  CHECK_FALSE(fs::exists(home() + "/mine"));
  CHECK(fs::exists(home() + "/cache/made"));
  CHECK(fs::exists(home() + "/project/made"));
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: without HOME there is no home folder either", "[tools][sandbox]") {
  const Variable none("HOME", std::nullopt);
  Rebuild();
  if (!Sandboxed()) return;
  for (const char* folder : {"/root", "/home", "/srv", "/mnt", "/media", "/sys", "/boot", "/var/lib", "/var/log"}) {
    INFO(folder);
    CHECK(Has(Shell(std::string("ls -A ") + folder), "No such file"));
  }
  CHECK(Has(Shell("cat " + home() + "/other/file"), "No such file"));
  CHECK(Shell("echo $HOME; ls -A /run /tmp/ /var/tmp | grep -v '^$\\|:$'").starts_with("/tmp\n"));
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: in a home that is the workspace, secrets are hidden and the rest is not",
                 "[tools][sandbox]") {
  Rebuild(WorkingIn(home()));
  if (!Sandboxed()) return;
  CHECK_FALSE(Has(Shell(std::string(kReadAll) + "$f; done"), "canary"));
  CHECK(Shell("cat other/file; echo $HOME") == "canary\n/tmp\n");
  CHECK_FALSE(Has(Shell("mv .ssh old; cat old/id_rsa; mv .netrc n; cat n; ln .netrc l; cat l"), "canary"));
  Shell("mv .cargo a; mkdir -p .cargo; echo theirs > .cargo/credentials.toml");
  CHECK(ReadFrom(home() + "/.cargo/credentials.toml") == "canary\n");
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: shows only the files of /etc that every user may read", "[tools][sandbox]") {
  Rebuild();
  if (!Sandboxed()) return;
  CHECK(Has(Shell("cat /etc/passwd"), "root:"));
  CHECK_FALSE(Has(Shell("cat /etc/shadow /etc/gshadow 2>/dev/null"), ":"));
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: nothing in /etc can be read that not every user may read", "[tools][sandbox]") {
  Rebuild();
  if (!Sandboxed()) return;
  CHECK(Shell("find /etc -type f ! -perm -004 -exec cat {} + 2>/dev/null; true") == "(no output)");
  CHECK(Shell("find /etc -mindepth 1 -type d ! -perm -004 -exec ls -A {} ';' 2>/dev/null; true") == "(no output)");
}

TEST_CASE_METHOD(ToolFixture, "ClosedIn: leaves out what a command cannot open without capabilities",
                 "[tools][sandbox]") {
  constexpr ::uid_t kAnother = 12345;
  for (const char* file : {"open", "own", "own-unreadable", "foreign", "of-my-group"}) Write(file, "canary");
  for (const char* folder : {"folder", "foreign-folder", "entered"}) fs::create_directory(Inside(folder));
  Write("folder/own", "canary");
  const auto change = [&](const char* name, ::mode_t mode, ::uid_t user) {
    CHECK(::chmod(Inside(name).c_str(), mode) == 0);
    return user == ::geteuid() || ::chown(Inside(name).c_str(), user, ::getegid()) == 0;
  };
  change("own", 0600, ::geteuid());
  change("own-unreadable", 0000, ::geteuid());
  change("folder", 0700, ::geteuid());
  if (!change("foreign", 0600, kAnother)) {
    WARN("not root: files of other users are not tried");
    return;
  }
  change("foreign-folder", 0700, kAnother);
  change("entered", 0711, kAnother);
  change("of-my-group", 0640, kAnother);
  std::vector<std::string> closed = ClosedIn(workspace());
  std::ranges::sort(closed);
  CHECK(closed == std::vector<std::string>{Inside("entered"), Inside("folder"), Inside("of-my-group"), Inside("own"),
                                           Inside("own-unreadable")});
  CHECK(Read("foreign") == "canary");  // the capabilities are back
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: sockets of others on disk are out of reach", "[tools][sandbox]") {
  const std::string path = home() + "/agent";
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  Rebuild();
  if (!Sandboxed()) return;
  const auto outcome =
      Run("run_code",
          Args({{"language", "python"},
                {"code", "import socket\nsocket.socket(socket.AF_UNIX).connect('" + path + "')\nprint('connected')"}}));
  CHECK(Has(outcome.output, "FileNotFoundError"));
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: calls that reach beyond it are not permitted", "[tools][sandbox]") {
  Rebuild();
  if (!Sandboxed()) return;
  const std::string code =
      "import ctypes, errno, os, socket, fcntl\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "def call(name, number, *args):\n"
      "  ctypes.set_errno(0)\n"
      "  done = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, args))\n"
      "  print(name, errno.errorcode.get(ctypes.get_errno(), done))\n"
      "def attempt(name, do):\n"
      "  try: do(); print(name, 'done')\n"
      "  except OSError as e: print(name, errno.errorcode[e.errno])\n"
      "call('keyctl', " +
      std::to_string(SYS_keyctl) +
      ", 0, -3, 0)\n"
      "call('add_key', " +
      std::to_string(SYS_add_key) +
      ", 0, 0, 0, 0, -3)\n"
      "call('unshare', " +
      std::to_string(SYS_unshare) +
      ", 0x10000000)\n"
      "call('clone', " +
      std::to_string(SYS_clone) +
      ", 0x10000000, 0, 0, 0, 0)\n"
      "call('clone3', " +
      std::to_string(SYS_clone3) +
      ", 0, 0)\n"
      "call('bpf', " +
      std::to_string(SYS_bpf) +
      ", 0, 0, 0)\n"
      "call('userfaultfd', " +
      std::to_string(SYS_userfaultfd) +
      ", 0)\n"
      "call('perf_event_open', " +
      std::to_string(SYS_perf_event_open) +
      ", 0, 0, 0, 0, 0)\n"
      "call('mount', " +
      std::to_string(SYS_mount) +
      ", 0, 0, 0, 0, 0)\n"
      "call('io_uring_setup', " +
      std::to_string(SYS_io_uring_setup) +
      ", 1, 0)\n"
      "call('fchmodat2', 452, -100, 0, 0o4755, 0)\n"
      "attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))\n"
      "attempt('pair', lambda: socket.socketpair(40, socket.SOCK_STREAM))\n"
      "attempt('unix pair', lambda: socket.socketpair())\n"
      "attempt('unix', lambda: socket.socket(socket.AF_UNIX))\n"
      "attempt('typing', lambda: fcntl.ioctl(0, 0x5412, b'x'))\n"
      "open('file', 'w').close()\n"
      "attempt('chmod', lambda: os.chmod('file', 0o4755))\n"
      "attempt('fchmod', lambda: os.fchmod(os.open('file', os.O_RDONLY), 0o2755))\n"
      "attempt('open', lambda: os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755))\n"
      "attempt('mknod', lambda: os.mknod('node', 0o104755))\n"
      "attempt('plain', lambda: os.chmod('file', 0o755))\n";
  const auto outcome = Run("run_code", Args({{"language", "python"}, {"code", code}}));
  CHECK(outcome.output ==
        "keyctl EPERM\nadd_key EPERM\nunshare EPERM\nclone EPERM\nclone3 ENOSYS\nbpf EPERM\nuserfaultfd EPERM\n"
        "perf_event_open EPERM\nmount EPERM\nio_uring_setup ENOSYS\nfchmodat2 EPERM\nvsock EAFNOSUPPORT\npair "
        "EAFNOSUPPORT\nunix pair done\nunix done\n"
        "typing EPERM\nchmod EPERM\nfchmod EPERM\nopen EPERM\nmknod EPERM\nplain done\n");
  CHECK_FALSE(fs::exists(Inside("made")));
  CHECK_FALSE(fs::exists(Inside("node")));
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: folders in memory are limited, and nothing else is writable",
                 "[tools][sandbox]") {
  auto options = Options();
  options.shell.limits.tmp_mb = 1;
  Rebuild(std::move(options));
  if (!Sandboxed()) return;
  for (const char* folder : {"/tmp", "~", "/var/tmp", "/run", "/dev/shm"}) {
    INFO(folder);
    CHECK(Has(Shell(std::string("head -c 3000000 /dev/zero > ") + folder + "/big"), "No space left"));
  }
  CHECK(Shell("for d in / /dev /usr /etc /var /opt; do touch $d/new 2>/dev/null && echo $d; done; true") ==
        "(no output)");
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: a workspace that is gone is no missing sandbox", "[tools][sandbox]") {
  if (!Sandboxed()) return;
  fs::create_directory(home() + "/project");
  Rebuild(WorkingIn(home() + "/project"));
  fs::rename(home() + "/project", home() + "/elsewhere");  // before anything asked for the sandbox
  CHECK(Sandboxed());
  const auto result = Run("run_shell", Args({{"command", "touch made"}}));
  CHECK(result.is_error);
  CHECK(Has(result.output, home() + "/project"));
  CHECK(fs::is_empty(home() + "/elsewhere"));
}

TEST_CASE_METHOD(HomeFixture, "Commands have limits of memory, file size and processes", "[tools][sandbox]") {
  auto options = Options();
  options.shell.sandbox = GENERATE(SandboxUse::kWhenAvailable, SandboxUse::kNever);
  options.shell.limits = {.memory_mb = 300, .processes = 77, .file_size_mb = 1};
  Rebuild(std::move(options));
  const auto filled =
      Run("run_code", Args({{"language", "python"}, {"code", "x = bytearray(600 << 20)\nprint('has')"}}));
  CHECK(Has(filled.output, "MemoryError"));
  CHECK_FALSE(Has(filled.output, "has\n"));
  Shell("head -c 3000000 /dev/zero > big");
  CHECK(fs::file_size(Inside("big")) == 1024 * 1024);
  const std::string limits = Shell("cat /proc/self/limits; cat /proc/self/oom_score_adj");
  if (Sandboxed()) CHECK(Has(limits, "Max processes             77                   77"));
  CHECK(Has(limits, "Max core file size        0                    0"));
  CHECK(Has(limits, "\n1000\n"));
}

TEST_CASE_METHOD(ToolFixture, "Sandbox: a command runs in the folder that was looked at, within its limit of processes",
                 "[tools][sandbox]") {
  CHECK(StartProgram() >= 0);
  const int start = GENERATE(StartProgram(), -1);
  INFO(start);
  const Sandbox sandbox({.workspace = workspace(), .limits = {.processes = 77}, .start_program = start});
  if (!sandbox.available()) return;
  const auto run = [&](const std::string& folder) {
    struct stat status {};
    REQUIRE(::stat(folder.c_str(), &status) == 0);
    const std::string id = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
    const Command command{
        .argv = {"/bin/sh", "-c", R"(grep processes /proc/self/limits; ls /proc/self/fd; echo "$1$A")", "sh",
                 "two words "},
        .environment = {"A=b"},
        .directory = "/"};
    const auto result = RunCommand(sandbox.Confined(command, {.workspace_id = id}), {}, std::stop_token());
    REQUIRE(result.has_value());
    return std::pair(result->status, result->output);
  };
  const auto [status, output] = run(workspace());
  CHECK(status == 0);
  CHECK(Has(output, "Max processes             77                   77"));
  CHECK(Has(output, "\n0\n1\n2\n3\ntwo words b\n"));
  CHECK(run(outside()) ==
        std::pair(126, std::string("the workspace was replaced while the command was being started\n")));
}

TEST_CASE_METHOD(HomeFixture, "Commands: compilers, interpreters and git work within the limits", "[tools][sandbox]") {
  Rebuild();
  Write("hello.c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }\n");
  Write("Makefile", "hello: hello.c\n\tcc -o hello hello.c\n");
  const auto is_there = [](const char* program) {
    return ::access((std::string("/usr/bin/") + program).c_str(), X_OK) == 0;
  };
  if (is_there("make") && is_there("cc")) CHECK(Has(Shell("make -s && ./hello"), "compiled\n"));
  if (is_there("node")) {
    // Reserves far more address space than it may fill.
    CHECK(Has(Shell("node -e 'new WebAssembly.Memory({initial: 1, maximum: 65536}); console.log(\"ran\")'"), "ran\n"));
  }
  if (is_there("git")) {
    CHECK(
        Has(Shell("git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m c && git log "
                  "--format=%s"),
            "c\n"));
  }
}

TEST_CASE_METHOD(HomeFixture, "Commands: a protected path that appears is reported", "[tools][sandbox]") {
  auto options = WorkingIn(home());
  options.protected_paths = {home() + "/reprise.json", home() + "/later/config"};
  options.shell.sandbox = GENERATE(SandboxUse::kWhenAvailable, SandboxUse::kNever);
  Rebuild(std::move(options));
  CHECK_FALSE(Has(Shell("echo free > free"), "it made"));
  CHECK(Has(Shell("echo {} > reprise.json"), "(it made \"reprise.json\","));
  CHECK_FALSE(Has(Shell("true"), "it made"));  // once
  CHECK(Has(Shell("mkdir later; ln -s /nowhere later/config; mkdir .gnupg"), "\".gnupg\""));
  CHECK(fs::is_symlink(home() + "/later/config"));
}

TEST_CASE_METHOD(HomeFixture, "File tools: secrets in the home ask", "[tools][sandbox]") {
  Rebuild(WorkingIn(home()));
  WriteOutside("home/.SSH", "canary\n");  // the same place on some file systems
  fs::create_directory_symlink(".ssh", home() + "/innocent");
  fs::create_symlink(".netrc", home() + "/innocent.txt");
  const std::string path =
      GENERATE(".ssh/id_rsa", ".netrc", ".bash_history", ".config/op/config", "other/../.netrc",
               "./.ssh/../.ssh/id_rsa", "innocent/id_rsa", "innocent.txt", ".SSH", ".cargo/credentials.toml");
  INFO(path);
  ToolContext approved;
  approved.approved = approved.knows_secrets = true;
  for (const std::string& given : {path, home() + "/" + path}) {
    const auto refused = Run("read_file", Args({{"path", given}}));
    CHECK(refused.is_error);
    CHECK_FALSE(Has(refused.output, "canary"));
    CHECK(Has(refused.output, "nobody was asked"));
    for (const char* tool : {"read_file", "list_files", "write_file", "edit_file", "delete_file"}) {
      INFO(tool);
      CHECK(Asks(tool, Args({{"path", given}})));
    }
    CHECK(Asks("search_files", Args({{"pattern", "canary"}, {"path", given}})));
    CHECK(Run("read_file", Args({{"path", given}}), approved).output == "canary\n");
  }
  CHECK_FALSE(Has(Run("search_files", Args({{"pattern", "canary"}, {"path", path}})).output, ": canary"));
  CHECK(Run("write_file", Args({{"path", path}, {"content", "x"}})).is_error);
  CHECK(Run("edit_file", Args({{"path", path}, {"old_text", "canary"}, {"new_text", "x"}})).is_error);
  // On a link it would act on the link itself.
  if (path != "innocent.txt") CHECK(Run("delete_file", Args({{"path", path}})).is_error);
  CHECK(ReadFrom(home() + "/" + path) == "canary\n");
  for (const char* open : {"other/file", "other", ".", "none", "none/at/all", "../"}) {
    INFO(open);
    CHECK_FALSE(Asks("read_file", Args({{"path", open}})));
  }
  CHECK(Asks("write_file", Args({{"path", ".ssh/new"}, {"content", "x"}})));
  for (const char* made : {".gnupg/new", ".aws/./credentials", ".config/gh/hosts.yml", "none/../.docker/config.json"}) {
    INFO(made);
    CHECK(Asks("write_file", Args({{"path", made}, {"content", "x"}})));
  }
  CHECK_FALSE(Asks("list_files", "{}"));
}

TEST_CASE_METHOD(HomeFixture, "File tools: searches and listings skip secrets and say so", "[tools][sandbox]") {
  Rebuild(WorkingIn(home()));
  const auto found = Run("search_files", Args({{"pattern", "canary"}}));
  CHECK(found.output ==
        "other/file:1: canary\n(6 files or directories where the user keeps secrets were not searched)");
  CHECK(Run("list_files", Args({{"path", ".ssh"}})).is_error);
  ToolContext approved;
  approved.approved = approved.knows_secrets = true;
  CHECK(Run("search_files", Args({{"pattern", "canary"}}), approved).output == found.output);
  CHECK(Run("list_files", Args({{"path", ".ssh"}}), approved).output == "id_rsa");
  CHECK(Run("write_file", Args({{"path", ".ssh/authorized_keys"}, {"content", "x"}})).is_error);
  CHECK_FALSE(Run("write_file", Args({{"path", ".ssh/config"}, {"content", "x"}}), approved).is_error);
}

TEST_CASE_METHOD(HomeFixture, "A workspace within a secret path is usable", "[tools][sandbox]") {
  fs::create_directory(home() + "/.claude");
  Rebuild(WorkingIn(home() + "/.claude"));
  CHECK_FALSE(Run("write_file", Args({{"path", "a"}, {"content", "text"}})).is_error);
  CHECK(Run("read_file", Args({{"path", "a"}})).output == "text");
  CHECK(Has(Shell("cat a; touch b"), "text"));
  CHECK(fs::exists(home() + "/.claude/b"));
}

TEST_CASE_METHOD(ToolFixture, "FindRunByOthers: closed folders are not looked at, and use up no part of its limit",
                 "[tools][sandbox]") {
  constexpr int kMoreThanItLooksAt = 20'100;
  fs::create_directories(Inside("chats"));
  for (int i = 0; i < kMoreThanItLooksAt; ++i) fs::create_directory(Inside("chats/" + std::to_string(i)));
  fs::create_directories(Inside("src/z"));
  Write("chats/.envrc", "");
  Write("src/z/.envrc", "");
  const auto found = FindRunByOthers(Inside(""), "", {Inside("chats")});
  CHECK(found.there == std::vector<std::string>{Inside("src/z/.envrc")});
}

TEST_CASE_METHOD(ToolFixture, "FindRunByOthers: names the files at any depth, and what could be made at the top",
                 "[tools][sandbox]") {
  for (const char* folder : {".git/hooks", "a/.VSCode", "a/b/bare/objects", "a/node_modules/.husky", "a/.yarn/releases",
                             "a/loose/objects", "user/.config/fish", "1/2/3/4/5/6", "a/.husky/.husky"}) {
    fs::create_directories(Inside(folder));
  }
  for (const char* file :
       {".git/config", "a/x.code-workspace", "a/b/bare/HEAD", "a/b/bare/config", ".envrc", "user/.bashrc",
        "user/.profile", "a/.bashrc", "1/2/3/4/5/.envrc", "1/2/3/4/5/6/.envrc", "a/code-workspace", "sub/.GIT"}) {
    fs::create_directories(fs::path(Inside(file)).parent_path());
    Write(file, "");
  }
  fs::create_directory_symlink("/", Inside("a/link"));
  const auto found = FindRunByOthers(workspace(), Inside("user"));
  std::set<std::string> there;
  for (const std::string& path : found.there) there.insert(fs::path(path).lexically_relative(workspace()).string());
  CHECK(there == std::set<std::string>{".envrc", ".git/config", ".git/hooks", "1/2/3/4/5/.envrc", "a/.VSCode",
                                       "a/.husky", "a/.yarn/releases", "a/b/bare/config", "a/x.code-workspace",
                                       "sub/.GIT", "user/.bashrc", "user/.config/fish", "user/.profile"});
  const auto is_missing = [&](const char* name) { return std::ranges::count(found.missing, Inside(name)) == 1; };
  CHECK(is_missing(".vscode"));
  CHECK(is_missing(".cargo/config.toml"));
  CHECK(is_missing(".git/commondir"));
  CHECK_FALSE(is_missing(".envrc"));
  CHECK_FALSE(is_missing("a/.envrc"));
  CHECK_FALSE(is_missing(".profile"));
}

TEST_CASE("SecretPaths: covers every home and every folder in the environment", "[tools][sandbox]") {
  const auto paths =
      SecretPaths({.homes = {"/h", "/other"}, .configs = {"/c"}, .data = {"/d"}, .states = {"relative"}});
  const auto holds = [&](const char* path) { return std::find(paths.begin(), paths.end(), path) != paths.end(); };
  for (const char* path : {"/h/.ssh", "/other/.ssh", "/h/.config/op", "/c/op", "/d/keyrings", "/h/.local/share/reprise",
                           "/h/.bash_history", "/h/.m2/settings.xml", "/h/.config/google-chrome", "/h/.thunderbird"}) {
    INFO(path);
    CHECK(holds(path));
  }
  CHECK(std::all_of(paths.begin(), paths.end(), [](const std::string& path) { return path.starts_with('/'); }));
}

TEST_CASE_METHOD(HomeFixture, "Sandbox: git commits as the user, and learns nothing more of them", "[tools][sandbox]") {
  const Variable xdg("XDG_CONFIG_HOME", std::nullopt), named("GIT_CONFIG_GLOBAL", std::nullopt);
  WriteOutside("home/more", "[pull]\n\trebase = true\n");
  WriteOutside("home/.git-credentials", "https://user:canary@example.com\n");
  WriteOutside(
      "home/.gitconfig",
      "[user]\n\tname = Ada \\\"Q\\\" Love\\\\lace\n\temail = ada@example.com\n\tsigningKey = canary\n"
      "[include]\n\tpath = more\n[init]\n\tdefaultBranch = trunk\n[color]\n\tui\n"
      "[core]\n\teditor = canary\n\tpager = canary\n\tfsmonitor = canary\n\thooksPath = /canary\n\tautocrlf = input\n"
      "[alias]\n\tx = !canary\n[http]\n\textraHeader = Authorization: canary\n"
      "[credential]\n\thelper = store\n[url \"https://canary@example.com\"]\n\tinsteadOf = x:\n"
      "[color \"diff\"]\n\tmeta = red\n[commit]\n\tgpgSign = true\n");
  fs::create_directory(home() + "/project");
  Rebuild(WorkingIn(home() + "/project"));
  if (!Sandboxed()) return;
  const std::string made = Shell(
      "git init -q repo && cd repo && echo x > f && git add f && git commit -qm one && "
      "git log -1 --format='%an <%ae> %cn' && git branch --show-current && cat ~/.gitconfig");
  INFO(made);
  CHECK(made.starts_with("Ada \"Q\" Love\\lace <ada@example.com> Ada \"Q\" Love\\lace\ntrunk\n"));
  CHECK(Has(made, "rebase = \"true\""));
  CHECK(Has(made, "autocrlf = \"input\""));
  CHECK(Has(made, "\tui\n"));
  CHECK_FALSE(Has(made, "canary"));
  CHECK_FALSE(Has(made, "gpg"));
  CHECK_FALSE(Has(Shell("cat ~/more ~/.git-credentials"), "canary"));
  // A change of the command is its own; one of the user counts from the next command on.
  CHECK(Shell("git config --global user.name Eve && git config user.name") == "Eve\n");
  CHECK(Has(Shell("git config user.name"), "Ada"));
  WriteOutside("home/.gitconfig", "[user]\n\tname = Grace\n");
  CHECK(Shell("git config user.name") == "Grace\n");
  // The real file stays hidden where the home can be read.
  auto options = WorkingIn(home());
  Rebuild(std::move(options));
  CHECK(Shell("git config user.name; echo $HOME") == "Grace\n/tmp\n");
}

}  // namespace reprise::sandbox_test
