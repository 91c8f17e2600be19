#include "terminal/question_text.h"

#include <nlohmann/json.hpp>

#include "base/terminal_text.h"
#include "support/test.h"

namespace reprise::test::question_text_test {
namespace {

event::ApprovalRequired Asked(const std::string& tool_input) {
  event::ApprovalRequired asked;
  asked.tool_name = "write_file";
  asked.tool_input = tool_input;
  asked.reason = "writes a file";
  asked.risk = "medium";
  return asked;
}

}  // namespace

TEST_CASE("DescribeApproval: tool, risk and path come before what is long", "[terminal]") {
  const auto shown = DescribeApproval(Asked(R"({"content":"a\nb","path":"x.txt"})"), /*whole=*/false);
  CHECK(shown.text == "write_file  (risk: medium)\n  path: x.txt\n  content: \n    a\n    b\nwrites a file\n");
  CHECK_FALSE(shown.cut);
}

TEST_CASE("DescribeApproval: hidden characters are spelled out in names, values and the reason", "[terminal]") {
  event::ApprovalRequired asked = Asked("{\"pa\xe2\x80\x8bth\":\"a\xe2\x80\x8b\"}");
  asked.reason = "because\xe2\x80\xae";
  CHECK(DescribeApproval(asked, false).text ==
        "write_file  (risk: medium)\n  pa<U+200B>th: a<U+200B>\nbecause<U+202E>\n");
  CHECK(DescribeApproval(Asked("no json \xe2\x80\x8b"), false).text.find("no json <U+200B>") != std::string::npos);
}

TEST_CASE("DescribeApproval: what is long is cut, and shown when it is asked for", "[terminal]") {
  const std::string content = GENERATE(
      std::string(5000, 'x') + "END", std::string("line\\n") + [] {
        std::string lines;
        for (int i = 0; i < 100; ++i) lines += "line\\n";
        return lines + "END";
      }());
  const event::ApprovalRequired asked = Asked("{\"content\":\"" + content + "\",\"path\":\"x\"}");
  const auto shown = DescribeApproval(asked, false);
  CHECK(shown.cut);
  CHECK(shown.text.find("END") == std::string::npos);
  CHECK(shown.text.find("more bytes") != std::string::npos);
  CHECK(DescribeApproval(asked, true).text.find("END") != std::string::npos);
}

TEST_CASE("DescribeApproval, CallLabel: numbers are shown as they are written", "[terminal]") {
  for (const std::string number : {"9007199254740993", "123456789012345678901234567890", "-0.1000000000000000055511151",
                                   "1.50", "1E400", "[1.0, 9007199254740993]"}) {
    if (number == "1E400") continue;  // JSON that cannot be read is shown as it is
    const event::ApprovalRequired asked = Asked("{\"n\": " + number + "}");
    CHECK(DescribeApproval(asked, false).text.find("  n: " + number + "\n") != std::string::npos);
    CHECK(CallLabel("t", "{\"n\": " + number + "}") == "t " + number);
  }
  CHECK(DescribeApproval(Asked("{\"n\": 1E400}"), false).text.find("{\"n\": 1E400}") != std::string::npos);
}

TEST_CASE("DescribeApproval: what stands behind many blank lines is not pushed away", "[terminal]") {
  const auto shown = DescribeApproval(Asked(R"({"command":"echo a)" +
                                            [] {
                                              std::string lines;
                                              for (int i = 0; i < 400; ++i) lines += "\\n";
                                              return lines;
                                            }() +
                                            R"(rm b"})"),
                                      false);
  CHECK_FALSE(shown.cut);
  CHECK(shown.text.find("<399 blank lines>\n    rm b\n") != std::string::npos);
}

