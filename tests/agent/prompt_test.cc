#include "agent/prompt.h"

#include "support/test.h"

namespace reprise::prompt_test {
namespace {

const std::vector<ToolSpec> kTools{{"echo", "", ""}, {"read_file", "", ""}};

std::string Compose(std::vector<PromptModule> modules, std::string memory = {}) {
  return JoinModules(ComposedModules({.modules = std::move(modules), .workspace = "/work"}, kTools,
                                     {.date = "2026-11-21", .memory = std::move(memory)}));
}

}  // namespace

TEST_CASE("ComposedModules: modules in order, trimmed", "[agent]") {
  CHECK(Compose({{"10-a", "\n one \n\n"}, {"20-b", "  \n"}, {"30-c", "two"}}) == "one\n\ntwo");
  CHECK(Compose({}).empty());
}

TEST_CASE("ComposedModules: placeholders are filled in once", "[agent]") {
  CHECK(Compose({{"10-a", "{{date}} {{tools}} {{workspace}} {{memory}}"}}, "page: {{date}}") ==
        "2026-11-21 echo, read_file /work page: {{date}}");
  CHECK(Compose({{"10-a", "a {{ date }} {x} {{A}} {{{date}}} {{"}}) == "a {{ date }} {x} {{A}} {2026-11-21} {{");
}

TEST_CASE("ComposedModules: a module whose placeholders are all empty is left out", "[agent]") {
  CHECK(Compose({{"10-a", "Known:\n{{memory}}"}, {"20-b", "b"}}) == "b");
  CHECK(Compose({{"10-a", "Known on {{date}}:\n{{memory}}"}}) == "Known on 2026-11-21:");
}

TEST_CASE("CheckPromptModule: an unknown placeholder is named", "[agent]") {
  CHECK(CheckPromptModule("{{date}} {{tools}} {{workspace}} {{memory}} {{ other }} {{"));
  const auto checked = CheckPromptModule("{{date}} {{secrets}}");
  REQUIRE_FALSE(checked);
  CHECK(checked.error().message.find("{{secrets}}") != std::string::npos);
}

TEST_CASE("DefaultPromptModules: short, in order, and the same all day", "[agent]") {
  const auto modules = DefaultPromptModules();
  CHECK(std::is_sorted(modules.begin(), modules.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const PromptModule& module : modules) CHECK(CheckPromptModule(module.text));
  const std::string text = Compose(modules);
  CHECK(text.size() < 500);
  CHECK(text.find("2026-11-21") != std::string::npos);
  CHECK(text.find("{{") == std::string::npos);
}

}  // namespace reprise::prompt_test
