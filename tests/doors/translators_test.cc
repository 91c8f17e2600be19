#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "domain/codec.h"
#include "doors/ag_ui/run_translator.h"
#include "doors/mcp_door/ask_translator.h"
#include "doors/openai/answer_writer.h"
#include "support/test.h"

// Checks what clients of other protocols get for the same events.
namespace reprise::test::translators_test {

using openai::AgentTranslator, openai::AnswerHead, openai::AnswerEnd, openai::AnswerWriter;

namespace {

const event::InteractionStarted kStarted{"int_001", "chat", std::nullopt, std::nullopt, "openai/x"};
const event::InteractionComplete kComplete{"int_001", InteractionStatus::kCompleted};

event::ApprovalRequired Approval() {
  event::ApprovalRequired asked;
  asked.approval_id = "approval_1";
  asked.call_id = "call_1";
  asked.tool_name = "write_file";
  asked.tool_input = R"({"path":"a"})";
  asked.reason = "writes a file";
  asked.risk = "medium";
  asked.allowed_decisions = {"approve", "reject", "edit"};
  return asked;
}

// The events as a log frames them.
void Take(Translator& translator, const std::vector<EventPayload>& events, std::string& out) {
  std::uint64_t seq = 0;
  for (const EventPayload& payload : events) {
    const std::string data = EventData({.seq = ++seq, .round_index = 1, .payload = payload});
    translator.Take({.seq = seq, .name = EventName(payload), .data = data}, out);
  }
}

// The JSON objects in a stream of server-sent events.
std::vector<Json> Sent(const std::string& out) {
  std::vector<Json> sent;
  for (std::size_t at = 0; (at = out.find("data: ", at)) != std::string::npos;) {
    const std::size_t end = out.find("\n\n", at);
    sent.push_back(*ParseJson(out.substr(at + 6, end - at - 6)));
    at = end;
  }
  return sent;
}

class PlainWriter final : public AnswerWriter {
 public:
  void Begin(const AnswerHead& head, std::string& out) override { out += "<" + head.name + ">"; }
  void Thinking(std::string_view escaped, std::string& out) override { out.append("(").append(escaped).append(")"); }
  void Text(std::string_view escaped, std::string& out) override { out += escaped; }
  void Cite(const std::string&, const std::vector<Citation>& citations, std::string& out) override {
    for (const Citation& each : citations) out += "{" + each.source.url + "}";
  }
  void Call(const ToolCall&, std::string&) override {}
  void End(const AnswerEnd& end, std::string& out) override {
    out += "<" + std::string(ToString(end.status)) + " " + std::to_string(end.usage.output_tokens) + ">";
  }
};

std::string AsModel(const std::vector<EventPayload>& events) {
  AgentTranslator translator(std::make_unique<PlainWriter>(), {});
  std::string out;
  Take(translator, events, out);
  translator.End(/*complete=*/true, out);
  return out;
}

}  // namespace

TEST_CASE("AgentTranslator: shows an answer once, in pieces or whole", "[doors]") {
  CHECK(AsModel({kStarted, event::TextDelta{"Hel"}, event::TextDelta{"lo\n"}, event::Answer{"Hello\n"}, kComplete}) ==
        R"(<chat_int_001>Hello\n<COMPLETED 0>)");
  CHECK(AsModel({kStarted, event::Answer{"Hello"}, kComplete}) == "<chat_int_001>Hello<COMPLETED 0>");
}

TEST_CASE("AgentTranslator: shows calls as thinking and questions as paragraphs", "[doors]") {
  CHECK(AsModel({kStarted, event::MessageText{"I write."}, Approval(),
                 event::Approved{"approval_1", "call_1", "", "once", std::nullopt},
                 event::ToolCallStarted{"call_1", "write_file", "{}"}, event::ToolResult{"call_1", "write_file", "ok"},
                 event::Usage{{1, 2}}, event::Nested{"call_1", 1, event::Usage{{1, 3}}}, event::Answer{"Done."},
                 kComplete}) ==
        R"(<chat_int_001>I write.\n\n**Approval needed:** write_file with `{\"path\":\"a\"}`. Answer with )"
        R"(`reprise approvals`; this goes on then.\n\nApproved.(\nwrite_file {}\n)\n\nDone.<COMPLETED 5>)");
}

TEST_CASE("Translators: skip the events of a newer server", "[doors]") {
  AgentTranslator translator(std::make_unique<PlainWriter>(), {});
  std::string out;
  translator.Take({.seq = 1, .name = "dreamt", .data = R"({"type":"DREAMT","seq":1,"round_index":0})"}, out);
  translator.Take({.seq = 2, .name = "answer", .data = R"({"type":"ANSWER","seq":2,"content":"x","mood":{"a":1}})"},
                  out);
  CHECK(out == "x");
}

TEST_CASE("AskTranslator: shows progress, a question and the result", "[doors]") {
  const InteractionRef run{*ChatId::Parse("chat"), InteractionId::FromNumber(1)};
  mcp_door::AskTranslator translator(
      {.id = 7, .asking = mcp_door::AskTranslator::Asking::kInStream, .progress_token = "p", .run = run});
  std::string out;
  Take(translator, {kStarted, event::ToolCallStarted{"call_1", "write_file", "{}"}, Approval()}, out);
  translator.Rest(out);
  const auto asked = Sent(out);
  REQUIRE(asked.size() == 2);
  CHECK(asked[0]["params"]["message"] == "write_file {}");
  CHECK(asked[1]["id"] == "approval_1");
  CHECK(asked[1]["params"]["message"] == "write_file {\"path\":\"a\"}\nwrites a file (risk: medium)");
  CHECK(asked[1]["params"]["requestedSchema"]["properties"]["decision"]["enum"] == Json({"approve", "reject"}));
  out.clear();
  Take(translator, {event::Rejected{"approval_1", "call_1", std::nullopt}, event::Answer{"No file."}, kComplete}, out);
  translator.End(/*complete=*/true, out);
  const auto ended = Sent(out);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0]["method"] == "notifications/cancelled");
  CHECK(ended[1]["result"]["structuredContent"]["status"] == "COMPLETED");
  CHECK(ended[1]["result"]["content"][0]["text"] == "No file.");
}

