#include "cli/suite_report.h"

#include <libxml/HTMLparser.h>
#include <libxml/parser.h>
#include <md4c.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string_view>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "support/schema_validator.h"
#include "support/test.h"

namespace reprise::test::suite_report_test {
namespace {

using State = TurnResult::State;

bool Contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Pieces that mean something in one of the formats.
const std::vector<std::string> kPieces = {"<",
                                          ">",
                                          "&",
                                          "\"",
                                          "'",
                                          "`",
                                          "``",
                                          "|",
                                          "\\",
                                          "*",
                                          "_",
                                          "~~",
                                          "\n",
                                          "\r",
                                          "\r\n",
                                          "\t",
                                          "\n\n\n\n\n\n",
                                          " ",
                                          "  ",
                                          std::string(1, '\0'),
                                          "\x01",
                                          "\x0b",
                                          "\x1b[31m",
                                          "\x1b]0;x\x07",
                                          "\x7f",
                                          "\xff",
                                          "\xc3",
                                          "\xf0\x9f",
                                          "\xed\xa0\x80",
                                          "\xef\xbf\xbe",
                                          "\xef\xbf\xbf",
                                          "\xe2\x80\xae",
                                          "\xe2\x80\x8b",
                                          "\xc2\x85",
                                          "\xe2\x80\xa8",
                                          "\xf0\x9f\x98\x80",
                                          "]]>",
                                          "</failure>",
                                          "</code>",
                                          "</li></ul>",
                                          "<script>alert(1)</script>",
                                          "<img src=x onerror=alert(1)>",
                                          "<!--",
                                          "-->",
                                          "<![CDATA[",
                                          "<!DOCTYPE x [<!ENTITY y 'z'>]>",
                                          "&lt;",
                                          "&#0;",
                                          "&y;",
                                          "%41",
                                          "@everyone",
                                          "#1",
                                          "http://x.example/",
                                          "www.x.example",
                                          "![a](b)",
                                          "[x](javascript:1)",
                                          "\n# a\n",
                                          "\n---\n",
                                          "\n| a | b |\n|---|---|\n",
                                          "\n```\n",
                                          "\n- ",
                                          "$x$",
                                          "javascript:",
                                          "a",
                                          "word",
                                          "7",
                                          "\xc3\xa4"};

std::string Hostile(std::mt19937& dice) {
  std::string text;
  for (std::size_t count = dice() % 12; count > 0; --count) text += kPieces[dice() % kPieces.size()];
  return text;
}

// A failed turn with each of these problems, in chats of ten turns.
SuiteReport HostileReport(std::size_t count) {
  std::mt19937 dice(20250115);
  SuiteReport report{.seconds = 1};
  for (std::size_t i = 0; i < count; ++i) {
    TurnResult turn{.chat = "chat" + std::to_string(i / 10), .turn = "int_" + std::to_string(i)};
    turn.problems = {Hostile(dice), Hostile(dice)};
    turn.file = i % 10 == 0 ? Hostile(dice) : report.turns.back().file;
    turn.state = State::kFailed;
    report.turns.push_back(std::move(turn));
  }
  return report;
}

// 30 turns of 3 chats: two failed, one skipped, a note on three.
SuiteReport Report() {
  SuiteReport report{.seconds = 0.12};
  for (int i = 0; i < 30; ++i) {
    report.turns.push_back({.chat = "chat" + std::to_string(i / 10),
                            .turn = "int_" + std::to_string(100 + i),
                            .file = "fixtures/" + std::to_string(i / 10) + ".json",
                            .ms = 1.5});
  }
  report.turns[3].state = report.turns[14].state = State::kFailed;
  report.turns[3].problems = {"answer: a", "never: b", "files: c", "max: d", "max: e"};
  report.turns[14].problems = {"drift: module 10-rules"};
  report.turns[20].state = State::kSkipped;
  report.turns[20].notes = {"no model"};
  for (int i = 0; i < 3; ++i) report.turns[static_cast<std::size_t>(i)].notes = {"judge: not checked without a model"};
  return report;
}

// As XML 1.0 can hold it: section 2.2, "Char".
std::string AsXml(const std::string& text) {
  std::string out;
  const std::string valid = ToValidUtf8(text);
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t size = Utf8Prefix(std::string_view(valid).substr(at), 1).size();
    const std::string character = valid.substr(at, size);
    const std::uint32_t code = CodePointOf(character);
    const bool allowed = code == 9 || code == 10 || code == 13 || (code >= 0x20 && code != 0xfffe && code != 0xffff);
    out += allowed ? character : "\xef\xbf\xbd";
    at += size;
  }
  return out;
}

struct FreeDocument {
  void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
};
using Document = std::unique_ptr<xmlDoc, FreeDocument>;

// Calls `use` with each element of this name.
template <typename Use>
void EachElement(xmlNode* node, const std::string& name, const Use& use) {
  for (; node != nullptr; node = node->next) {
    if (node->type == XML_ELEMENT_NODE && reinterpret_cast<const char*>(node->name) == name) use(node);
    EachElement(node->children, name, use);
  }
}

std::string Taken(xmlChar* text) {
  const std::string taken = text == nullptr ? "" : reinterpret_cast<const char*>(text);
  xmlFree(text);
  return taken;
}
std::string Content(xmlNode* node) { return Taken(xmlNodeGetContent(node)); }
std::string AttributeOf(xmlNode* node, const char* name) {
  return Taken(xmlGetProp(node, reinterpret_cast<const xmlChar*>(name)));
}

Document ReadXml(const std::string& text) {
  return Document(xmlReadMemory(text.data(), static_cast<int>(text.size()), "", "UTF-8",
                                XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_HUGE));
}

// What a reader of GitHub's Markdown finds.
struct Markdown {
  std::vector<std::string> code;  // the code spans
  std::string text;               // the rest
  std::size_t tables = 0;
  std::set<int> blocks, spans;
  bool in_code = false;
  bool has_html = false;
};

Markdown ReadMarkdown(const std::string& text) {
  Markdown found;
  MD_PARSER parser{};
  parser.flags = MD_DIALECT_GITHUB;
  parser.enter_block = [](MD_BLOCKTYPE type, void*, void* data) {
    auto& markdown = *static_cast<Markdown*>(data);
    markdown.blocks.insert(type);
    markdown.tables += type == MD_BLOCK_TABLE ? 1 : 0;
    return 0;
  };
  parser.leave_block = [](MD_BLOCKTYPE, void*, void*) { return 0; };
  parser.enter_span = [](MD_SPANTYPE type, void*, void* data) {
    auto& markdown = *static_cast<Markdown*>(data);
    markdown.spans.insert(type);
    markdown.in_code = type == MD_SPAN_CODE;
    if (markdown.in_code) markdown.code.emplace_back();
    return 0;
  };
  parser.leave_span = [](MD_SPANTYPE, void*, void* data) {
    static_cast<Markdown*>(data)->in_code = false;
    return 0;
  };
  parser.text = [](MD_TEXTTYPE type, const MD_CHAR* chars, MD_SIZE size, void* data) {
    auto& markdown = *static_cast<Markdown*>(data);
    markdown.has_html = markdown.has_html || type == MD_TEXT_HTML || type == MD_TEXT_ENTITY;
    (markdown.in_code ? markdown.code.back() : markdown.text).append(chars, size);
    return 0;
  };
  REQUIRE(md_parse(text.data(), static_cast<MD_SIZE>(text.size()), &parser, &found) == 0);
  return found;
}

}  // namespace

