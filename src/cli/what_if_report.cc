#include "cli/what_if_report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "domain/codec.h"
#include "engine/replays.h"

namespace reprise {
namespace {

constexpr std::size_t kShownCall = 200, kShownOfAnswer = 2'000, kShownInTable = 40;  // characters
constexpr std::size_t kShownOfDiff = 20'000;                                         // bytes

std::string Number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, std::clamp(value, 0.0, 1e12));
  return text;
}

std::string NameOf(const TriedTurn& turn) {
  return turn.chat + (turn.turn.empty() ? "" : "/" + turn.turn) + (turn.at > 0 ? "@" + std::to_string(turn.at) : "");
}

std::string FirstLine(const std::string& text) {
  return VisibleLine(Shortened(std::string_view(text).substr(0, text.find('\n')), kShownInTable));
}

std::string AnswerOf(const TriedSide& side) {
  if (!side.error.empty()) return "(" + side.error + ")";
  return side.answer.empty() ? "(" + LowerCase(side.status) + ")" : side.answer;
}

// "trip/int_001", "openai/gpt-5.1", ... in columns.
using Row = std::vector<std::string>;
std::string TableOf(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += Padded(row[i], widths[i]) + "  ";
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Numbers of several runs.
struct Sum {
  std::size_t runs = 0, made = 0, calls = 0, checked = 0, passed = 0;
  double cost = 0, ms = 0;
  std::map<std::string, std::size_t> answers{};
  void Add(const TriedRun& run) {
    ++runs;
    made += run.was_made ? 1 : 0;
    calls += run.calls.size();
    checked += run.passed ? 1 : 0;
    passed += run.passed.value_or(false) ? 1 : 0;
    cost += run.cost;
    ms += run.ms;
    ++answers[AnswerOf(run)];
  }
  Row In(std::string turn, std::string model, std::string answer) const {
    return {std::move(turn),
            std::move(model),
            Grouped(made) + "/" + Grouped(runs),
            std::move(answer),
            Grouped(calls),
            Number(cost, 4),
            Number(ms / 1000, 1),
            checked == 0 ? "-" : Grouped(passed) + "/" + Grouped(checked)};
  }
};

std::string Summary(const WhatIfReport& report) {
  std::size_t runs = 0;
  for (const TriedTurn& each : report.turns) runs += each.runs.size();
  return Counted(report.turns.size(), "turn") + ", " + Counted(runs, "run") + " (" + Number(report.seconds, 1) +
         " s); " + report.asked + "\n";
}

std::string Table(const WhatIfReport& report) {
  std::vector<Row> rows{{"TURN", "MODEL", "RUNS", "ANSWER", "CALLS", "COST", "SECONDS", "CHECKS"}};
  std::map<std::string, Sum> models;
  Sum recorded;
  for (const TriedTurn& turn : report.turns) {
    const std::string name = VisibleLine(NameOf(turn));
    if (!turn.failure.empty()) {
      rows.push_back({name, "", "", "(" + VisibleLine(turn.failure) + ")"});
      continue;
    }
    const TriedSide& side = turn.recorded;
    recorded.calls += side.calls.size(), recorded.cost += side.cost, recorded.ms += side.ms;
    rows.push_back({name, "recorded", "", FirstLine(AnswerOf(side)), Grouped(side.calls.size()), Number(side.cost, 4),
                    Number(side.ms / 1000, 1), ""});
    std::vector<std::pair<std::string, Sum>> by_model;
    for (const TriedRun& run : turn.runs) {
      if (by_model.empty() || by_model.back().first != run.model) by_model.emplace_back(run.model, Sum());
      by_model.back().second.Add(run);
      models[run.model].Add(run);
    }
    for (const auto& [model, sum] : by_model) {
      const std::string answer = sum.answers.size() == 1 ? FirstLine(sum.answers.begin()->first)
                                                         : Grouped(sum.answers.size()) + " different ones";
      rows.push_back(sum.In("", VisibleLine(model), answer));
    }
  }
  rows.push_back({"all", "recorded", "", "", Grouped(recorded.calls), Number(recorded.cost, 4),
                  Number(recorded.ms / 1000, 1), ""});
  for (const auto& [model, sum] : models) rows.push_back(sum.In("", VisibleLine(model), ""));
  return TableOf(rows) + Summary(report);
}

void AddSide(std::string& text, const Style& style, const char* name, const TriedSide& side) {
  text += style.Paint(Style::kBold, name) + "  " + VisibleLine(side.model) + ", " + Counted(side.calls.size(), "call") +
          ", cost " + Number(side.cost, 4) + ", " + Number(side.ms / 1000, 1) + " s\n";
  for (const std::string& call : side.calls) text += "  call    " + VisibleLine(Shortened(call, kShownCall)) + "\n";
  text += "  answer  " + VisibleText(Shortened(AnswerOf(side), kShownOfAnswer), "          ") + "\n";
}

std::string ShortEvent(const std::optional<AgentEvent>& event) {
  return event ? VisibleLine(Shortened(DumpJson(ToJson(*event)), kShownCall)) : "nothing";
}

std::string BothSides(const TriedTurn& turn, const WhatIfReport& report, const Style& style) {
  const TriedRun& run = turn.runs.front();
  std::string text = VisibleLine(NameOf(turn)) + "\n";
  AddSide(text, style, "recorded", turn.recorded);
  AddSide(text, style, "what if ", run);
  if (run.difference) {
    text += "first difference: event " + std::to_string(run.difference->seq) + "\n  recorded  " +
            ShortEvent(run.difference->expected) + "\n  what if   " + ShortEvent(run.difference->actual) + "\n";
  } else {
    text += "no difference\n";
  }
  if (run.passed) text += *run.passed ? "the checks pass\n" : "checks fail: " + VisibleLine(run.problem) + "\n";
  if (!run.files.empty()) {
    text += "files changed, in the copy only:\n";
    for (const std::string& file : run.files) text += "  " + VisibleLine(file) + "\n";
    text += VisibleText(run.diff.substr(0, kShownOfDiff), "") + (run.diff.size() > kShownOfDiff ? "\n...\n" : "");
    if (!text.ends_with('\n')) text += '\n';
  }
  if (!run.kept.empty()) text += "kept as " + VisibleLine(turn.chat + "/" + run.kept) + "\n";
  if (!run.not_kept.empty()) text += "not kept: " + VisibleLine(run.not_kept) + "\n";
  return text + Summary(report);
}

Json ToJson(const TriedSide& side) {
  return {{"model", side.model},
          {"status", side.status},
          {"answer", side.answer},
          {"error", side.error.empty() ? Json() : Json(side.error)},
          {"calls", side.calls},
          {"input_tokens", side.usage.input_tokens},
          {"output_tokens", side.usage.output_tokens},
          {"cost", side.cost},
          {"ms", side.ms}};
}

Json ToJson(const TriedRun& run) {
  Json json = ToJson(static_cast<const TriedSide&>(run));
  json["was_made"] = run.was_made;
  json["passed"] = run.passed ? Json(*run.passed) : Json();
  json["problem"] = run.problem.empty() ? Json() : Json(run.problem);
  json["files"] = run.files;
  json["diff"] = ToValidUtf8(run.diff);
  if (!run.kept.empty()) json["kept"] = run.kept;
  if (!run.not_kept.empty()) json["not_kept"] = run.not_kept;
  Json& difference = json["first_difference"];
  if (run.difference) {
    const auto event = [](const std::optional<AgentEvent>& each) { return each ? reprise::ToJson(*each) : Json(); };
    difference = {{"seq", run.difference->seq},
                  {"recorded", event(run.difference->expected)},
                  {"what_if", event(run.difference->actual)}};
  }
  return json;
}

}  // namespace