TEST_CASE("RunTranslator: shows a text, a call and the usage", "[doors]") {
  ag_ui::RunTranslator translator({.thread_id = "t", .run_id = "r", .parent_run_id = "", .is_current = true});
  std::string out;
  translator.Begin(out);
  Take(translator,
       {kStarted, event::TextDelta{"I look."}, event::MessageText{"I look."},
        event::ToolCallStarted{"call_1", "read_file", ""}, event::ToolResult{"call_1", "read_file", "gone", true},
        event::Usage{{3, 4}}, event::Retry{1, 10, "busy", "later"}, event::Answer{"Done."}, kComplete},
       out);
  translator.End(/*complete=*/true, out);
  std::string types;
  const auto sent = Sent(out);
  for (const Json& each : sent) types += TextMember(each, "type") + " ";
  CHECK(types ==
        "RUN_STARTED STATE_SNAPSHOT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TOOL_CALL_START "
        "TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT CUSTOM TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT "
        "TEXT_MESSAGE_END RUN_FINISHED ");
  CHECK(sent[6]["delta"] == "{}");
  CHECK(sent[9]["value"]["message"] == "later");
  CHECK(sent.back()["usage"][0]["totalTokens"] == 7);
}

TEST_CASE("RunTranslator: a question to a person ends the response", "[doors]") {
  ag_ui::RunTranslator translator({.thread_id = "t", .run_id = "r", .parent_run_id = ""});
  std::string out;
  Take(translator, {kStarted, Approval()}, out);
  CHECK_FALSE(translator.is_over());
  translator.Rest(out);
  CHECK(translator.is_over());
  const Json last = Sent(out).back();
  CHECK(last["outcome"]["interrupts"][0]["id"] == "approval_1");
  CHECK(last["outcome"]["interrupts"][0]["metadata"]["reprise"]["risk"] == "medium");
}

}  // namespace reprise::test::translators_test