TEST_CASE("TerminalText: failed turns with three problems at most, and the numbers", "[suite-report]") {
  CHECK(
      TerminalText(Report(), Colour::kNever) ==
      "failed  chat0/int_103 (fixtures/0.json)\n        answer: a\n        never: b\n        files: c\n        2 more\n"
      "failed  chat1/int_114 (fixtures/1.json)\n        drift: module 10-rules\n"
      "note    judge: not checked without a model (3 turns)\nnote    no model (1 turn)\n"
      "30 turns of 3 chats: 27 passed, 2 failed, 1 skipped (0.1 s)\n");
  CHECK(TerminalText({}, Colour::kNever) == "0 turns of 0 chats: 0 passed (0.0 s)\n");
  CHECK(Contains(TerminalText(Report(), Colour::kAlways), "\x1b["));
  SuiteReport odd{.turns = {{.chat = "a", .turn = "int_001", .ms = std::nan("")}}, .seconds = -INFINITY};
  CHECK(TerminalText(odd, Colour::kNever) == "1 turn of 1 chat: 1 passed (0.0 s)\n");
}

TEST_CASE("TerminalText: hostile problems stay on their lines", "[suite-report]") {
  const SuiteReport report = HostileReport(1000);
  const std::string text = TerminalText(report, Colour::kNever);
  CHECK(IsUtf8(text));
  CHECK_FALSE(HasHidden(text));
  const std::vector<std::string> lines = LinesOf(text);
  std::size_t turns = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!lines[i].starts_with("        ")) CHECK((lines[i].starts_with("failed  chat") && ++turns > 0));
  }
  CHECK(turns == report.turns.size());
  CHECK(lines.size() <= 9 * turns + 1);  // a problem has four lines at most
}

