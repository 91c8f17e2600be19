#include "client/archive/past_calls.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "domain/codec.h"
#include "support/test.h"

namespace reprise::test::past_calls_test {
namespace {

using Fate = PastCall::Fate;

class FixedLog final : public AuditLog {
 public:
  explicit FixedLog(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  Result<void> Append(const AuditEntry&) override { return {}; }
  // A page for each line.
  Result<Page> Read(std::uint64_t after, std::size_t) const override {
    Page page;
    if (after < lines_.size()) page.lines.push_back(lines_[after]);
    if (after + 1 < lines_.size()) page.next = after + 1;
    return page;
  }

 private:
  const std::vector<std::string> lines_;
};

std::string Line(const std::string& event, const std::string& reason, const std::string& call,
                 const std::string& arguments, const std::string& chat = "a") {
  return DumpJson({{"event", event},
                   {"reason", reason},
                   {"chat_id", chat},
                   {"interaction_id", "int_001"},
                   {"call_id", call},
                   {"arguments_digest", ArgumentsDigest(arguments)}});
}

struct Turn {
  Interaction of{.id = InteractionId::FromNumber(1), .chat_id = *ChatId::Parse("a")};
  Timestamp at = Now();

  Turn& Add(EventPayload payload) {
    of.created_at = at;
    of.events.push_back({.seq = of.events.size() + 2, .at = at, .payload = std::move(payload)});
    return *this;
  }
  Turn& Ask(const std::string& call, const std::string& input, const std::string& approval = "",
            std::string_view tool = "t") {
    event::ApprovalRequired asked{};
    asked.approval_id = approval.empty() ? "of_" + call : approval;
    asked.call_id = call;
    asked.tool_name = tool;
    asked.tool_input = input;
    return Add(std::move(asked));
  }
};

Chat ChatOf(std::vector<Interaction> turns) {
  return {.summary = {.id = turns.front().chat_id}, .interactions = std::move(turns), .damaged = {}};
}

std::vector<PastCall> CallsOf(const Turn& turn, std::vector<std::string> log = {}) {
  PastCalls past;
  past.Add(ChatOf({turn.of}), {});
  CHECK(past.ReadFates(FixedLog(std::move(log))));
  return past.calls();
}

event::Approved Yes(const std::string& call) {
  event::Approved approved{};
  approved.approval_id = "of_" + call;
  approved.call_id = call;
  return approved;
}

event::Rejected No(const std::string& approval, const std::string& call) { return {approval, call, std::nullopt}; }

}  // namespace

TEST_CASE("PastCalls: answers of people are the calls' fates", "[rules]") {
  Turn turn;
  for (const char* const call : {"yes", "no", "late", "open", "changed", "same"}) turn.Ask(call, "{}");
  turn.Add(Yes("yes"));
  turn.Add(No("of_no", "no"));
  event::Rejected late = No("of_late", "late");
  late.expired = true;
  turn.Add(late);
  event::Approved changed = Yes("changed"), same = Yes("same");
  changed.tool_input = R"({"a":1})";
  same.tool_input = "{}";
  turn.Add(changed).Add(same);
  const auto calls = CallsOf(turn);
  REQUIRE(calls.size() == 6);
  const Fate fates[] = {Fate::kApproved,   Fate::kRejected, Fate::kExpired,
                        Fate::kUnanswered, Fate::kChanged,  Fate::kApproved};
  for (std::size_t i = 0; i < calls.size(); ++i) CHECK(calls[i].fate == fates[i]);
  CHECK((calls[4].changed_to == R"({"a":1})" && calls[4].call.arguments == "{}"));
}

TEST_CASE("PastCalls: of a call that was asked about again the last question counts", "[rules]") {
  Turn turn;
  event::Rejected withdrawn = No("first", "c");
  withdrawn.superseded = true;
  turn.Ask("c", "{}", "first").Add(withdrawn);
  turn.Ask("c", "{}").Add(Yes("c"));
  const auto calls = CallsOf(turn);
  REQUIRE(calls.size() == 1);
  CHECK((calls[0].fate == Fate::kApproved && calls[0].asked->approval_id == "of_c"));
}

TEST_CASE("PastCalls: the audit log tells the rest", "[rules]") {
  Turn turn;
  for (const char* const call : {"ran", "denied", "mode", "loop", "none"})
    turn.Add(event::ToolCallStarted{call, "t", "{}"});
  turn.Ask("late", "{}").Add(Yes("late"));
  // A sub-agent's call has the same id in the log, but other arguments.
  turn.Add(event::Nested{.call_id = "r", .step = event::ToolCallStarted{"ran", "t", "[]"}});
  const auto calls =
      CallsOf(turn, {"no JSON", Line("started", "grant", "ran", "{}"), Line("refused", "rule", "denied", "{}"),
                     Line("refused", "mode", "mode", "{}"), Line("refused", "loop", "loop", "{}"),
                     Line("started", "default", "none", "{}", "other chat"), Line("started", "approval", "late", "{}"),
                     Line("refused", "rule", "late", "{}"), Line("refused", "rule", "ran", "[]")});
  REQUIRE(calls.size() == 7);
  const Fate fates[] = {Fate::kRan,     Fate::kDenied, Fate::kRefusedByMode, Fate::kRefused,
                        Fate::kUnknown, Fate::kDenied, Fate::kDenied};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    INFO(i);
    CHECK(calls[i].fate == fates[i]);
  }
  CHECK((calls[0].permission == "grant" && calls[6].id == "r/ran" && calls[6].call.id == "ran"));
}

TEST_CASE("PastCalls: copies, imported turns and questions about hosts do not count", "[rules]") {
  Turn turn;
  turn.Ask("c", "{}").Add(Yes("c")).Add(event::ToolCallStarted{"d", "t", "{}"});
  turn.Ask("c", "{}", "h", kNetworkTool);
  turn.Add(No("h", "c"));
  Interaction copy = turn.of, old = turn.of, imported = turn.of;
  copy.chat_id = *ChatId::Parse("0");
  old.created_at -= std::chrono::hours(48);
  imported.imported = true;
  PastCalls past;
  past.Add(ChatOf({copy}), {});  // the fork comes first, and the log does not know its turns
  past.Add(ChatOf({turn.of, old, imported}), turn.at - std::chrono::hours(24));
  CHECK(past.ReadFates(FixedLog({Line("started", "rule", "d", "{}")})));
  REQUIRE(past.calls().size() == 2);
  CHECK((past.calls()[0].fate == Fate::kApproved && past.calls()[1].fate == Fate::kRan));
  CHECK((past.imported() == 1 && past.turns() == 2));
}

}  // namespace reprise::test::past_calls_test