TEST_CASE("EditableArguments: texts of several lines are lines, and come back as they were", "[terminal]") {
  const std::string inputs[] = {R"({"path":"a.txt","content":"one\ntwo\n"})",
                                R"({"content":"END\nEND_\n","n":9007199254740993})",
                                R"({"content":"\n"})",
                                R"({"content":"a\nb","deep":{"x":[1,2]},"na\"me: ":"y"})",
                                R"({"content":"a\nhid\u200bden"})",
                                R"({"content":"a\r\nb"})"};
  for (const std::string& input : inputs) {
    CAPTURE(input);
    const std::string text = EditableArguments(input);
    const auto back = ArgumentsOf(text);
    REQUIRE(back);
    CHECK(*ParseJson(*back) == *ParseJson(input));
    CHECK(VisibleText(text, "").find("<U+") == std::string::npos);
  }
  CHECK(EditableArguments(inputs[0]) == "\"path\": \"a.txt\"\n\"content\": <<END\none\ntwo\n\nEND");
  CHECK(EditableArguments(R"({"command":"ls"})") == R"({"command":"ls"})");
  CHECK(ArgumentsOf(EditableArguments(inputs[1]))->find("9007199254740993") != std::string::npos);
}

TEST_CASE("ArgumentsOf: what is wrong is named", "[terminal]") {
  for (const auto& [text, wrong] :
       {std::pair("", "no"), std::pair("[1]", "\"name\": value"), std::pair("{", "not valid JSON"),
        std::pair("\"a\": <<END\nx", "END is missing"), std::pair("\"a\": x", "not valid JSON"),
        std::pair("\"a\": 1\n\"a\": 2", "twice")}) {
    CAPTURE(text);
    const auto arguments = ArgumentsOf(text);
    if (std::string_view(text).empty()) {
      CHECK(arguments.value_or("") == "{}");
      continue;
    }
    REQUIRE_FALSE(arguments);
    CHECK(arguments.error().message.find(wrong) != std::string::npos);
  }
}

TEST_CASE("ParseApprovalAnswer: a letter or its word, and words for the model behind yes and no alone", "[terminal]") {
  using Kind = TypedAnswer::Kind;
  const struct {
    std::string_view line;
    Kind kind;
    std::string words;
  } cases[] = {
      {"y", Kind::kYes, ""},
      {"yes", Kind::kYes, ""},
      {"yes, but only once", Kind::kYes, "but only once"},
      {"n use another name", Kind::kNo, "use another name"},
      {"no, y", Kind::kNo, "y"},
      {"always", Kind::kAlways, ""},
      {"e", Kind::kEdit, ""},
      {"show", Kind::kShow, ""},
      {"l", Kind::kLater, ""},
      {"Y", Kind::kYesToAll, ""},
      {"N", Kind::kNoToAll, ""},
      {"", Kind::kUnclear, ""},
      {"Yes", Kind::kUnclear, ""},
      {"Y all of them", Kind::kUnclear, ""},
      {"nothing of that", Kind::kUnclear, ""},
      {"always please", Kind::kUnclear, ""},
  };
  for (const auto& each : cases) {
    INFO(each.line);
    const TypedAnswer answer = ParseApprovalAnswer(each.line);
    CHECK(answer.kind == each.kind);
    CHECK(answer.words == each.words);
  }
}

TEST_CASE("ParseApprovalAnswer: a digit is one of the patterns, in this chat or in every one", "[terminal]") {
  using Kind = TypedAnswer::Kind;
  const TypedAnswer first = ParseApprovalAnswer("1"), second = ParseApprovalAnswer("2 always");
  CHECK((first.kind == Kind::kPattern && first.pattern == 1 && !first.in_every_chat));
  CHECK((second.kind == Kind::kPattern && second.pattern == 2 && second.in_every_chat));
  for (const char* line : {"0", "12", "1 alway", "1always", "1 always please", "-1", " 1"}) {
    INFO(line);
    CHECK(ParseApprovalAnswer(line).kind == Kind::kUnclear);
  }
}

TEST_CASE("PatternLines: each with its sentence, and nothing that cannot be seen", "[terminal]") {
  event::ApprovalRequired asked;
  asked.patterns = {{"git log *", "Runs \xe2\x80\xae it."}, {"x", "y"}};
  const auto lines = PatternLines(asked);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("1. git log *: Runs "));
  CHECK(lines[0].find("\xe2\x80\xae") == std::string::npos);
  CHECK(PatternLines(event::ApprovalRequired{}).empty());
}

