#include "approval/decision.h"

#include "approval/audit_lines.h"
#include "domain/codec.h"
#include "support/fake_tools.h"
#include "support/test.h"

namespace reprise::decision_test {
namespace {

constexpr ApprovalMode kModes[] = {ApprovalMode::kAsk,  ApprovalMode::kReadOnly,   ApprovalMode::kPlan,
                                   ApprovalMode::kAuto, ApprovalMode::kApproveAll, ApprovalMode::kDenyAll};

// A tool with a sandbox; the call with the arguments {"out":true} asks to leave it.
class Sandboxed final : public FakeTool {
 public:
  Sandboxed() : FakeTool(Traits(), [](std::string_view, const ToolContext&) { return ToolOutcome{}; }) {}
  OutsideSandbox OutsideOf(std::string_view arguments) const override {
    if (!may_leave) return OutsideSandbox::kNo;
    return arguments == R"({"out":true})" ? OutsideSandbox::kAsked : OutsideSandbox::kOffered;
  }
  std::vector<CallPattern> PatternsOf(std::string_view) const override { return {{"*", "all"}}; }
  Result<std::string> MeaningOf(std::string_view, PatternUse) const override { return std::string("all"); }
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>&, std::string_view) const override {
    return std::vector<std::size_t>{0};
  }

  bool may_leave = true;

 private:
  static ToolTraits Traits() {
    ToolTraits traits;
    traits.spec = {"cmd", "", R"({"type":"object"})"};
    traits.read_only = false;
    traits.requires_approval = traits.confined = true;
    return traits;
  }
};

class Tools final : public ToolSet {
 public:
  Tool* Find(std::string_view name) const override { return name == "cmd" ? &tool : nullptr; }
  Result<void> Validate(const Tool&, std::string_view) const override { return {}; }
  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }
  bool RequiresApproval(const Tool&) const override { return true; }

  mutable Sandboxed tool;

 private:
  std::vector<Tool*> tools_{&tool};
  std::vector<ToolSpec> specs_{tool.traits().spec};
};

struct World {
  std::shared_ptr<const Tools> tools = std::make_shared<Tools>();
  AgentState state{};
  ApprovalPolicy policy{};

  ReviewedCall Call(const std::string& arguments) const {
    return {.call = {"call_1", "cmd", arguments}, .offered = {tools, &tools->tool}};
  }
  Decision Of(const std::string& arguments, ApprovalMode mode = ApprovalMode::kAsk) {
    policy.mode = [mode](const ToolCall&) { return mode; };
    return Decide(Call(arguments), state, policy);
  }
  Decision Answered(const std::string& arguments, ApprovalAnswer answer) const {
    const ShownCall shown{"approval_1", TermsDigest(tools->tool.traits()), std::move(answer)};
    return Decide(Call(arguments), state, policy, &shown);
  }
};

const std::string kIn = "{}", kOut = R"({"out":true})";

}  // namespace

TEST_CASE("Decide: a question about a sandboxed call offers to leave the sandbox", "[approval]") {
  World world;
  using Names = std::vector<std::string>;
  CHECK(world.Of(kIn).ask()->request.allowed_decisions ==
        Names{"approve", "approve_for_chat", "approve_always", "approve_outside_sandbox", "edit", "reject"});
  const Decision asked = world.Of(kOut);
  CHECK(asked.ask()->request.allowed_decisions == Names{"approve_outside_sandbox", "edit", "reject"});
  world.tools->tool.may_leave = false;
  CHECK(world.Of(kIn).ask()->request.allowed_decisions ==
        Names{"approve", "approve_for_chat", "approve_always", "edit", "reject"});
}

TEST_CASE("Decide: no mode, rule or grant lets a call leave its sandbox", "[approval]") {
  World world;
  world.policy.can_undo = [](const ToolTraits&, std::string_view) { return true; };
  world.policy.rules = std::make_shared<const std::vector<ToolRule>>(
      std::vector<ToolRule>{{.tool = "cmd", .action = RuleAction::kAllow}});
  const std::string terms = TermsDigest(world.tools->tool.traits());
  world.state.grants = {
      {.tool_name = "cmd", .arguments_digest = ArgumentsDigest(kOut), .terms_digest = terms},
      {.tool_name = "cmd", .arguments_digest = {}, .terms_digest = terms, .pattern = "*", .means = "all"}};
  for (const ApprovalMode mode : kModes) {
    INFO(ToString(mode));
    const Decision inside = world.Of(kIn, mode), outside = world.Of(kOut, mode);
    const bool runs_nothing = mode == ApprovalMode::kPlan;
    CHECK((inside.run() != nullptr) == !runs_nothing);
    CHECK((inside.run() == nullptr || !inside.run()->outside_sandbox));
    const bool refuses = runs_nothing || mode == ApprovalMode::kDenyAll;
    CHECK((outside.refuse() != nullptr) == refuses);
    CHECK((outside.ask() != nullptr) == !refuses);
  }
  world.policy.nobody_to_ask = true;
  CHECK(world.Of(kOut, ApprovalMode::kApproveAll).refuse() != nullptr);
}

TEST_CASE("Decide: a call leaves its sandbox by an answer that says so", "[approval]") {
  World world;
  CHECK_FALSE(world.Answered(kIn, {.approved = true}).run()->outside_sandbox);
  for (const std::string& arguments : {kIn, kOut}) {
    const Decision decision = world.Answered(arguments, {.approved = true, .outside_sandbox = true});
    REQUIRE(decision.run() != nullptr);
    CHECK(decision.run()->outside_sandbox);
    CHECK(audit::Started({"call_1", "cmd", arguments}, arguments, *decision.run(), "approval_1").outside_sandbox);
  }
  CHECK(world.Answered(kOut, {.approved = true}).ask() != nullptr);
  CHECK(world.Answered(kIn, {.approved = true, .arguments = kOut}).ask() != nullptr);
  const Decision edited = world.Answered(kOut, {.approved = true, .arguments = kIn});
  REQUIRE(edited.run() != nullptr);
  CHECK_FALSE(edited.run()->outside_sandbox);
  CHECK(world.Answered(kIn, {.approved = false, .outside_sandbox = true}).refuse() != nullptr);
}

TEST_CASE("Decide: a call that may not leave its sandbox any more asks again", "[approval]") {
  World world;
  world.tools->tool.may_leave = false;
  const Decision decision = world.Answered(kIn, {.approved = true, .outside_sandbox = true});
  REQUIRE(decision.ask() != nullptr);
  CHECK_FALSE(decision.ask()->request.allows(kApproveOutside));
}

TEST_CASE("Answers keep that a call leaves its sandbox", "[approval]") {
  for (const bool outside : {false, true}) {
    const GivenAnswer answer = ApprovalAnswer{.approved = true, .outside_sandbox = outside};
    const auto read = AnswerFromJson(ToJson(std::string("approval_1"), answer));
    REQUIRE(read);
    CHECK(std::get<ApprovalAnswer>(read->second).outside_sandbox == outside);
  }
  Json wrong = ToJson("approval_1", GivenAnswer(ApprovalAnswer{.approved = true, .outside_sandbox = true}));
  wrong["outside_sandbox"] = "yes";
  CHECK_FALSE(AnswerFromJson(wrong));
}

}  // namespace reprise::decision_test