TEST_CASE("JsonText: satisfies its schema and keeps every text", "[suite-report]") {
  const SchemaValidator schema("test_report");
  SuiteReport odd{.turns = {{.chat = "a", .turn = "int_001", .ms = std::nan("")}}, .seconds = INFINITY};
  for (const SuiteReport& report : {Report(), HostileReport(1000), odd, SuiteReport{}}) {
    const std::string text = JsonText(report);
    CHECK(schema.Complaint(text).empty());
    const auto json = ParseJson(text);
    REQUIRE(json.has_value());
    REQUIRE((*json)["turns"].size() == report.turns.size());
    for (std::size_t i = 0; i < report.turns.size(); ++i) {
      const Json& turn = (*json)["turns"][i];
      REQUIRE(turn["problems"].size() == report.turns[i].problems.size());
      for (std::size_t k = 0; k < turn["problems"].size(); ++k) {
        CHECK(turn["problems"][k].get<std::string>() == ToValidUtf8(report.turns[i].problems[k]));
      }
    }
  }
  const auto json = ParseJson(JsonText(Report()));
  CHECK((*json)["ok"] == false);
  CHECK((*json)["passed"] == 27);
  CHECK((*json)["failed"] == 2);
  CHECK((*json)["skipped"] == 1);
  CHECK((*json)["chats"] == 3);
  CHECK((*json)["turns"][20]["state"] == "skipped");
}

TEST_CASE("JunitText: a suite for each chat", "[suite-report]") {
  const Document document = ReadXml(JunitText(Report()));
  REQUIRE(document != nullptr);
  xmlNode* const root = xmlDocGetRootElement(document.get());
  CHECK(AttributeOf(root, "tests") == "30");
  CHECK(AttributeOf(root, "failures") == "2");
  CHECK(AttributeOf(root, "skipped") == "1");
  CHECK(AttributeOf(root, "time") == "0.120");
  std::vector<std::string> suites;
  EachElement(root, "testsuite", [&](xmlNode* suite) {
    suites.push_back(AttributeOf(suite, "name") + " " + AttributeOf(suite, "tests") + " " +
                     AttributeOf(suite, "failures") + " " + AttributeOf(suite, "time"));
  });
  CHECK(suites == std::vector<std::string>{"chat0 10 1 0.015", "chat1 10 1 0.015", "chat2 10 0 0.015"});
  std::vector<std::string> failures;
  EachElement(root, "failure", [&](xmlNode* failure) {
    failures.push_back(AttributeOf(failure->parent, "name") + " " + AttributeOf(failure, "message") + "; " +
                       Content(failure));
  });
  CHECK(failures == std::vector<std::string>{"int_103 answer: a; answer: a\nnever: b\nfiles: c\nmax: d\nmax: e",
                                             "int_114 drift: module 10-rules; drift: module 10-rules"});
  std::size_t outputs = 0;
  EachElement(root, "system-out", [&](xmlNode*) { ++outputs; });
  CHECK(outputs == 3);
  EachElement(root, "skipped", [&](xmlNode* skipped) { CHECK(AttributeOf(skipped, "message") == "no model"); });
}

