#include "cli/suite_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {
namespace {

using State = TurnResult::State;

constexpr std::size_t kMostProblems = 3;               // of a turn at the terminal
constexpr std::size_t kMostCharacters = 400;           // of a problem there
constexpr std::size_t kMostLines = 4;                  // likewise
constexpr std::size_t kMostProblemsInMarkdown = 20;    // of a turn
constexpr std::size_t kMostMarkdownCharacters = 1000;  // of a problem
constexpr std::size_t kMostMarkdownBytes = 59'000;     // GitHub takes comments of 65,536 characters

std::string_view NameOf(State state) {
  return state == State::kPassed ? "passed" : state == State::kFailed ? "failed" : "skipped";
}

// The turns of one chat.
using ChatTurns = std::span<const TurnResult>;

std::vector<ChatTurns> ByChat(const SuiteReport& report) {
  std::vector<ChatTurns> chats;
  for (auto begin = report.turns.begin(); begin != report.turns.end();) {
    const auto end = std::find_if(begin, report.turns.end(), [&](const TurnResult& turn) {
      return turn.chat != begin->chat || turn.file != begin->file;
    });
    chats.emplace_back(begin, end);
    begin = end;
  }
  return chats;
}

// Without what failed beside the turns: a chat that cannot be read, bad checks.
std::size_t TurnsIn(const SuiteReport& report) {
  return static_cast<std::size_t>(
      std::ranges::count_if(report.turns, [](const TurnResult& turn) { return !turn.turn.empty(); }));
}

std::size_t NumberOf(ChatTurns turns, State state) {
  return static_cast<std::size_t>(std::ranges::count(turns, state, &TurnResult::state));
}

// Durations come from clocks, but a number that is none would break the formats.
double Sound(double number) { return std::isfinite(number) && number > 0 ? number : 0; }

std::string Seconds(double seconds, int decimals) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, Sound(seconds));
  return text;
}

std::string NameAndFile(const TurnResult& turn) {
  return turn.chat + (turn.turn.empty() ? "" : "/" + turn.turn) + (turn.file.empty() ? "" : " (" + turn.file + ")");
}

// "28 passed, 2 failed"
std::string OutcomeWords(const SuiteReport& report) {
  std::string text = Grouped(NumberOf(report.turns, State::kPassed)) + " passed";
  for (const State state : {State::kFailed, State::kSkipped}) {
    const std::size_t count = NumberOf(report.turns, state);
    if (count > 0) text += ", " + Grouped(count) + " " + std::string(NameOf(state));
  }
  return text;
}

std::string Summary(const SuiteReport& report) {
  return Counted(TurnsIn(report), "turn") + " of " + Counted(ByChat(report).size(), "chat") + ": " +
         OutcomeWords(report) + " (" + Seconds(report.seconds, 1) + " s)" +
         (report.asked.empty() ? "" : "; " + report.asked);
}

// Equal notes once, with the number of their turns.
std::map<std::string, std::size_t> NotesOf(const SuiteReport& report) {
  std::map<std::string, std::size_t> notes;
  for (const TurnResult& turn : report.turns) {
    for (const std::string& note : turn.notes) ++notes[note];
  }
  return notes;
}

std::string TerminalLine(std::string_view text) { return VisibleLine(Shortened(text, kMostCharacters)); }

}  // namespace

std::string TerminalText(const SuiteReport& report, Colour colour) {
  const Style style(colour);
  std::string out;
  for (const TurnResult& turn : report.turns) {
    if (turn.state != State::kFailed) continue;
    out += style.Paint(Style::kError, "failed") + "  " + TerminalLine(NameAndFile(turn)) + "\n";
    const std::size_t shown = std::min(turn.problems.size(), kMostProblems);
    for (std::size_t i = 0; i < shown; ++i) {
      std::vector<std::string> lines = LinesOf(Shortened(turn.problems[i], kMostCharacters));
      lines.resize(std::clamp<std::size_t>(lines.size(), 1, kMostLines));
      for (const std::string& line : lines) out += "        " + VisibleLine(line) + "\n";
    }
    if (turn.problems.size() > shown) out += "        " + Grouped(turn.problems.size() - shown) + " more\n";
  }
  const auto notes = NotesOf(report);
  std::size_t listed = 0;
  for (const auto& [note, turns] : notes) {
    if (listed++ == kMostProblems) break;
    out += style.Paint(Style::kWarning, "note") + "    " + TerminalLine(note) + " (" + Counted(turns, "turn") + ")\n";
  }
  if (notes.size() > kMostProblems) out += "        " + Counted(notes.size() - kMostProblems, "more note") + "\n";
  const bool failed = NumberOf(report.turns, State::kFailed) > 0;
  return out + style.Paint(failed ? Style::kError : Style::kBold, Summary(report)) + "\n";
}

