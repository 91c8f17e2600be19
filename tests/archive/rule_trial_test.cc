#include "client/archive/rule_trial.h"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/present_folders.h"
#include "base/json.h"
#include "base/path.h"
#include "client/archive/past_calls.h"
#include "domain/codec.h"
#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::rule_trial_test {
namespace {

using Fate = PastCall::Fate;
using Verdict = TriedCall::Verdict;

std::string Write(const std::string& path) { return DumpJson({{"path", path}, {"content", "x"}}); }

PastCall CallIn(const std::string& chat, const std::string& path, Fate fate) {
  static int number = 0;
  const std::string id = "call_" + std::to_string(++number);
  PastCall call{.chat = *ChatId::Parse(chat), .interaction = InteractionId::FromNumber(1), .id = id, .fate = fate};
  call.call = {.id = id, .name = "write_file", .arguments = Write(path)};
  const bool was_asked = fate == Fate::kApproved || fate == Fate::kChanged || fate == Fate::kRejected;
  if (was_asked) call.asked.emplace().approval_id = id;
  return call;
}

// An agent of today in a folder without a configuration.
struct Here {
  TempDirectory folder;
  std::unique_ptr<PresentFolders> present;
  RuleTrial trial;

  explicit Here(std::vector<ToolRule> rules = {}, std::vector<std::string> require_approval = {})
      : present(Make(folder.path(), std::move(rules), std::move(require_approval))),
        trial([this](const std::string& path) { return present->At(path); }) {}
  static std::unique_ptr<PresentFolders> Make(const std::string& path, std::vector<ToolRule> rules,
                                              std::vector<std::string> require_approval) {
    Options options;
    options.workspace = path;
    options.tools.rules = std::move(rules);
    options.tools.require_approval = std::move(require_approval);
    return *PresentFolders::Open(options);
  }
};

ToolRules Rules(std::vector<ToolRule> rules) { return std::make_shared<const std::vector<ToolRule>>(std::move(rules)); }

const ToolRule kDocs{.tool = "write_file", .pattern = "docs/**", .action = RuleAction::kAllow};

}  // namespace

TEST_CASE("RuleTrial: a rule saves the question, and what a person rejected slips through", "[rules]") {
  Here here;
  const auto approved = CallIn("a", "docs/x", Fate::kApproved), rejected = CallIn("a", "docs/y", Fate::kRejected);
  const auto elsewhere = CallIn("a", "src/x", Fate::kApproved);
  TriedCall tried = here.trial.Try(approved, Rules({kDocs}));
  CHECK((tried.verdict == Verdict::kRuns && tried.saves_question() && !tried.has_slipped() && tried.why == "rule 1"));
  CHECK(here.trial.Try(rejected, Rules({kDocs})).has_slipped());
  CHECK(here.trial.Try(elsewhere, Rules({kDocs})).verdict == Verdict::kAsks);
  tried = here.trial.Try(elsewhere, Rules({kDocs, {.tool = "write_*", .pattern = {}, .action = RuleAction::kDeny}}));
  CHECK((tried.verdict == Verdict::kRefused && tried.is_new_refusal() && tried.why == "rule 2"));
}

TEST_CASE("RuleTrial: what let a call run then still does", "[rules]") {
  Here here;
  PastCall call = CallIn("a", "docs/x", Fate::kRan);
  for (const auto& [permission, now] : std::initializer_list<std::pair<const char*, const char*>>{
           {"grant", "grant"}, {"standing_grant", "grant"}, {"mode", "mode"}, {"auto", "auto"}}) {
    INFO(permission);
    call.permission = permission;
    const TriedCall tried = here.trial.Try(call, nullptr);
    // Whether a change can be taken back depends on the tool: here nothing is recorded, so `auto` may ask.
    if (std::string_view(permission) != "auto") CHECK((tried.verdict == Verdict::kRuns && tried.why == now));
  }
  call.permission = "rule";
  CHECK(here.trial.Try(call, nullptr).is_new_question());
}

