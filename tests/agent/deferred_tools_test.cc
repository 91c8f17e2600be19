#include "agent/deferred_tools.h"

#include <algorithm>

#include "agent/context.h"
#include "support/fake_tools.h"
#include "support/test.h"

namespace reprise::deferred_tools_test {
namespace {

constexpr std::int64_t kWindow = 8192;

ToolOutcome Nothing(std::string_view, const ToolContext&) { return {}; }

void AddTool(FakeTools& tools, const std::string& name, const std::string& description) {
  ToolTraits traits;
  traits.spec = {name, description, R"({"type":"object"})"};
  tools.Add(std::move(traits), Nothing);
}

struct Many {
  explicit Many(int count) {
    AddTool(tools, "read_file", "Reads a file.");
    for (int i = 0; i < count; ++i) {
      AddTool(tools, "mail__tool_" + std::to_string(i), "Does number " + std::to_string(i) + std::string(100, '.'));
    }
    AddTool(tools, "tracker__create_issue", "Creates an issue, or a bug report.");
    AddTool(tools, "tracker__close_issue", "Closes it.");
  }
  FakeTools tools;
};

Message Search(const std::string& arguments) {
  return {.role = Role::kAssistant,
          .content = std::nullopt,
          .tool_calls = {{"s", std::string(kSearchToolsName), arguments}}};
}

}  // namespace

TEST_CASE("DeferredTools: few tools, or an unknown window, stay as they are", "[agent]") {
  const Many few(2), many(50);
  CHECK(DeferredTools(few.tools, kWindow).Current()->Find(kSearchToolsName) == nullptr);
  CHECK(DeferredTools(many.tools, 0).Current()->Find(kSearchToolsName) == nullptr);
  CHECK(DeferredTools(many.tools, 200'000).Current()->Find(kSearchToolsName) == nullptr);
}

TEST_CASE("DeferredTools: tools of servers are deferred, and can be called all the same", "[agent]") {
  const Many many(50);
  const DeferredTools deferred(many.tools, kWindow);
  const auto set = deferred.Current();
  CHECK(set == deferred.Current());
  Tool* const search = set->Find(kSearchToolsName);
  REQUIRE(search != nullptr);
  CHECK_FALSE(set->RequiresApproval(*search));
  CHECK(search->traits().spec.description.find("mail__* (50), tracker__* (2).") != std::string::npos);
  CHECK_FALSE(set->IsDeferred("read_file"));
  CHECK_FALSE(set->IsDeferred(kSearchToolsName));
  CHECK(set->IsDeferred("mail__tool_7"));
  CHECK(set->Find("mail__tool_7") == many.tools.Current()->Find("mail__tool_7"));
  CHECK(set->specs().size() == 54);
}

TEST_CASE("search_tools: names and words, the best first", "[agent]") {
  const Many many(50);
  const auto set = DeferredTools(many.tools, kWindow).Current();
  Tool& search = *set->Find(kSearchToolsName);
  const auto found = [&](const std::string& query) { return search.Run("{\"query\":\"" + query + "\"}", {}).output; };
  CHECK(found("Bug Report").starts_with("tracker__create_issue: Creates an issue"));
  CHECK(found("close issue").starts_with("tracker__close_issue: Closes it.\ntracker__create_issue"));
  CHECK(found("mail__tool_3").starts_with("mail__tool_3: Does number 3"));
  const std::string all = found("mail");
  CHECK(std::count(all.begin(), all.end(), '\n') == 8);
  CHECK(found("zzz").starts_with("No tool was found"));
  CHECK(found("read_file a b").starts_with("No tool was found"));
  for (const char* wrong : {"", "{}", "[]", R"({"query":1})", R"({"query":""})", R"({"query":"a","more":1})", "{"}) {
    CHECK_FALSE(set->Validate(search, wrong).has_value());
  }
  CHECK_FALSE(set->Validate(search, "{\"query\":\"" + std::string(1001, 'a') + "\"}").has_value());
  CHECK(set->Validate(search, R"({"query":"a"})").has_value());
}

TEST_CASE("FoundTools: those of searches in the messages, and those that were called", "[agent]") {
  const Many many(50);
  const auto set = DeferredTools(many.tools, kWindow).Current();
  CHECK(FoundTools(*set, {}).empty());
  Messages messages{Search(R"({"query":"bug report"})"), Search("broken"), Search(R"({"query":"zzz"})")};
  CHECK(FoundTools(*set, messages) == std::vector<std::string>{"tracker__create_issue"});
  messages.push_back({.role = Role::kAssistant,
                      .content = std::nullopt,
                      .tool_calls = {{"c", "mail__tool_9", "{}"}, {"d", "gone__x", "{}"}}});
  CHECK(FoundTools(*set, messages) == std::vector<std::string>{"mail__tool_9", "tracker__create_issue"});
  CHECK(FoundTools(*many.tools.Current(), messages).empty());
}

}  // namespace reprise::deferred_tools_test
