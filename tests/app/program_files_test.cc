#include "app/program_files.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::program_files_test {

namespace fs = std::filesystem;

namespace {

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

struct Fixture {
  Fixture() {
    fs::create_directories(home.File("ws/hooks"));
    fs::create_directories(home.File("ws/bin"));
    fs::create_directories(home.File("out"));
    for (const char* name : {"ws/check", "ws/hooks/check.sh", "ws/bin/checker", "out/check"}) {
      home.Write(name, "#!/bin/sh\n", 0700);
    }
    fs::create_symlink("hooks/check.sh", home.File("ws/link"));
    fs::create_symlink("hooks", home.File("ws/linked"));
    fs::create_symlink(home.File("out/check"), home.File("ws/out_link"));
    fs::create_symlink("gone", home.File("ws/dangling"));
    fs::create_symlink(home.File("ws/hooks/check.sh"), home.File("out/into"));
    fs::create_symlink(home.File("ws/link"), home.File("out/into_link"));
    fs::create_symlink(home.File("ws"), home.File("other_name"));
    home.Write("ws/twice", "#!/bin/sh\n", 0700);
    fs::create_hard_link(home.File("ws/twice"), home.File("ws/hooks/again"));
  }

  Result<std::vector<std::string>> Files(std::vector<std::string> command, const std::string& workspace = "ws") const {
    Options options;
    options.workspace = home.File(workspace);
    options.hooks = {{.command = std::move(command)}};
    return FilesOfPrograms(options);
  }
  std::string Complaint(std::vector<std::string> command) const {
    const auto files = Files(std::move(command));
    if (files) return "";
    CHECK(files.error().code == ErrorCode::kInvalidArgument);
    return files.error().message;
  }
  std::string Canonical(const std::string& name) const { return fs::canonical(home.File(name)); }