TEST_CASE("ApprovalLegend: only what the question takes", "[terminal]") {
  CHECK(ApprovalLegend({}) == "[y]es, [n]o, [a]lways in this chat, [e]dit the arguments");
  CHECK(ApprovalLegend({.together = 3, .cut = true, .may_be_put_off = true}) ==
        ApprovalLegend({}) + ", [s]how all, [Y]es or [N]o to all 3, [l]ater");
  CHECK(ApprovalLegend({.together = 2, .kind = "write_file"}) ==
        ApprovalLegend({}) + ", [Y]es or [N]o to all 2 write_file");
  CHECK(ApprovalLegend({.outside = true}) == ApprovalLegend({}) + ", [o]utside the sandbox");
  CHECK(ApprovalLegend({.inside = false, .outside = true}) == "[n]o, [e]dit the arguments, [o]utside the sandbox");
  CHECK(ApprovalLegend({.patterns = 1}) == ApprovalLegend({}) + ", [1] more");
  CHECK(ApprovalLegend({.patterns = 3}) == ApprovalLegend({}) + ", [1-3] more");
}

TEST_CASE("FieldsOf: members become fields that check what is typed", "[terminal]") {
  const auto fields = FieldsOf(R"({"type":"object","required":["name","size"],"properties":{
      "name":{"type":"string","description":"who"},"size":{"type":"integer"},"sure":{"type":"boolean","default":true},
      "colour":{"type":"string","enum":["red","blue"]},"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}}})");
  REQUIRE(fields.size() == 5);
  CHECK(fields[0].hint == "who (string)");
  CHECK(fields[0].required);
  CHECK_FALSE(fields[2].required);
  CHECK(DumpJson(*fields[1].Parse("7")) == "7");
  CHECK_FALSE(fields[1].Parse("7.5"));
  CHECK_FALSE(fields[1].Parse("\"7\""));
  CHECK(DumpJson(*fields[2].Parse("y")) == "true");
  CHECK_FALSE(fields[2].Parse("perhaps"));
  CHECK(DumpJson(*fields[3].Parse("blue")) == R"("blue")");
  CHECK_FALSE(fields[3].Parse("green"));
  CHECK(DumpJson(*fields[4].Parse("b, a")) == R"(["b","a"])");
  CHECK_FALSE(fields[4].Parse("a,c"));
}

TEST_CASE("FieldsOf: limits are told and kept, and a choice has a number and a title", "[terminal]") {
  const auto fields = FieldsOf(R"({"type":"object","properties":{
      "name":{"type":"string","minLength":2,"maxLength":5},"age":{"type":"integer","minimum":18},
      "when":{"type":"string","enum":["noon","2"],"enumNames":["At noon","At two"]},
      "size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]}}})");
  REQUIRE(fields.size() == 4);
  CHECK(fields[0].hint == "(string, at least 2 and at most 5 characters; may be left empty)");
  CHECK(fields[0].Parse("A").error().message == "this must be at least 2 and at most 5 characters");
  CHECK(fields[0].Parse("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F!"));
  CHECK_FALSE(fields[0].Parse("Anneli"));
  CHECK(fields[1].Parse("17").error().message == "this must be at least 18");
  CHECK(fields[1].Parse("18"));
  CHECK(fields[2].hint == "(string, one of 1. noon (At noon), 2. 2 (At two); may be left empty)");
  CHECK(*fields[2].Parse("1") == Json("noon"));
  CHECK(*fields[2].Parse("2") == Json("2"));
  CHECK_FALSE(fields[2].Parse("3"));
  CHECK(*fields[3].Parse("2") == Json("l"));
}