TEST_CASE("RuleTrial: what rules do not decide is not tried, and named", "[rules]") {
  Here here;
  CHECK(here.trial.Try(CallIn("a", "x", Fate::kUnknown), nullptr).verdict == Verdict::kNotTried);
  CHECK(here.trial.Try(CallIn("a", "x", Fate::kRefused), nullptr).verdict == Verdict::kNotTried);
  PastCall call = CallIn("a", "x", Fate::kApproved);
  call.call.name = "nope";
  CHECK(here.trial.Try(call, nullptr).why == "there is no tool nope now");
  call.call.name = "write_file";
  call.call.arguments = R"({"path":7})";
  CHECK(here.trial.Try(call, nullptr).why == "their arguments do not fit the tool write_file of today");
  call.workspace = "/no/such/folder";
  CHECK(here.trial.Try(call, nullptr).why.find("there is no folder") == 0);
}

TEST_CASE("RuleTrial: a call that a person changed speaks against the pattern of what was asked", "[rules]") {
  Here here;
  PastCall changed = CallIn("a", "docs/x", Fate::kChanged);
  changed.changed_to = Write("src/x");
  CHECK(here.trial.Try(changed, Rules({kDocs})).has_slipped());
  std::vector<PastCall> calls{changed};
  for (const char* const chat : {"a", "b", "b"}) calls.push_back(CallIn(chat, "docs/y", Fate::kApproved));
  const auto suggested = here.trial.Suggest(calls);
  REQUIRE(suggested.size() == 1);
  CHECK((suggested[0].rule.pattern == "docs/y" && suggested[0].served == 3 && suggested[0].chats.size() == 2));
}

TEST_CASE("RuleTrial: the narrowest rule that serves is suggested, a wider one in place of those that it covers",
          "[rules]") {
  Here here;
  std::vector<PastCall> calls;
  for (const char* const chat : {"a", "b", "c"}) {
    calls.push_back(CallIn(chat, "docs/index.md", Fate::kApproved));
    calls.push_back(CallIn(chat, "one/same.md", Fate::kApproved));
  }
  for (const char* const path : {"docs/1", "docs/2", "docs/3"}) calls.push_back(CallIn("a", path, Fate::kApproved));
  calls.push_back(CallIn("b", "docs/4", Fate::kApproved));
  const auto suggested = here.trial.Suggest(calls);
  REQUIRE(suggested.size() == 2);
  CHECK((suggested[0].rule.pattern == "docs/**" && suggested[0].served == 7));
  CHECK((suggested[1].rule.pattern == "one/same.md" && suggested[1].served == 3));
  CHECK(suggested[1].means.ends_with("."));
  // Too few, or in one chat.
  calls.erase(calls.begin() + 2, calls.end());
  CHECK(here.trial.Suggest(calls).empty());
  for (PastCall& each : calls) each = CallIn("a", "docs/1", Fate::kApproved);
  calls.push_back(calls[0]);
  CHECK(here.trial.Suggest(calls).empty());
}

TEST_CASE("RuleTrial: 2,000 answered calls take two seconds", "[rules]") {
  Here here;
  std::vector<PastCall> calls;
  for (int i = 0; i < 2000; ++i) {
    const std::string path = "d" + std::to_string(i % 40) + "/" + std::to_string(i % 600) + ".md";
    calls.push_back(CallIn("c" + std::to_string(i % 7), path, i % 500 == 0 ? Fate::kRejected : Fate::kApproved));
  }
  const auto began = std::chrono::steady_clock::now();
  CHECK_FALSE(here.trial.Suggest(calls).empty());
  const auto took = std::chrono::steady_clock::now() - began;
  CHECK(took < std::chrono::seconds(kSanitized ? 60 : 2));
}

}  // namespace reprise::test::rule_trial_test
