// What is decided about calls of the tools there really are: by grants of patterns, and by the configuration's rules.
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "approval/decision.h"
#include "base/json.h"
#include "domain/codec.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/temp_directory.h"
#include "support/test.h"
#include "tools/tool_catalog.h"

namespace reprise::approval_rules_test {
namespace {

class NoTransport final : public Transport {
 public:
  void Send(HttpRequest, HttpResponseHandler&, std::stop_token, Done done) override {
    done(Fail(ErrorCode::kUnavailable, "not in a test"));
  }
};

class World {
 public:
  World() {
    ToolOptions options{.workspace_directory = directory_.path(), .transport = transport_};
    options.shell.sandbox = SandboxUse::kNever;
    catalog_.emplace(std::move(options));
  }

  std::shared_ptr<const ToolSet> tools() const { return catalog_->Current(); }
  const std::string& workspace() const { return directory_.path(); }

  Decision DecideOn(const std::string& tool, const Json& arguments, ApprovalMode mode = ApprovalMode::kAsk) const {
    ReviewedCall call{.call = {"call_1", tool, DumpJson(arguments)}, .offered = {tools(), tools()->Find(tool)}};
    REQUIRE(call.offered.tool != nullptr);
    return Decide(call, state, {.mode = [mode](const ToolCall&) { return mode; }, .rules = Rules()});
  }
  Decision Shell(const std::string& command, ApprovalMode mode = ApprovalMode::kAsk) const {
    return DecideOn("run_shell", {{"command", command}}, mode);
  }

  // Of the chat.
  void Grant(const std::string& tool, const std::string& pattern, std::optional<Timestamp> expires_at = {}) {
    state.grants.push_back({.tool_name = tool,
                            .arguments_digest = {},
                            .terms_digest = TermsDigest(tools()->Find(tool)->traits()),
                            .pattern = pattern,
                            .expires_at = expires_at});
  }

  AgentState state;
  std::vector<ToolRule> rules;

 private:
  ToolRules Rules() const { return std::make_shared<const std::vector<ToolRule>>(rules); }