TEST_CASE("JunitText: an XML parser reads every hostile text as it was", "[suite-report]") {
  const SuiteReport report = HostileReport(1000);
  const Document document = ReadXml(JunitText(report));
  REQUIRE(document != nullptr);
  std::size_t at = 0;
  EachElement(xmlDocGetRootElement(document.get()), "testcase", [&](xmlNode* test) {
    const TurnResult& turn = report.turns.at(at++);
    CHECK(AttributeOf(test, "name") == turn.turn);
    CHECK(AttributeOf(test, "file") == AsXml(turn.file));
    EachElement(test->children, "failure", [&](xmlNode* failure) {
      CHECK(AttributeOf(failure, "message") == AsXml(turn.problems[0]));
      const std::string joined =
          turn.problems[0].empty() ? turn.problems[1] : turn.problems[0] + "\n" + turn.problems[1];
      CHECK(Content(failure) == AsXml(joined));
    });
  });
  CHECK(at == 1000);
}

TEST_CASE("MarkdownText: the numbers, then the failed turns", "[suite-report]") {
  CHECK(MarkdownText(Report()) ==
        "### Recorded chats: 27 passed, 2 failed, 1 skipped\n\n"
        "| chats | turns | passed | failed | skipped | seconds |\n|--:|--:|--:|--:|--:|--:|\n"
        "| 3 | 30 | 27 | 2 | 1 | 0.1 |\n\n#### Failed\n\n"
        "- `chat0/int_103 (fixtures/0.json)`\n  - `answer: a`\n  - `never: b`\n  - `files: c`\n  - `max: d`\n"
        "  - `max: e`\n- `chat1/int_114 (fixtures/1.json)`\n  - `drift: module 10-rules`\n\n#### Notes\n\n"
        "- `judge: not checked without a model` (3 turns)\n- `no model` (1 turn)\n");
  const std::string large = MarkdownText(HostileReport(5000));
  CHECK(large.size() <= 60'000);
  CHECK(Contains(large, " more\n"));
}

TEST_CASE("MarkdownText: every hostile text is a code span", "[suite-report]") {
  const SuiteReport all = HostileReport(1000);
  for (std::size_t from = 0; from < all.turns.size(); from += 100) {
    const auto begin = all.turns.begin() + static_cast<std::ptrdiff_t>(from);
    const SuiteReport report{.turns = {begin, begin + 100}};
    std::vector<std::string> expected;
    for (const TurnResult& turn : report.turns) {
      const std::string file = turn.file.empty() ? "" : " (" + turn.file + ")";
      expected.push_back(VisibleLine(turn.chat + "/" + turn.turn + file));
      for (const std::string& problem : turn.problems) {
        if (!IsBlank(VisibleLine(problem))) expected.push_back(VisibleLine(problem));
      }
    }
    const Markdown found = ReadMarkdown(MarkdownText(report));
    CHECK(found.code == expected);
    CHECK(found.tables == 1);
    CHECK_FALSE(found.has_html);
    CHECK(found.spans == std::set<int>{MD_SPAN_CODE});
    for (const int block : {MD_BLOCK_QUOTE, MD_BLOCK_CODE, MD_BLOCK_HTML, MD_BLOCK_HR}) {
      CHECK_FALSE(found.blocks.contains(block));
    }
  }
}

TEST_CASE("Reports: what fails beside the turns is no turn, and chats of one name are told apart", "[suite-report]") {
  SuiteReport report;
  for (const char* const folder : {"a", "b"}) {
    const std::string file = std::string("j/") + folder + "/trip";
    report.turns.push_back({.chat = "trip", .turn = "int_001", .file = file});
    report.turns.push_back(
        {.chat = "trip", .turn = "", .file = file, .problems = {"it cannot be written"}, .state = State::kFailed});
  }
  CHECK(Contains(TerminalText(report, Colour::kNever), "2 turns of 2 chats: 2 passed, 2 failed"));
  CHECK(Contains(MarkdownText(report), "| 2 | 2 | 2 | 2 | 0 |"));
  const std::string junit = JunitText(report);
  CHECK(Contains(junit, "classname=\"j/a/trip\" name=\"int_001\""));
  CHECK(Contains(junit, "classname=\"j/b/trip\" name=\"int_001\""));
  CHECK(Contains(junit, "classname=\"j/b/trip\" name=\"chat\""));
  CHECK_FALSE(Contains(junit, "name=\"\""));
  report.turns.resize(2);
  CHECK(Contains(JunitText(report), "classname=\"trip\" name=\"int_001\""));
}

TEST_CASE("HtmlText: one file without scripts and requests", "[suite-report]") {
  const std::string text = HtmlText(Report());
  CHECK(text.starts_with("<!doctype html>\n"));
  CHECK(Contains(text, "default-src 'none'"));
  CHECK(Contains(text, "prefers-color-scheme: dark"));
  CHECK(Contains(text, "30 turns of 3 chats: 27 passed, 2 failed, 1 skipped (0.1 s)"));
  CHECK(Contains(text, "<td>int_103</td><td class=\"failed\">failed</td>"));
  for (const char* forbidden : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"}) {
    CHECK_FALSE(Contains(text, forbidden));
  }
}

TEST_CASE("HtmlText: no hostile text becomes a tag", "[suite-report]") {
  const SuiteReport report = HostileReport(1000);
  const std::string text = HtmlText(report);
  const std::string body = text.substr(text.find("<body>"));
  const std::set<std::string> known = {"<body>",
                                       "</body>",
                                       "</html>",
                                       "<h1>",
                                       "</h1>",
                                       "<h2>",
                                       "</h2>",
                                       "<p>",
                                       "</p>",
                                       "<p class=\"dim\">",
                                       "<table>",
                                       "</table>",
                                       "<tr>",
                                       "</tr>",
                                       "<td>",
                                       "</td>",
                                       "<td class=\"failed\">",
                                       "<td class=\"ms\">",
                                       "<li>",
                                       "</li>",
                                       "<ul class=\"problems\">",
                                       "</ul>"};
  for (std::size_t at = body.find('<'); at != std::string::npos; at = body.find('<', at + 1)) {
    const std::string tag = body.substr(at, body.find('>', at) - at + 1);
    if (!known.contains(tag)) FAIL_CHECK(tag);
  }
  CHECK_FALSE(HasHidden(text));

  const Document page(htmlReadMemory(text.data(), static_cast<int>(text.size()), "", "UTF-8",
                                     HTML_PARSE_NONET | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING));
  REQUIRE(page != nullptr);
  std::vector<std::string> items, expected;
  EachElement(xmlDocGetRootElement(page.get()), "li", [&](xmlNode* item) { items.push_back(Content(item)); });
  for (const TurnResult& turn : report.turns) {
    for (const std::string& problem : turn.problems) expected.push_back(VisibleText(problem, ""));
  }
  CHECK(items == expected);
}

}  // namespace reprise::test::suite_report_test
