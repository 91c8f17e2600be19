#include "tools/tool_catalog.h"

#include "reprise/timestamp.h"
#include "support/test.h"
#include "tools/tool_fixture.h"

namespace reprise::tool_catalog_test {
namespace {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::vector<std::string> Names(const ToolSet& registry) {
  std::vector<std::string> names;
  for (const ToolSpec& spec : registry.specs()) names.push_back(spec.name);
  return names;
}

}  // namespace

TEST_CASE_METHOD(ToolFixture, "Tools: the built-in set has the contracted names", "[tools]") {
  const std::vector<std::string> expected = {
      "echo",        "calculator",      "current_time",   "list_files",     "read_file",
      "find_files",  "search_files",    "write_file",     "edit_file",      "apply_patch",
      "delete_file", "run_shell",       "run_code",       "read_job",       "stop_job",
      "http_get",    "list_chat_files", "read_chat_file", "save_chat_file", "delete_chat_file",
      "ask_human",   "manage_tasks",    "update_plan",    "present_plan",   "research",
      "recall"};
  CHECK(Names(*registry) == expected);
  REQUIRE(registry->tools().size() == expected.size());
  for (const std::string& name : expected) {
    INFO(name);
    REQUIRE(registry->Find(name) != nullptr);
    const ToolTraits& traits = registry->Find(name)->traits();
    CHECK(traits.spec.name == name);
    CHECK(traits.spec.description.size() > 20);
    CHECK_FALSE(traits.approval_reason.empty());
    CHECK(Has(traits.spec.parameters, R"("additionalProperties":false)"));
  }
  CHECK(registry->Find("nothing") == nullptr);
}

TEST_CASE_METHOD(ToolFixture, "Tools: exactly those that change or send data ask", "[tools]") {
  std::vector<std::string> asking, changing;
  for (const Tool* tool : registry->tools()) {
    if (registry->RequiresApproval(*tool)) asking.push_back(tool->traits().spec.name);
    if (!tool->traits().read_only) changing.push_back(tool->traits().spec.name);
  }
  CHECK(asking == std::vector<std::string>{"write_file", "edit_file", "apply_patch", "delete_file", "run_shell",
                                           "run_code", "http_get", "save_chat_file", "delete_chat_file",
                                           "present_plan"});
  CHECK(changing == std::vector<std::string>{"write_file", "edit_file", "apply_patch", "delete_file", "run_shell",
                                             "run_code", "stop_job", "save_chat_file", "delete_chat_file"});
}

TEST_CASE_METHOD(ToolFixture, "Tools: allow, deny and require_approval take names and patterns", "[tools]") {
  auto options = Options();
  options.allow = {"*_file", "echo", "calculator"};
  options.deny = {"delete*"};
  options.require_approval = {"echo", "read_*"};
  Rebuild(std::move(options));
  CHECK(Names(*registry) == std::vector<std::string>{"echo", "calculator", "read_file", "write_file", "edit_file",
                                                     "read_chat_file", "save_chat_file"});
  CHECK(registry->Find("delete_file") == nullptr);
  CHECK(registry->RequiresApproval(*registry->Find("echo")));
  CHECK(registry->RequiresApproval(*registry->Find("read_file")));
  CHECK(registry->RequiresApproval(*registry->Find("write_file")));
  CHECK_FALSE(registry->RequiresApproval(*registry->Find("calculator")));
  auto others = Options();
  others.allow = {"ech?", "[qr]ead_file", "calculato\\r"};
  Rebuild(std::move(others));
  CHECK(Names(*registry) == std::vector<std::string>{"echo", "calculator", "read_file"});
}

TEST_CASE_METHOD(ToolFixture, "Tools: each tool refuses missing, wrong and unknown arguments", "[tools]") {
  for (const auto& [name, good, wrong] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"echo", R"({"text":"x"})", R"({"text":1})"},
           {"calculator", R"({"expression":"1"})", R"({"expression":[]})"},
           {"current_time", R"({"timezone":"UTC"})", R"({"timezone":2})"},
           {"list_files", R"({"path":"."})", R"({"path":true})"},
           {"read_file", R"({"path":"a","offset":1,"limit":2.0})", R"({"path":"a","offset":0})"},
           {"search_files", R"({"pattern":"a","path":"."})", R"({"pattern":""})"},
           {"write_file", R"({"path":"a","content":""})", R"({"path":"a"})"},
           {"edit_file", R"({"path":"a","old_text":"b","new_text":""})", R"({"path":"a","old_text":"","new_text":""})"},
           {"delete_file", R"({"path":"a"})", R"({"path":null})"},
           {"run_shell", R"({"command":"true","timeout_s":5})", R"({"command":"true","timeout_s":100000})"},
           {"ask_human", R"({"question":"a?","options":["b"]})", R"({"question":"a?","options":[1]})"},
           {"manage_tasks", R"({"action":"list"})", R"({"action":"drop"})"},
           {"update_plan", R"({"steps":["a"]})", R"({"steps":"a"})"},
           {"present_plan", R"({"plan":"a"})", R"({"plan":""})"},
           {"http_get", R"({"url":"http://a"})", R"({"url":{}})"}}) {
    INFO(name);
    const Tool& tool = *registry->Find(name);
    CHECK(registry->Validate(tool, good).has_value());
    CHECK_FALSE(registry->Validate(tool, wrong).has_value());
    std::string extra = good;
    extra.back() = ',';
    const auto unknown = registry->Validate(tool, extra + R"("surplus":1})");
    REQUIRE_FALSE(unknown.has_value());
    CHECK(unknown.error().code == ErrorCode::kInvalidArgument);
    CHECK(Has(unknown.error().message, "surplus"));
    const bool all_optional = name == "current_time" || name == "list_files";
    CHECK(registry->Validate(tool, "").has_value() == all_optional);
    CHECK_FALSE(registry->Validate(tool, "[]").has_value());
  }
}

TEST_CASE_METHOD(ToolFixture, "echo: returns its text", "[tools]") {
  CHECK(Run("echo", R"({"text":"gr\u00fc\u00df \ud83d\ude00"})").output == "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
}

TEST_CASE_METHOD(ToolFixture, "calculator: returns the value or what is wrong", "[tools]") {
  CHECK(Run("calculator", R"({"expression":"0.1+0.2"})").output == "0.3");
  const auto failed = Run("calculator", R"({"expression":"1/0"})");
  CHECK(failed.is_error);
  CHECK(failed.output == "cannot calculate: division by zero");
}

TEST_CASE_METHOD(ToolFixture, "current_time: UTC by default", "[tools]") {
  const auto now = Run("current_time", "");
  REQUIRE(now.output.size() == 24);
  const auto parsed = ParseTimestamp(now.output);
  REQUIRE(parsed.has_value());
  CHECK(std::chrono::abs(Now() - *parsed) < std::chrono::minutes(1));
}

namespace {

class ForeignTool final : public Tool {
 public:
  explicit ForeignTool(const std::string& name) {
    traits_.spec = {name, "from elsewhere", R"({"type":"object","properties":{"n":{"type":"integer"}}})"};
  }
  const ToolTraits& traits() const override { return traits_; }
  ToolOutcome Run(std::string_view, const ToolContext&) override { return {.output = traits_.spec.name}; }

 private:
  ToolTraits traits_;
};

std::vector<std::shared_ptr<Tool>> Foreign(const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<Tool>> tools;
  for (const std::string& name : names) tools.push_back(std::make_shared<ForeignTool>(name));
  return tools;
}

}  // namespace

TEST_CASE_METHOD(ToolFixture, "ToolCatalog: a server's tools come and go, but a held set does not change", "[tools]") {
  ToolCatalog catalog(Options());
  const std::size_t builtin = catalog.Current()->tools().size();
  catalog.SetServer({.name = "s", .state = ToolServer::State::kReady}, Foreign({"s__a", "s__b", "echo"}));
  const auto held = catalog.Current();
  CHECK(held->tools().size() == builtin + 2);  // "echo" is taken
  CHECK(held->specs().back().name == "s__b");
  CHECK(held->Validate(*held->Find("s__a"), R"({"n":1})").has_value());
  CHECK_FALSE(held->Validate(*held->Find("s__a"), R"({"n":"x"})").has_value());
  catalog.SetServer({.name = "s", .state = ToolServer::State::kFailed, .message = "gone"}, {});
  CHECK(catalog.Current()->tools().size() == builtin);
  CHECK(catalog.Servers() ==
        std::vector<ToolServer>{{.name = "s", .state = ToolServer::State::kFailed, .message = "gone"}});
  REQUIRE(held->Find("s__a") != nullptr);
  CHECK(held->Find("s__a")->Run("{}", {}).output == "s__a");
  catalog.SetServer({.name = "t"}, Foreign({"t__a"}));
  catalog.RemoveServer("s");
  catalog.RemoveServer("none");
  CHECK(catalog.Servers().size() == 1);
  CHECK(catalog.Current()->Find("t__a") != nullptr);
  catalog.RemoveServer("t");
  CHECK(catalog.Servers().empty());
  CHECK(catalog.Current()->tools().size() == builtin);
}

TEST_CASE_METHOD(ToolFixture, "ToolCatalog: allow, deny and require_approval hold for tools from elsewhere",
                 "[tools]") {
  auto options = Options();
  options.allow = {"s__*"};
  options.deny = {"*__b"};
  options.require_approval = {"s__c"};
  ToolCatalog catalog(std::move(options));
  catalog.SetServer({.name = "s"}, Foreign({"s__a", "s__b", "s__c"}));
  const auto set = catalog.Current();
  CHECK(Names(*set) == std::vector<std::string>{"s__a", "s__c"});
  CHECK_FALSE(set->RequiresApproval(*set->Find("s__a")));
  CHECK(set->RequiresApproval(*set->Find("s__c")));
  CHECK(catalog.Servers().front().tools == 2);
}

}  // namespace reprise::tool_catalog_test
