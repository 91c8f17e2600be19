#include "engine/prompt_parts.h"

#include <string>

#include "support/test.h"

namespace reprise::test::prompt_parts_test {
namespace {

const PromptFacts kFacts{.workspace = "/today", .environment = "", .git = "", .workspace_then = "/then"};
const std::string kEnvironment =
    "Tools work in the folder /then on Debian GNU/Linux 12 (bookworm), x86_64. run_shell is /bin/sh, in a sandbox "
    "unless "
    "its result says otherwise: commands write only in that folder and in /tmp, see the system but not the user's "
    "home, "
    "and have no network.";

// Whether `recorded` can have been made from this module, with values of another day.
bool Was(const std::string& recorded, const std::string& module) {
  for (const ModulePattern& each : PatternsOf({.modules = {{.name = "10-x", .text = module}}}, std::string::npos)) {
    return IsFilled(recorded, each.text, &kFacts);
  }
  return false;
}

}  // namespace

TEST_CASE("IsFilled: values differ by day and machine", "[drift]") {
  CHECK(Was("Today is 2025-01-15.", "Today is {{date}}."));
  CHECK(Was("Stay in /then. Now.", "Stay in {{workspace}}. Now."));
  CHECK(Was("Stay in /today.", "Stay in {{workspace}}."));
  CHECK(Was("Ask. " + kEnvironment, "Ask. {{environment}}"));
  CHECK(Was("Tools work in the folder /a b on Ubuntu 22.04.3 LTS, aarch64.", "{{environment}}"));
  CHECK(
      Was("Git: branch main at commit 0123456789ab; a merge is in progress; 3 tracked files changed and not staged, "
          "merge conflicts.",
          "Git: {{git}}"));
  CHECK(Was("Git: no branch, at commit 0123456789ab.", "Git: {{git}}"));
  CHECK(Was("Named:\nfile: a.md, b.md\npage: page-1 \"A page\"", "Named:\n{{memory}}"));
  CHECK(Was("Tools: read_file, write_file; 2025-01-15", "Tools: {{tools}}; {{date}}"));
  CHECK(Was("/then on 2025-01-15", "{{workspace}}{{git}} on {{date}}"));
}

TEST_CASE("IsFilled: words that are gone are no part of a value", "[drift]") {
  CHECK_FALSE(Was("Never use tools on 2025-01-15.", "{{date}}."));
  CHECK_FALSE(Was("You must ask before every deletion. " + kEnvironment, "{{environment}}"));
  CHECK_FALSE(Was(kEnvironment + " You must ask before every deletion.", "{{environment}}"));
  CHECK_FALSE(Was(kEnvironment + "\n\nAsk.", "{{environment}}"));
  CHECK_FALSE(Was("Stay in /then and never delete.", "Stay in {{workspace}}"));
  CHECK_FALSE(Was("Be very careful with money and never spend any.", "Be {{environment}}any."));
  for (const char* const name : {"date", "tools", "workspace", "environment", "git", "memory"}) {
    INFO(name);
    CHECK_FALSE(Was("Be very careful with money.", "{{" + std::string(name) + "}}"));
  }
  CHECK_FALSE(Was("Git: branch main at commit 0123456789ab. Never push.", "Git: {{git}}"));
  CHECK_FALSE(Was("Named:\nfile: a.md\nNever spend money.", "Named:\n{{memory}}"));
  CHECK_FALSE(Was("The rule of 2025-01-15.", "The rule of 2025-01-16."));  // a date, and no placeholder
}

TEST_CASE("IsFilled: a hostile text ends soon", "[drift]") {
  std::string module;
  for (int i = 0; i < 40; ++i) module += "{{memory}}a";
  CHECK_FALSE(Was(std::string(20'000, 'a') + "b", module + "{{date}}"));
}

}  // namespace reprise::test::prompt_parts_test