std::string JsonText(const SuiteReport& report) {
  Json turns = Json::array();
  for (const TurnResult& turn : report.turns) {
    turns.push_back({{"chat", turn.chat},
                     {"turn", turn.turn},
                     {"file", turn.file},
                     {"state", NameOf(turn.state)},
                     {"problems", turn.problems},
                     {"notes", turn.notes},
                     {"ms", Sound(turn.ms)}});
  }
  const std::size_t failed = NumberOf(report.turns, State::kFailed);
  Json document{{"ok", failed == 0},
                {"chats", ByChat(report).size()},
                {"passed", NumberOf(report.turns, State::kPassed)},
                {"failed", failed},
                {"skipped", NumberOf(report.turns, State::kSkipped)},
                {"seconds", Sound(report.seconds)},
                {"turns", std::move(turns)}};
  if (!report.asked.empty()) document["asked"] = report.asked;
  return DumpJson(document) + "\n";
}

// --- JUnit

namespace {

// For text between tags and for attributes, whose line ends a reader would change to spaces.
std::string XmlEscaped(std::string_view text) {
  std::string out;
  for (const char c : ToValidUtf8(text)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20;
    if (c == '\n' || c == '\r' || c == '\t') {
      out += "&#" + std::to_string(c) + ";";
    } else if (is_control) {
      out += "\xef\xbf\xbd";  // U+FFFD
    } else if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'') {
      out += "&#" + std::to_string(c) + ";";
    } else {
      out += c;
    }
    if (out.ends_with("\xef\xbf\xbe") || out.ends_with("\xef\xbf\xbf")) out.back() = '\xbd';  // U+FFFE, U+FFFF
  }
  return out;
}

std::string XmlAttribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + XmlEscaped(value) + "\"";
}

std::string Counts(ChatTurns turns, double seconds) {
  return XmlAttribute("tests", std::to_string(turns.size())) +
         XmlAttribute("failures", std::to_string(NumberOf(turns, State::kFailed))) + XmlAttribute("errors", "0") +
         XmlAttribute("skipped", std::to_string(NumberOf(turns, State::kSkipped))) +
         XmlAttribute("time", Seconds(seconds, 3));
}

// Servers tell test cases apart by class and name, so chats of the same name in several folders need their paths.
std::string ClassOf(const std::vector<ChatTurns>& chats, const TurnResult& turn) {
  const auto is_other = [&](ChatTurns each) { return each[0].chat == turn.chat && each[0].file != turn.file; };
  return std::ranges::any_of(chats, is_other) && !turn.file.empty() ? turn.file : turn.chat;
}

void AppendTestCase(std::string& out, const TurnResult& turn, const std::string& of) {
  out += "    <testcase" + XmlAttribute("classname", of) +
         XmlAttribute("name", turn.turn.empty() ? "chat" : turn.turn) +
         (turn.file.empty() ? "" : XmlAttribute("file", turn.file)) + XmlAttribute("time", Seconds(turn.ms / 1000, 6)) +
         ">\n";
  if (turn.state == State::kFailed) {
    const std::string first = turn.problems.empty() ? "failed" : turn.problems.front();
    out += "      <failure" + XmlAttribute("message", first) + ">" + XmlEscaped(Joined(turn.problems, "\n")) +
           "</failure>\n";
  }
  if (turn.state == State::kSkipped)
    out += "      <skipped" + XmlAttribute("message", Joined(turn.notes, "\n")) + "/>\n";
  if (turn.state != State::kSkipped && !turn.notes.empty()) {
    out += "      <system-out>" + XmlEscaped(Joined(turn.notes, "\n")) + "</system-out>\n";
  }
  out += "    </testcase>\n";
}

}  // namespace

