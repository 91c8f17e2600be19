#include "cli/hook_files.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/fixtures.h"
#include "support/test.h"

using namespace reprise;
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
    fs::create_directories(home.path("ws/hooks"));
    fs::create_directories(home.path("ws/bin"));
    fs::create_directories(home.path("out"));
    for (const char* name : {"ws/check", "ws/hooks/check.sh", "ws/bin/checker", "out/check"}) {
      home.Write(name, "#!/bin/sh\n", 0700);
    }
    fs::create_symlink("hooks/check.sh", home.path("ws/link"));
    fs::create_symlink("hooks", home.path("ws/linked"));
    fs::create_symlink(home.path("out/check"), home.path("ws/out_link"));
    fs::create_symlink("gone", home.path("ws/dangling"));
    fs::create_symlink(home.path("ws/hooks/check.sh"), home.path("out/into"));
    fs::create_symlink(home.path("ws/link"), home.path("out/into_link"));
    fs::create_symlink(home.path("ws"), home.path("other_name"));
    home.Write("ws/twice", "#!/bin/sh\n", 0700);
    fs::create_hard_link(home.path("ws/twice"), home.path("ws/hooks/again"));
  }

  Result<std::vector<std::string>> Files(std::vector<std::string> command, const std::string& workspace = "ws") const {
    Options options;
    options.workspace = home.path(workspace);
    options.hooks = {{.command = std::move(command)}};
    return FilesOfHooks(options);
  }
  std::string Complaint(std::vector<std::string> command) const {
    const auto files = Files(std::move(command));
    if (files) return "";
    CHECK(files.error().code == ErrorCode::kInvalidArgument);
    return files.error().message;
  }
  std::string Canonical(const std::string& name) const { return fs::canonical(home.path(name)); }

  test::TempDirectory home;
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Fixture, "FilesOfHooks: the files in the workspace that a command names", "[cli]") {
  const std::string script = Canonical("ws/hooks/check.sh");
  for (const Words& command :
       {Words{"./hooks/check.sh", "-v", "30"}, Words{"hooks/check.sh"}, Words{"sh", "hooks/check.sh"},
        Words{home.path("ws") + "//hooks/./check.sh"}, Words{home.path("other_name/hooks/check.sh")},
        Words{home.path("out/into")}, Words{"../ws/hooks/check.sh"}, Words{"sh", "--rules=./hooks/check.sh"},
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

TEST_CASE_METHOD(Fixture, "FilesOfHooks: what lies elsewhere, and texts, are passed over", "[cli]") {
  for (const Words& command : {Words{"sh", "-c", "exit 1"}, Words{home.path("out/check"), home.path("out/gone")},
                               Words{"../out/check", "/usr/lib/x:/opt"}, Words{"no_such_program"},
                               Words{"sh", std::string(9000, 'x')}, Words{"sh", "-I./gone", ""}}) {
    INFO(command.front());
    const auto files = Files(command);
    REQUIRE(files);
    CHECK(files->empty());
  }
  CHECK(Files({"./gone"}, "no_workspace"));
}

TEST_CASE_METHOD(Fixture, "FilesOfHooks: what could be put in another's place is refused", "[cli]") {
  for (const Words& command :
       {Words{"./link"}, Words{"linked/check.sh"}, Words{"./out_link"}, Words{"./dangling"}, Words{"sh", "link"},
        Words{"sh", "--rules=linked/check.sh"}, Words{home.path("out/into_link")}, Words{home.path("ws/link")}}) {
    INFO(command.front());
    CHECK(Has(Complaint(command), "symbolic link"));
  }
  for (const Words& command :
       {Words{"./gone"}, Words{"./go ne"}, Words{"hooks/gone/x"}, Words{"sh", "./gone.sh"}, Words{"A=1", "./gone"},
        Words{"sh", "--rules=./gone"}, Words{home.path("other_name/gone")}}) {
    INFO(command.front());
    CHECK(Has(Complaint(command), "is not there"));
  }
  CHECK(Has(Complaint({"hooks/../check"}), "\"..\""));
  CHECK(Has(Complaint({"./twice"}), "hard links"));
  CHECK(Complaint({"sh", "./gone.sh"}).starts_with("hooks[0].command: ./gone.sh "));
}

TEST_CASE_METHOD(Fixture, "FilesOfHooks: no program is found in the workspace by way of PATH", "[cli]") {
  fs::create_symlink(home.path("ws/bin"), home.path("bin"));
  fs::create_symlink(home.path("ws/check"), home.path("out/checker"));
  const std::string usual = ":/usr/bin:/bin";
  for (const std::string& path :
       {home.path("ws/bin"), home.path("bin"), std::string("bin"), home.path("ws/hooks/../bin")}) {
    INFO(path);
    const Variable variable("PATH", path + usual);
    CHECK(Has(Complaint({"checker"}), "by way of PATH"));
    CHECK(Complaint({"sh", "-c", "exit 0"}).empty());
  }
  const Variable variable("PATH", usual);
  CHECK(Has(Complaint({"check"}), "by way of PATH"));  // an empty folder is the present one
  CHECK(Has(Complaint({"PATH=bin", "checker"}), "by way of PATH"));
  CHECK(Files({"PATH=" + home.path("out"), "checker"}) == Words{Canonical("ws/check")});
}