TEST_CASE("FieldsOf: several choices are given by number or title too, as many as may be", "[terminal]") {
  const auto fields = FieldsOf(R"({"type":"object","required":["days","size"],"properties":{
      "days":{"type":"array","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"m","title":"Monday"},{"type":"null"},
          {"const":"t","title":"Tuesday"},{"const":"w"}]}},
      "size":{"type":"integer","enum":[10,20]}}})");
  REQUIRE(fields.size() == 2);
  CHECK(fields[0].hint ==
        "(several, with commas, of 1. m (Monday), 2. t (Tuesday), 3. w, at least 1 and at most 2 of them)");
  CHECK(DumpJson(*fields[0].Parse("2, Monday")) == R"(["t","m"])");
  CHECK(fields[0].Parse("4").error().message == "this must be of 1. m (Monday), 2. t (Tuesday), 3. w");
  CHECK(fields[0].Parse("1,2,3").error().message == "this must be at least 1 and at most 2 of them");
  CHECK(*fields[1].Parse("20") == Json(20));
  CHECK(*fields[1].Parse("1") == Json(10));
  CHECK_FALSE(fields[1].Parse("30"));
}

TEST_CASE("FieldsOf: a format is looked at roughly", "[terminal]") {
  const auto fields = FieldsOf(R"({"type":"object","properties":{
      "email":{"type":"string","format":"email"},"uri":{"type":"string","format":"uri"},"date":{"type":"string","format":"date"},
      "time":{"type":"string","format":"date-time"},"other":{"type":"string","format":"colour"}}})");
  REQUIRE(fields.size() == 5);
  const auto takes = [&](std::size_t field, const std::string& text) { return fields[field].Parse(text).has_value(); };
  CHECK(takes(0, "ann@example.org"));
  for (const char* text : {"ann", "@example.org", "ann@", "ann b@example.org"}) CHECK_FALSE(takes(0, text));
  CHECK(takes(1, "https://example.org/a"));
  CHECK(takes(1, "mailto:ann@example.org"));
  for (const char* text : {"example.org", ":x", "https:", "https://a b"}) CHECK_FALSE(takes(1, text));
  CHECK(takes(2, "2025-12-31"));
  for (const char* text : {"31.12.2025", "2025-13-01", "2025-12-32", "2025-1-1"}) CHECK_FALSE(takes(2, text));
  for (const char* text : {"2025-12-31T23:59:00Z", "2025-12-31T23:59:00.25+01:00"}) CHECK(takes(3, text));
  for (const char* text : {"2025-12-31", "2025-12-31 23:59:00Z", "2025-12-31T23:59:00", "2025-12-31T23:59:00.Zx"}) {
    CHECK_FALSE(takes(3, text));
  }
  CHECK(takes(4, "whatever"));
  CHECK(fields[2].Parse("soon").error().message == "this must be a date like 2025-12-31");
}

TEST_CASE("FieldsOf: what is no object of simple members is not taken apart", "[terminal]") {
  CHECK(FieldsOf("").empty());
  CHECK(FieldsOf("[]").empty());
  CHECK(FieldsOf(R"({"type":"string"})").empty());
  CHECK(FieldsOf(R"({"properties":{"a":{"type":"object"}}})").empty());
}

TEST_CASE("CancelledText: every code in words", "[terminal]") {
  CHECK(CancelledText("") == "(cancelled)");
  CHECK(CancelledText("requested") == "(cancelled)");
  CHECK(CancelledText("client_disconnected") == "(cancelled: the client left)");
  CHECK(CancelledText("server_stopping") == "(cancelled: the server is stopping)");
  CHECK(CancelledText("chat_deleted") == "(cancelled: the chat was deleted)");
  CHECK(CancelledText("replaced") == "(cancelled: another message took its place)");
  CHECK(CancelledText("of_a_newer_server") == "(cancelled: of a newer server)");
}

TEST_CASE("ArgumentsOf: a line that is no argument is quoted", "[terminal]") {
  CHECK(ArgumentsOf("my words").error().message == "not of the form \"name\": value: my words");
}

}  // namespace reprise::test::question_text_test