bool WhatIfReport::is_good() const {
  return std::ranges::all_of(turns, [](const TriedTurn& turn) {
    return turn.failure.empty() && std::ranges::all_of(turn.runs, [](const TriedRun& run) {
             return run.was_made && run.error.empty() && run.not_kept.empty() && run.passed.value_or(true);
           });
  });
}

TriedSide SideOf(const Interaction& interaction, const ModelPrice* price) {
  TriedSide side{.model = interaction.model,
                 .status = std::string(ToString(interaction.status)),
                 .answer = AnswerIn(interaction),
                 .calls = CallsIn(interaction),
                 .usage = interaction.usage};
  if (interaction.error) side.error = interaction.error->message;
  if (price != nullptr) side.cost = CostOf(interaction.usage, *price);
  if (interaction.completed_at) {
    side.ms = std::chrono::duration<double, std::milli>(*interaction.completed_at - interaction.created_at).count();
  }
  return side;
}

TriedRun RunOf(const Interaction& recorded, const JudgedRun& judged) {
  TriedRun run{SideOf(judged.run.interaction, nullptr)};
  run.cost = judged.cost;
  run.ms = judged.ms;
  run.was_made = judged.was_made;
  if (judged.is_checked) run.passed = judged.passed();
  if (run.error.empty()) run.problem = judged.problem;
  for (const WorkspaceChange& each : judged.files) run.files.push_back(each.path);
  run.diff = judged.diff;
  run.difference = CompareRuns(recorded, judged.run.interaction).divergence;
  return run;
}

std::string TerminalText(const WhatIfReport& report, Colour colour) {
  const bool is_one = report.turns.size() == 1 && report.turns.front().runs.size() == 1;
  return is_one ? BothSides(report.turns.front(), report, Style(colour)) : Table(report);
}

std::string JsonText(const WhatIfReport& report) {
  Json turns = Json::array();
  for (const TriedTurn& turn : report.turns) {
    Json runs = Json::array();
    for (const TriedRun& run : turn.runs) runs.push_back(ToJson(run));
    turns.push_back({{"chat", turn.chat},
                     {"turn", turn.turn},
                     {"file", turn.file},
                     {"at", turn.at},
                     {"recorded", turn.failure.empty() ? ToJson(turn.recorded) : Json()},
                     {"runs", std::move(runs)},
                     {"failure", turn.failure.empty() ? Json() : Json(turn.failure)}});
  }
  const Json document{
      {"ok", report.is_good()}, {"turns", std::move(turns)}, {"asked", report.asked}, {"seconds", report.seconds}};
  return DumpJson(document) + "\n";
}

}  // namespace reprise