std::string JunitText(const SuiteReport& report) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + XmlAttribute("name", "reprise test") +
                    Counts(report.turns, report.seconds) + ">\n";
  const auto chats = ByChat(report);
  for (const ChatTurns chat : chats) {
    double ms = 0;
    for (const TurnResult& turn : chat) ms += Sound(turn.ms);
    const std::string name = ClassOf(chats, chat.front());
    out += "  <testsuite" + XmlAttribute("name", name) + Counts(chat, ms / 1000) + ">\n";
    for (const TurnResult& turn : chat) AppendTestCase(out, turn, name);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

// --- Markdown

namespace {

// Text as a code span on one line: nothing in it is Markdown, HTML, or the name of somebody who would be notified. It
// must not stand in a table, where "|" would end its cell.
std::string CodeSpan(std::string_view text) {
  const std::string line = VisibleLine(Shortened(text, kMostMarkdownCharacters));
  std::size_t run = 0, longest = 0;
  for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`');
  if (IsBlank(line)) return "(blank)";
  const auto is_edge = [](char c) { return c == '`' || c == ' '; };
  const std::string pad = is_edge(line.front()) || is_edge(line.back()) ? " " : "";
  return fence + pad + line + pad + fence;
}

std::string MarkdownOf(const TurnResult& turn) {
  std::string out = "- " + CodeSpan(NameAndFile(turn)) + "\n";
  const std::size_t shown = std::min(turn.problems.size(), kMostProblemsInMarkdown);
  for (std::size_t i = 0; i < shown; ++i) out += "  - " + CodeSpan(turn.problems[i]) + "\n";
  if (turn.problems.size() > shown) out += "  - " + Grouped(turn.problems.size() - shown) + " more\n";
  return out;
}

}  // namespace

std::string MarkdownText(const SuiteReport& report) {
  const std::size_t failed = NumberOf(report.turns, State::kFailed);
  std::string out = "### Recorded chats: " + OutcomeWords(report) +
                    "\n\n| chats | turns | passed | failed | skipped | seconds |\n|--:|--:|--:|--:|--:|--:|\n| " +
                    Grouped(ByChat(report).size()) + " | " + Grouped(TurnsIn(report)) + " | " +
                    Grouped(NumberOf(report.turns, State::kPassed)) + " | " + Grouped(failed) + " | " +
                    Grouped(NumberOf(report.turns, State::kSkipped)) + " | " + Seconds(report.seconds, 1) + " |\n";
  if (failed > 0) out += "\n#### Failed\n\n";
  std::size_t told = 0;
  for (const TurnResult& turn : report.turns) {
    if (turn.state != State::kFailed) continue;
    const std::string more = MarkdownOf(turn);
    if (out.size() + more.size() > kMostMarkdownBytes) break;
    out += more;
    ++told;
  }
  if (told < failed) out += "- " + Grouped(failed - told) + " more\n";
  const auto notes = NotesOf(report);
  if (!notes.empty()) out += "\n#### Notes\n\n";
  std::size_t listed = 0;
  for (const auto& [note, turns] : notes) {
    const std::string line = "- " + CodeSpan(note) + " (" + Counted(turns, "turn") + ")\n";
    if (out.size() + line.size() > kMostMarkdownBytes) break;
    out += line;
    ++listed;
  }
  if (listed < notes.size()) out += "- " + Grouped(notes.size() - listed) + " more\n";
  return out;
}

// --- HTML

namespace {

constexpr std::size_t kMostHtmlAnswer = 20'000;  // characters

constexpr std::string_view kHtmlHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Recorded chats</title>
<style>
:root {
  color-scheme: light dark;
  --text: #1f2328; --back: #ffffff; --line: #d0d7de; --dim: #59636e; --bad: #b42318; --good: #1a7f37;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --back: #0d1117; --line: #30363d; --dim: #9198a1; --bad: #ff7b72; --good: #56d364; }
}
body {
  margin: 2rem auto; padding: 0 1rem; max-width: 64rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--text); background: var(--back);
}
h2 { font-size: 1rem; margin: 1.5rem 0 0.25rem; }
table { width: 100%; border-collapse: collapse; }
td { padding: 0.25rem 0.5rem; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td.ms { text-align: right; white-space: nowrap; }
p, ul { margin: 0; }
li, .sides p { white-space: pre-wrap; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; margin-top: 0.5rem; }
h3 { font-size: 0.9rem; margin: 0; }
.dim { color: var(--dim); }
.failed { color: var(--bad); }
.passed { color: var(--good); }
</style>
</head>
<body>
)";

// Text with its line ends; everything hidden is spelled out.
std::string HtmlEscaped(std::string_view text) { return XmlEscaped(VisibleText(text, "")); }

std::string HtmlList(const std::vector<std::string>& texts, std::string_view style) {
  if (texts.empty()) return "";
  std::string out = "<ul" + XmlAttribute("class", style) + ">";
  for (const std::string& text : texts) out += "<li>" + HtmlEscaped(text) + "</li>";
  return out + "</ul>";
}

// What was done in both, beside each other.
std::string HtmlSides(const std::vector<TurnSide>& sides) {
  if (sides.empty()) return "";
  std::string out = "<div class=\"sides\">";
  for (const TurnSide& side : sides) {
    out += "<section><h3>" + HtmlEscaped(side.title) + "</h3>" + HtmlList(side.calls, "dim") + "<p>" +
           HtmlEscaped(Shortened(side.answer, kMostHtmlAnswer)) + "</p></section>";
  }
  return out + "</div>";
}

}  // namespace

std::string HtmlText(const SuiteReport& report) {
  std::string out(kHtmlHead);
  out += "<h1>Recorded chats</h1>\n<p>" + HtmlEscaped(Summary(report)) + "</p>\n";
  for (const ChatTurns chat : ByChat(report)) {
    const TurnResult& first = chat.front();
    out += "<h2>" + HtmlEscaped(first.chat) + "</h2>\n";
    if (!first.file.empty()) out += "<p class=\"dim\">" + HtmlEscaped(first.file) + "</p>\n";
    out += "<table>\n";
    for (const TurnResult& turn : chat) {
      out += "<tr><td>" + HtmlEscaped(turn.turn) + "</td><td" + XmlAttribute("class", NameOf(turn.state)) + ">" +
             std::string(NameOf(turn.state)) + "</td><td>" + HtmlList(turn.problems, "problems") +
             HtmlList(turn.notes, "dim") + HtmlSides(turn.sides) + "</td><td class=\"ms\">" + Seconds(turn.ms, 1) +
             " ms</td></tr>\n";
    }
    out += "</table>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace reprise