  TempDirectory directory_;
  NoTransport transport_;
  std::optional<ToolCatalog> catalog_;
};

nlohmann::json Table() {
  std::ifstream file(SourceDirectory() + "/tests/data/command_lines/lines.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

std::set<std::string> Names(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

TEST_CASE("Decide: hostile command lines ask, whether patterns were granted or are rules, and harmless ones run",
          "[app]") {
  const auto table = Table();
  const bool by_rules = GENERATE(false, true);
  World world;
  for (const std::string pattern : table.at("patterns")) {
    if (by_rules) {
      world.rules.push_back({.tool = "run_shell", .pattern = pattern, .action = RuleAction::kAllow});
    } else {
      world.Grant("run_shell", pattern);
    }
  }
  std::size_t asked = 0;
  for (const std::string line : table.at("hostile")) {
    CAPTURE(line);
    const Decision decision = world.Shell(line);
    CHECK(decision.ask() != nullptr);
    if (decision.ask() != nullptr) ++asked;
    const Decision refused = world.Shell(line, ApprovalMode::kDenyAll);
    CHECK(refused.refuse() != nullptr);
  }
  CHECK(asked >= 400);
  for (const std::string line : table.at("harmless")) {
    CAPTURE(line);
    const Decision decision = world.Shell(line);
    REQUIRE(decision.run() != nullptr);
    CHECK(decision.run()->why == (by_rules ? "rule" : "grant"));
    CHECK_FALSE(decision.run()->decided_by.empty());
  }
}

TEST_CASE("Decide: a pattern counts for its tool, on its terms, until it ends", "[app]") {
  World world;
  world.Grant("run_shell", "git log *", Now() + std::chrono::hours(1));
  const Decision allowed = world.Shell("git log -5 | cat");
  CHECK(allowed.run() == nullptr);  // cat is not covered
  const Decision alone = world.Shell("git log -5");
  REQUIRE(alone.run() != nullptr);
  CHECK(alone.run()->decided_by == std::vector{GrantId(world.state.grants[0])});
  CHECK(world.DecideOn("run_code", {{"language", "sh"}, {"code", "git log"}}).ask() != nullptr);

  world.state.grants[0].expires_at = Now() - std::chrono::milliseconds(1);
  CHECK(world.Shell("git log -5").ask() != nullptr);
  world.state.grants[0].expires_at.reset();
  CHECK(world.Shell("git log -5").run() != nullptr);
  world.state.grants[0].terms_digest = ArgumentsDigest("other terms");
  CHECK(world.Shell("git log -5").ask() != nullptr);
  world.state.grants[0].terms_digest.clear();
  CHECK(world.Shell("git log -5").ask() != nullptr);
}

TEST_CASE("Decide: a pattern covers nothing when its sentence is another than was agreed to", "[app]") {
  World world;
  const Tool& shell = *world.tools()->Find("run_shell");
  const std::string today = *shell.MeaningOf("git log *", PatternUse::kAllow);
  world.Grant("run_shell", "git log *");  // an old one, which has no sentence
  CHECK(world.Shell("git log --oneline").run() != nullptr);
  world.state.grants.front().means = today;
  CHECK(world.Shell("git log --oneline").run() != nullptr);
  CHECK_FALSE(MeansAnother(world.state.grants.front(), shell));
  world.state.grants.front().means = "Runs `git log` as a narrower version understood it.";
  CHECK(world.Shell("git log --oneline").ask() != nullptr);
  CHECK(MeansAnother(world.state.grants.front(), shell));

  world.state.grants.clear();
  const Grant outdated{.tool_name = "run_shell",
                       .arguments_digest = {},
                       .terms_digest = TermsDigest(shell.traits()),
                       .pattern = "git log *",
                       .means = "Another sentence."};
  const auto always = [&](Grant grant) {
    const ReviewedCall call{.call = {"call_1", "run_shell", R"({"command":"git log --oneline"})"},
                            .offered = {world.tools(), world.tools()->Find("run_shell")}};
    return Decide(call, world.state, {.standing_grants = [grant](const Grant&) { return std::vector{grant}; }});
  };
  CHECK(always(outdated).ask() != nullptr);
  Grant current = outdated;
  current.means = today;
  CHECK(always(current).run() != nullptr);
}

TEST_CASE("Decide: whatever pattern is offered, its sentence is what the tool says of it", "[app]") {
  World world;
  const std::vector<std::pair<std::string, Json>> calls = {{"run_shell", {{"command", "cd web && npm test"}}},
                                                           {"run_shell", {{"command", "git log -3 | head -5"}}},
                                                           {"write_file", {{"path", "src/a/b.cc"}, {"content", "x"}}},
                                                           {"http_get", {{"url", "https://example.com/x"}}}};
  for (const auto& [tool, arguments] : calls) {
    const Decision decision = world.DecideOn(tool, arguments);
    INFO(tool);
    REQUIRE(decision.ask() != nullptr);
    CHECK_FALSE(decision.ask()->request.patterns.empty());
    for (const CallPattern& each : decision.ask()->request.patterns) {
      const Grant grant = GrantOf(decision.ask()->request, {.approved = true, .pattern = each.pattern});
      CHECK(grant.means == each.means);
      CHECK_FALSE(MeansAnother(grant, *world.tools()->Find(tool)));
    }
  }
}

TEST_CASE("Decide: grants and rules cover the parts of a line together, and each that was needed is named", "[app]") {
  World world;
  world.Grant("run_shell", "git log *");
  world.rules.push_back({.tool = "run_shell", .pattern = "head *", .action = RuleAction::kAllow});
  const Decision decision = world.Shell("git log | head -5");
  REQUIRE(decision.run() != nullptr);
  CHECK(decision.run()->why == "grant");
  CHECK(Names(decision.run()->decided_by) == std::set{GrantId(world.state.grants[0]), std::string("rule 1")});
}

TEST_CASE("Decide: deny before ask before allow, over grants and modes", "[app]") {
  World world;
  world.Grant("run_shell", "git status");
  world.Grant("run_shell", "git log *");
  world.rules = {{.tool = "run_shell", .pattern = "git *", .action = RuleAction::kAsk},
                 {.tool = "run_shell", .pattern = "git status", .action = RuleAction::kDeny},
                 {.tool = "run_*", .action = RuleAction::kAllow}};
  for (const ApprovalMode mode :
       {ApprovalMode::kAsk, ApprovalMode::kApproveAll, ApprovalMode::kReadOnly, ApprovalMode::kDenyAll}) {
    const Decision denied = world.Shell("ls; git status", mode);
    REQUIRE(denied.refuse() != nullptr);
    CHECK(denied.refuse()->why == "rule");
    CHECK(denied.refuse()->decided_by == std::vector<std::string>{"rule 2"});
    CHECK(denied.refuse()->result == DeniedByRule(1));
    const Decision asked = world.Shell("git log", mode);
    CHECK(asked.run() == nullptr);
    CHECK(world.Shell("ls", mode).run() != nullptr);
    // What cannot be told is not allowed.
    CHECK(world.Shell("ls $(git status)", mode).run() == nullptr);
    CHECK(world.Shell("$x status", mode).run() == nullptr);
  }
  const Decision asked = world.Shell("git log", ApprovalMode::kApproveAll);
  REQUIRE(asked.ask() != nullptr);
  CHECK(asked.ask()->request.allowed_decisions == std::vector<std::string>{"approve", "edit", "reject"});
  CHECK(asked.ask()->request.patterns.empty());
  CHECK(asked.ask()->request.reason.find("rule 1 of this server") != std::string::npos);
}

TEST_CASE("Decide: rules that are added hold from the next call on, beside those of the configuration", "[app]") {
  const World world;
  const auto tools = world.tools();
  const ReviewedCall call{.call = {"call_1", "run_shell", R"({"command":"rm x"})"},
                          .offered = {tools, tools->Find("run_shell")}};
  std::vector<ToolRule> added;
  ApprovalPolicy policy{.rules = std::make_shared<const std::vector<ToolRule>>(
                            std::vector<ToolRule>{{.tool = "echo", .action = RuleAction::kAsk}})};
  policy.added_rules = [&] { return std::make_shared<const std::vector<ToolRule>>(added); };
  CHECK(Decide(call, world.state, policy).ask() != nullptr);
  added = {{.tool = "run_shell", .pattern = "rm", .action = RuleAction::kDeny}};
  const Decision denied = Decide(call, world.state, policy);
  REQUIRE(denied.refuse() != nullptr);
  CHECK(denied.refuse()->decided_by == std::vector<std::string>{"rule 2"});
  const ShownCall shown{"approval_1", TermsDigest(call.offered.tool->traits()), ApprovalAnswer{.approved = true}};
  CHECK(Decide(call, world.state, policy, &shown).refuse() != nullptr);
  const ReviewedCall write{.call = {"call_2", "write_file", R"({"path":"src/a.cc","content":"x"})"},
                           .offered = {tools, tools->Find("write_file")}};
  CHECK(Decide(write, world.state, policy).ask() != nullptr);
  added = {{.tool = "write_file", .pattern = "src/**", .action = RuleAction::kAllow}};
  policy.rules = nullptr;
  const Decision run = Decide(write, world.state, policy);
  REQUIRE(run.run() != nullptr);
  CHECK(run.run()->decided_by == std::vector<std::string>{"rule 1"});
  policy.added_rules = [] { return ToolRules(); };
  CHECK(Decide(call, world.state, policy).ask() != nullptr);
}

TEST_CASE("Decide: a person's answer does not beat what the configuration denies", "[app]") {
  World world;
  world.rules = {{.tool = "run_shell", .pattern = "rm", .action = RuleAction::kDeny}};
  const auto tools = world.tools();
  Tool* const tool = tools->Find("run_shell");
  const ReviewedCall call{.call = {"call_1", "run_shell", R"({"command":"ls"})"}, .offered = {tools, tool}};
  const ApprovalPolicy policy{.rules = std::make_shared<const std::vector<ToolRule>>(world.rules)};
  ShownCall shown{"approval_1", TermsDigest(tool->traits()), ApprovalAnswer{.approved = true}};
  CHECK(Decide(call, world.state, policy, &shown).run() != nullptr);
  shown.answer->arguments = R"({"command":"rm x"})";
  const Decision denied = Decide(call, world.state, policy, &shown);
  REQUIRE(denied.refuse() != nullptr);
  CHECK(denied.refuse()->decided_by == std::vector<std::string>{"rule 1"});
}

TEST_CASE("Decide: paths are covered by what they say, and held back wherever they lead", "[app]") {
  World world;
  const auto write = [&](const std::string& path) {
    return world.DecideOn("write_file", {{"path", path}, {"content", "x"}});
  };
  const Decision asked = write("src/a/b.cc");
  REQUIRE(asked.ask() != nullptr);
  std::vector<std::string> offered;
  for (const CallPattern& each : asked.ask()->request.patterns) offered.push_back(each.pattern);
  CHECK(offered == std::vector<std::string>{"src/a/b.cc", "src/a/**", "src/**"});

  world.Grant("write_file", "src/**");
  for (const char* path : {"src/a", "src/a/b/c.txt", "./src/a"}) {
    CAPTURE(path);
    CHECK(write(path).run() != nullptr);
  }
  for (const std::string& path :
       {std::string("src"), std::string("srcs/a"), std::string("src/../a"), std::string("src/a/../../b"),
        std::string("a/src/b"), std::string("src/.git/config"), std::string("src/.env"), std::string("src//a"),
        std::string("src/./a"), std::string("/src/a"), world.workspace() + "/src/a", std::string("src/a\nb"),
        std::string("src/a\\b"), std::string("src/\u202ea"), std::string("SRC/a"), std::string("../src/a")}) {
    CAPTURE(path);
    CHECK(write(path).run() == nullptr);
  }
  CHECK(world.DecideOn("delete_file", {{"path", "src/a"}}).run() == nullptr);

  world.rules = {{.tool = "write_file", .pattern = "src/locked/**", .action = RuleAction::kDeny}};
  for (const std::string& path :
       {std::string("src/locked/a"), std::string("src/locked"), std::string("./src/locked/a"),
        std::string("src/x/../locked/a"), world.workspace() + "/src/locked/a", std::string("src//locked/a")}) {
    CAPTURE(path);
    CHECK(write(path).refuse() != nullptr);
  }
  CHECK(write("src/lockedx").run() != nullptr);
  CHECK(write("/elsewhere").ask() != nullptr);
}

TEST_CASE("Decide: hosts are read as every program reads them", "[app]") {
  World world;
  world.Grant("http_get", "https://example.com");
  const auto get = [&](const std::string& url) { return world.DecideOn("http_get", {{"url", url}}); };
  for (const char* url : {"https://example.com", "https://example.com/", "https://example.com/a?b#c"})
    CHECK(get(url).run() != nullptr);
  for (const char* url :
       {"http://example.com/", "https://example.com.evil.test/", "https://example.com@evil.test/",
        "https://evil.test/https://example.com", "https://example.com:444/", "https://example.com\\@evil.test/",
        "https://EXAMPLE.com/", "https://a.example.com/", "https://example.com:/", "https:/example.com/",
        "https://example.com%2eevil.test/", "https://user@example.com/", "https://\xc3\xa9xample.com/"}) {
    CAPTURE(url);
    CHECK(get(url).ask() != nullptr);
  }
  world.rules = {{.tool = "http_get", .pattern = "https://evil.test", .action = RuleAction::kDeny}};
  for (const char* url : {"https://evil.test/", "http://EVIL.test:81/x", "HTTPS://evil.test./"}) {
    CAPTURE(url);
    CHECK(get(url).refuse() != nullptr);
  }
  CHECK(get("https://x@evil.test/").run() == nullptr);
}

TEST_CASE("CheckRules: a rule that cannot be understood, or can never match, is named", "[app]") {
  World world;
  const auto error = [&](std::vector<ToolRule> rules) {
    const auto checked = CheckRules(rules, *world.tools(), {"files"});
    return checked ? std::string() : checked.error().message;
  };
  const ToolRule fine{.tool = "run_shell", .pattern = "git log *", .action = RuleAction::kAllow};
  CHECK(error({fine}).empty());
  CHECK(error({{.tool = "files__read", .action = RuleAction::kAllow}}).empty());
  CHECK(error({{.tool = "files__*", .action = RuleAction::kAllow}}).empty());
  CHECK(error({{.tool = "*", .action = RuleAction::kAsk}}).empty());
  CHECK(error({{.tool = "run_shell", .pattern = "git *", .action = RuleAction::kDeny}}).empty());
  CHECK(error({{.tool = "write_file", .pattern = "src/**", .action = RuleAction::kDeny}}).empty());
  CHECK(error({fine, {.tool = "run_shel", .action = RuleAction::kDeny}}) ==
        "tools.rules: rule 2 (deny run_shel) can never match: there is no tool \"run_shel\"");
  for (const ToolRule& rule :
       std::vector<ToolRule>{{.tool = "run_shell", .pattern = "env *", .action = RuleAction::kAllow},
                             {.tool = "run_shell", .pattern = "$(x)", .action = RuleAction::kDeny},
                             {.tool = "run_*", .pattern = "git log", .action = RuleAction::kDeny},
                             {.tool = "run_code", .pattern = "x", .action = RuleAction::kDeny},
                             {.tool = "files__read", .pattern = "*", .action = RuleAction::kDeny},
                             {.tool = "write_file", .pattern = "../x", .action = RuleAction::kDeny},
                             {.tool = "write_file", .pattern = "src/*.cc", .action = RuleAction::kAllow},
                             {.tool = "http_get", .pattern = "example.com", .action = RuleAction::kAllow},
                             {.tool = "other__x", .action = RuleAction::kAllow}}) {
    CAPTURE(rule.tool, rule.pattern.value_or(""));
    CHECK(error({rule}).starts_with("tools.rules: rule 1 ("));
  }
}

}  // namespace
}  // namespace reprise::approval_rules_test