  TempDirectory home;
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: the files in the workspace that a command names", "[app]") {
  const std::string script = Canonical("ws/hooks/check.sh");
  for (const Words& command :
       {Words{"./hooks/check.sh", "-v", "30"}, Words{"hooks/check.sh"}, Words{"sh", "hooks/check.sh"},
        Words{home.File("ws") + "//hooks/./check.sh"}, Words{home.File("other_name/hooks/check.sh")},
        Words{home.File("out/into")}, Words{"../ws/hooks/check.sh"}, Words{"sh", "--rules=./hooks/check.sh"},
        Words{"A=1", "./hooks/check.sh"}, Words{"sh", "-c", "cat a/b > x=c/d", "hooks/check.sh"},
        Words{"curl", "https://127.0.0.1/hook", "--data=hooks/check.sh"},
        Words{"sh", ".", "./hooks", "hooks/check.sh"}}) {
    INFO(command.front());
    const auto files = Files(command);
    REQUIRE(files);
    CHECK(*files == Words{script});
    CHECK(Files(command, "other_name") == Words{script});
  }
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: what lies elsewhere, and texts, are passed over", "[app]") {
  for (const Words& command : {Words{"sh", "-c", "exit 1"}, Words{home.File("out/check"), home.File("out/gone")},
                               Words{"../out/check", "/usr/lib/x:/opt"}, Words{"no_such_program"},
                               Words{"sh", std::string(9000, 'x')}, Words{"sh", "-I./gone", ""}}) {
    INFO(command.front());
    const auto files = Files(command);
    REQUIRE(files);
    CHECK(files->empty());
  }
  CHECK(Files({"./gone"}, "no_workspace"));
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: data is no program, unless an interpreter is given it to run", "[app]") {
  home.Write("ws/notes.db", "rows");
  home.Write("ws/notes.txt", "print(1)");
  for (const Words& command :
       {Words{"no_such_program", "./notes.db"}, Words{"no_such_program", "--db=./notes.db", "./later.sqlite"},
        Words{"sh", home.File("out/check"), "./notes.txt", "./gone.csv"}}) {
    INFO(command.back());
    const auto files = Files(command);
    REQUIRE(files);
    CHECK(files->empty());
  }
  for (const Words& command : {Words{"python3", "./notes.txt"}, Words{"sh", "-x", "./notes.txt", "./notes.db"}}) {
    const auto files = Files(command);
    REQUIRE(files);
    CHECK(*files == Words{Canonical("ws/notes.txt")});
  }
  CHECK(Has(Complaint({"node", "./later.txt"}), "is not there"));
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: a folder that is run, or run from, is refused", "[app]") {
  const std::string workspace = home.File("ws");
  for (const Words& command :
       {Words{"python3", "./hooks"}, Words{"node", workspace}, Words{"npx", "--prefix", workspace, "x"},
        Words{"npm", "--prefix=" + workspace, "run", "start"}, Words{"make", "-C", "hooks"},
        Words{"env", "-C", workspace, "python3", "-m", "x"}, Words{"uv", "run", "--directory", workspace, "x"},
        Words{"nice", "python3", "./hooks"}, Words{"python3", home.File("other_name")}}) {
    INFO(command.front());
    CHECK(Has(Complaint(command), "a folder of programs in the workspace"));
  }
  for (const Words& command :
       {Words{"npx", "-y", "server-filesystem", workspace}, Words{"no_such_program", "--directory", workspace},
        Words{"python3", "-m", "hooks"}, Words{"python3", home.File("out")}}) {
    INFO(command.front());
    CHECK(Complaint(command).empty());
  }
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: what could be put in another's place is refused", "[app]") {
  for (const Words& command :
       {Words{"./link"}, Words{"linked/check.sh"}, Words{"./out_link"}, Words{"./dangling"}, Words{"sh", "link"},
        Words{"sh", "--rules=linked/check.sh"}, Words{home.File("out/into_link")}, Words{home.File("ws/link")}}) {
    INFO(command.front());
    CHECK(Has(Complaint(command), "symbolic link"));
  }
  for (const Words& command :
       {Words{"./gone"}, Words{"./go ne"}, Words{"hooks/gone/x"}, Words{"sh", "./gone.sh"}, Words{"A=1", "./gone"},
        Words{"sh", "--rules=./gone"}, Words{home.File("other_name/gone")}}) {
    INFO(command.front());
    CHECK(Has(Complaint(command), "is not there"));
  }
  CHECK(Has(Complaint({"hooks/../check"}), "\"..\""));
  CHECK(Has(Complaint({"./twice"}), "hard links"));
  CHECK(Complaint({"sh", "./gone.sh"}).starts_with("hooks[0].command: ./gone.sh "));
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: no program is found in the workspace by way of PATH", "[app]") {
  fs::create_symlink(home.File("ws/bin"), home.File("bin"));
  fs::create_symlink(home.File("ws/check"), home.File("out/checker"));
  const std::string usual = ":/usr/bin:/bin";
  for (const std::string& path :
       {home.File("ws/bin"), home.File("bin"), std::string("bin"), home.File("ws/hooks/../bin")}) {
    INFO(path);
    const Variable variable("PATH", path + usual);
    CHECK(Has(Complaint({"checker"}), "by way of PATH"));
    CHECK(Complaint({"sh", "-c", "exit 0"}).empty());
  }
  const Variable variable("PATH", usual);
  CHECK(Has(Complaint({"check"}), "by way of PATH"));  // an empty folder is the present one
  CHECK(Has(Complaint({"PATH=bin", "checker"}), "by way of PATH"));
  CHECK(Files({"PATH=" + home.File("out"), "checker"}) == Words{Canonical("ws/check")});
}

namespace {

Result<std::vector<std::string>> ServerFiles(const Fixture& fixture, McpServerOptions server) {
  Options options;
  options.workspace = fixture.home.File("ws");
  options.mcp_servers = {std::move(server)};
  return FilesOfPrograms(options);
}

std::string ServerComplaint(const Fixture& fixture, McpServerOptions server) {
  const auto files = ServerFiles(fixture, std::move(server));
  return files ? "" : files.error().message;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: the files in the workspace that an MCP server's command names", "[app]") {
  const std::string script = Canonical("ws/hooks/check.sh");
  CHECK(ServerFiles(*this, {.name = "m", .command = script}) == Words{script});
  CHECK(ServerFiles(*this, {.name = "m", .command = "sh", .arguments = {script}}) == Words{script});
  CHECK(ServerFiles(*this, {.name = "m", .command = "sh", .arguments = {"-v", "--rules=" + script}}) == Words{script});
  // They do not run in the workspace, so nothing there is named by a relative word; folders are data.
  CHECK(ServerFiles(*this, {.name = "m", .command = "npx", .arguments = {"-y", "@scope/name", "hooks/check.sh"}}) ==
        Words{});
  CHECK(ServerFiles(*this, {.name = "m", .command = "sh", .arguments = {Canonical("ws"), Canonical("ws/hooks")}}) ==
        Words{});
  CHECK(ServerFiles(*this, {.name = "m", .command = "sh", .arguments = {"x"}, .cwd = home.File("out")}) == Words{});
  CHECK(ServerFiles(*this, {.name = "m", .command = "", .url = "https://127.0.0.1/mcp"}) == Words{});
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: what leads an MCP server into the workspace is refused", "[app]") {
  const std::string ws = Canonical("ws");
  CHECK(Has(ServerComplaint(*this, {.name = "m", .command = ws + "/gone"}), "mcpServers.m.command: "));
  CHECK(Has(ServerComplaint(*this, {.name = "m", .command = ws + "/link"}), "symbolic link"));
  CHECK(Has(ServerComplaint(*this, {.name = "m", .command = "sh", .arguments = {ws + "/twice"}}), "hard links"));
  fs::create_symlink(ws, home.File("out/way"));
  for (const std::string& cwd : {ws, ws + "/hooks", ws + "/gone", home.File("out/way")}) {
    INFO(cwd);
    CHECK(Has(ServerComplaint(*this, {.name = "m", .command = "sh", .cwd = cwd}), "mcpServers.m.cwd: "));
  }
  using Variables = std::vector<std::pair<std::string, std::string>>;
  for (const Variables& variable :
       {Variables{{"NODE_PATH", "/usr/lib:" + ws}}, Variables{{"PYTHONPATH", ws + "/hooks"}},
        Variables{{"NODE_OPTIONS", "--require " + ws + "/x.js"}},
        Variables{{"PATH", home.File("out/way/bin") + ":/bin"}}, Variables{{"LD_PRELOAD", ws + "/x.so"}}}) {
    INFO(variable.front().first);
    const std::string complaint = ServerComplaint(*this, {.name = "m", .command = "sh", .environment = variable});
    CHECK(Has(complaint, "mcpServers.m.env." + variable.front().first + " leads into the workspace"));
  }
  CHECK(ServerComplaint(*this,
                        {.name = "m", .command = "sh", .environment = {{"ALLOWED", ws}, {"PYTHONPATH", "/usr/lib"}}})
            .empty());
}

TEST_CASE_METHOD(Fixture, "FilesOfPrograms: no MCP server's program is looked for in the workspace", "[app]") {
  const Variable variable("PATH", home.File("ws/bin") + ":bin:" + home.File("out"));
  CHECK(ServerFiles(*this, {.name = "m", .command = "checker"}) == Words{});
  fs::create_symlink(home.File("ws/check"), home.File("out/checker"));
  CHECK(ServerFiles(*this, {.name = "m", .command = "checker"}) == Words{Canonical("ws/check")});
}

}  // namespace reprise::program_files_test
