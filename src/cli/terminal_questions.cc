// What a run asks the person: approvals, questions of tools, forms.
#include <algorithm>
#include <utility>

#include "cli/diff_view.h"
#include "cli/question_text.h"
#include "cli/terminal_client.h"
#include "cli/terminal_text.h"
#include "cli/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kRowsBesideQuestion = 6;  // that a question below leaves to the rest
constexpr int kDiffLines = 40;          // unless all of it is asked for
constexpr const char* kHowToAnswer = "y, n, a or e; words behind y or n are for the model, as in: n use another name";

// "n", "no", or either with words behind it.
bool IsAnswer(const std::string& line, std::string_view letter, std::string_view word, std::string& words) {
  for (const std::string_view name : {letter, word}) {
    if (line == name) return true;
    if (line.size() <= name.size() || !line.starts_with(name)) continue;
    const std::size_t at = line[name.size()] == ' '                     ? name.size()
                           : line.substr(name.size()).starts_with(", ") ? name.size() + 1
                                                                        : std::string::npos;
    if (at == std::string::npos) continue;
    words = line.substr(at + 1);
    return true;
  }
  return false;
}

}  // namespace

// Asks the question that has been open longest.
void TerminalClient::AskNext() {
  const OpenQuestion question = open_.front();
  asking_ = question.id;
  const bool settled = AllowedByMode(question) ? AllowByMode(question)
                       : question.is_approval  ? AskApproval(question)
                                               : AskInput(question);
  if (settled) std::erase_if(open_, [&](const OpenQuestion& each) { return each.id == question.id; });
  asking_.clear();
  question_text_.clear();
}

bool TerminalClient::AllowedByMode(const OpenQuestion& question) const {
  if (!question.is_approval || question.from_list || allows_ == Allows::kNothing) return false;
  if (allows_ == Allows::kAll) return true;
  // What is risky (a file where secrets are kept, say) is asked about.
  const std::string tool = TextMember(question.asked, "tool_name");
  return (tool == "write_file" || tool == "edit_file") && TextMember(question.asked, "risk") == "medium";
}

// What is allowed stands among the lines that stay.
bool TerminalClient::AllowByMode(const OpenQuestion& question) {
  bool cut = false;
  screen_.Add(DescribeQuestion(question, /*whole=*/false, cut));
  const Json body = {{"approval_id", question.id},
                     {"approved", true},
                     {"arguments_digest", TextMember(question.asked, "arguments_digest")}};
  // Whatever keeps it from being allowed is something for the person.
  return Give(question, "/approve", body) || AskApproval(question);
}

// Shows it below, where it goes when it needs no answer any more, or, if there is no room for it, among the lines that
// stay.
void TerminalClient::ShowQuestion(std::vector<std::string> lines) {
  if (screen_.RowsOf(lines) + kRowsBesideQuestion <= screen_.rows()) {
    question_text_ = std::move(lines);
  } else {
    screen_.Add(lines);
    question_text_.clear();
  }
}

// The question becomes one of the lines that stay.
void TerminalClient::KeepQuestion() {
  screen_.Add(question_text_);
  question_text_.clear();
}

// The next line, as the answer to what is shown. Nothing that was typed before counts.
TerminalClient::Answered TerminalClient::Answer(const std::string& prompt, std::string& line, bool may_go_back) {
  UpdateScreen(/*at_once=*/true);
  screen_.SetBelow(Below());
  const ArrivingEvents* const asking_run = stream_.get();
  switch (screen_.ReadAnswer(prompt, meanwhile_, line)) {
    case Came::kLine:
      KeepQuestion();
      screen_.Add(prompt + VisibleLine(line));
      return Answered::kLine;
    case Came::kWithdrawn:
      question_text_.clear();
      if (running() && stream_.get() == asking_run) Tell("(already answered)");
      return Answered::kWithdrawn;
    case Came::kInterrupt:
      if (may_go_back) return Answered::kBack;
      KeepQuestion();
      if (running()) Cancel();
      open_.clear();
      return Answered::kLeft;
    case Came::kEnd:
      break;
  }
  // The person goes; the question stays for whoever opens the chat next.
  KeepQuestion();
  Tell("(the question stays open: " + advice_ + " " + chat_ + " asks it again)");
  open_.clear();
  leaving_ = true;
  return Answered::kLeft;
}

// True: the question is settled. False: it is to be asked again.
bool TerminalClient::Give(const OpenQuestion& question, const std::string& route, const Json& body) {
  const auto given = Call("POST", question.run + route, body);
  if (given) return true;
  if (given.error().reason == "stale") return Complain(given.error().message), true;  // the question follows
  if (given.error().reason.empty() || IsNoLongerOpen(given.error())) return Failed(given.error()), true;
  Complain(given.error().message);
  return false;
}

// The call, what it would change, its risk and why it asks. `cut`: not all of it is shown.
std::vector<std::string> TerminalClient::DescribeQuestion(const OpenQuestion& question, bool whole, bool& cut) {
  const std::string tool = TextMember(question.asked, "tool_name");
  const ApprovalText shown = DescribeApproval(question.asked, whole);
  cut = shown.cut;
  std::vector<std::string> lines;
  if (question.from_list)
    lines.push_back(style_.Paint(Style::kDim, VisibleLine(TextMember(question.asked, "chat_id") + "/" +
                                                          TextMember(question.asked, "interaction_id"))));
  // Of a change of a file people read the difference.
  if (tool == "write_file" || tool == "edit_file" || tool == "delete_file") {
    const auto change = server_.Call("GET", "/approvals/" + question.id + "/change");
    if (change && change->is_object()) {
      const auto text = [&](const char* name) {
        const auto member = change->find(name);
        return member != change->end() && member->is_string() ? std::optional(member->get<std::string>())
                                                              : std::nullopt;
      };
      const std::string path = VisibleLine(TextMember(*change, "path")), risk = TextMember(question.asked, "risk");
      lines.push_back(style_.Paint(Style::kBold, VisibleLine(tool) + " " + path) +
                      (risk.empty() ? "" : "  (risk: " + VisibleLine(risk) + ")"));
      const Diff diff = DiffLines(text("before"), text("after"), style_,
                                  {.path = path, .width = screen_.columns(), .max_lines = whole ? 0 : kDiffLines});
      lines.insert(lines.end(), diff.lines.begin(), diff.lines.end());
      cut = diff.cut;
      for (const std::string& line : Wrap(VisibleLine(TextMember(question.asked, "reason")), screen_.columns())) {
        lines.push_back(line);
      }
      return lines;
    }
    if (!change && change.error().reason == "no_change_to_show") {
      lines.push_back(style_.Paint(Style::kWarning, VisibleLine(change.error().message)));
    }
  }
  bool first = true;
  for (const std::string& line : LinesOf(shown.text)) {
    for (const std::string& part : Wrap(line, screen_.columns(), "", first ? "  " : "    ")) {
      lines.push_back(first ? style_.Paint(Style::kBold, part) : part);
    }
    first = false;
  }
  return lines;
}

// Those whose answer could not be given are asked again.
void TerminalClient::AnswerAll(const std::vector<OpenQuestion>& shown, bool approved) {
  for (const OpenQuestion& each : shown) {
    const bool settled = Give(each, "/approve",
                              {{"approval_id", each.id},
                               {"approved", approved},
                               {"arguments_digest", TextMember(each.asked, "arguments_digest")}});
    if (settled) std::erase_if(open_, [&](const OpenQuestion& open) { return open.id == each.id; });
  }
}

bool TerminalClient::AskApproval(const OpenQuestion& question) {
  Json body = {{"approval_id", question.id},
               {"approved", false},
               {"arguments_digest", TextMember(question.asked, "arguments_digest")}};
  // Those that are open together can be answered together, after all of them were shown.
  std::vector<OpenQuestion> together;
  if (!question.from_list) {
    for (const OpenQuestion& each : open_) {
      if (each.is_approval && each.id != question.id) together.push_back(each);
    }
  }
  bool whole = false;
  std::string edited;  // arguments
  for (;;) {
    bool cut = false;
    std::vector<std::string> lines;
    for (const OpenQuestion& each : together) {
      bool other_cut = false;
      const auto more = DescribeQuestion(each, whole, other_cut);
      lines.insert(lines.end(), more.begin(), more.end());
      cut = cut || other_cut;
      lines.emplace_back();
    }
    bool own_cut = false;
    const auto own = DescribeQuestion(question, whole, own_cut);
    if (!together.empty()) {
      lines.push_back(style_.Paint(Style::kWarning, "of " + std::to_string(together.size() + 1) +
                                                        " calls that ask together, the first to answer is:"));
    }
    lines.insert(lines.end(), own.begin(), own.end());
    cut = cut || own_cut;
    ShowQuestion(std::move(lines));

    std::string line, words;
    const std::string all = together.empty() ? "" : ", [Y]es or [N]o to all " + std::to_string(together.size() + 1);
    switch (Answer("allow? [y]es, [n]o, [a]lways in this chat, [e]dit the arguments" +
                       std::string(cut ? ", [s]how all" : "") + all + (question.from_list ? ", [l]ater" : "") + ": ",
                   line)) {
      case Answered::kWithdrawn:
      case Answered::kLeft:
      case Answered::kBack:
        return true;
      case Answered::kLine:
        break;
    }
    if (question.from_list && (line == "l" || line == "later")) return true;
    if (!together.empty() && (line == "Y" || line == "N")) {
      // Only what was shown: another one may have come since.
      together.insert(together.begin(), question);
      AnswerAll(together, line == "Y");
      return std::none_of(open_.begin(), open_.end(), [&](const OpenQuestion& open) { return open.id == question.id; });
    }
    if (line == "Y" || line == "N") line = line == "Y" ? "y" : "n";
    if (line == "s" || line == "show") {
      whole = true;
      continue;
    }
    if (IsAnswer(line, "n", "no", words)) {
      if (!words.empty()) body["feedback"] = words;
      if (Give(question, "/approve", body)) return true;
      continue;
    }
    if (line == "a" || line == "always") {
      body["scope"] = "chat";
    } else if (line == "e" || line == "edit") {
      if (edited.empty()) edited = TextMember(question.asked, "tool_input_escaped");
      if (edited.empty()) edited = TextMember(question.asked, "tool_input");
      const Answered answered = Answer("arguments: ", edited, /*may_go_back=*/true);
      if (answered == Answered::kBack) continue;
      if (answered != Answered::kLine) return true;
      const auto arguments = ParseJson(edited);
      if (!arguments || !arguments->is_object()) {
        Complain("the arguments must be a JSON object; e edits them again");
        continue;
      }
      body["arguments"] = edited;  // as it was typed
    } else if (!IsAnswer(line, "y", "yes", words)) {
      Tell(kHowToAnswer);
      continue;
    }
    if (!words.empty()) body["feedback"] = words;
    body["approved"] = true;
    if (Give(question, "/approve", body)) return true;
    body = {{"approval_id", question.id},
            {"approved", false},
            {"arguments_digest", TextMember(question.asked, "arguments_digest")}};
  }
}

bool TerminalClient::AskInput(const OpenQuestion& question) {
  const std::string schema = TextMember(question.asked, "schema"), url = TextMember(question.asked, "url");
  std::vector<std::string> lines;
  for (const std::string& line : Wrap(VisibleText(TextMember(question.asked, "question"), ""), screen_.columns())) {
    lines.push_back(style_.Paint(Style::kBold, line));
  }
  Json body = {{"request_id", question.id}};
  std::string line;
  if (!url.empty() || !schema.empty()) {
    if (!url.empty()) {
      for (const std::string& part : Wrap("open: " + VisibleLine(url), screen_.columns(), "  ", "    ")) {
        lines.push_back(part);
      }
    }
    for (;;) {
      ShowQuestion(lines);
      line.clear();
      if (Answer(std::string(url.empty() ? "fill in the form? " : "have you done that? ") + "[y]es, [n]o: ", line) !=
          Answered::kLine) {
        return true;
      }
      if (line == "y" || line == "yes" || line == "n" || line == "no") break;
      Tell("y or n");
    }
    if (line.starts_with("n")) {
      body["declined"] = true;
    } else if (schema.empty()) {
      body["response"] = "done";
    } else {
      auto object = FillIn(question, schema);
      if (!object) return true;
      body["response"] = *std::move(object);
    }
    return Give(question, "/respond", body);
  }
  std::vector<std::string> options;
  for (const Json& option : question.asked.value("options", Json::array())) {
    if (!option.is_string()) continue;
    options.push_back(option.get<std::string>());
    const std::string number = "  " + std::to_string(options.size()) + ". ";
    for (const std::string& part : Wrap(VisibleLine(options.back()), screen_.columns(), number, "     ")) {
      lines.push_back(part);
    }
  }
  ShowQuestion(std::move(lines));
  if (Answer(options.empty() ? "answer: " : "answer (a number, or words): ", line) != Answered::kLine) return true;
  // A number is an option, unless it is one of the options itself.
  const bool is_option = std::find(options.begin(), options.end(), line) != options.end();
  const bool is_number = !line.empty() && line.size() < 4 && line.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && !is_option) {
    const std::size_t number = static_cast<std::size_t>(std::stoul(line));
    if (number >= 1 && number <= options.size()) line = options[number - 1];
  }
  if (line.empty()) {
    body["declined"] = true;
  } else {
    body["response"] = line;
  }
  return Give(question, "/respond", body);
}

// The object that a form wants, member by member. nullopt: the question is settled, or left open.
std::optional<Json> TerminalClient::FillIn(const OpenQuestion& question, const std::string& schema) {
  Json object = Json::object();
  // The server may not take the form: what was entered is there again.
  if (std::exchange(filled_in_, question.id) != question.id) entered_.clear();
  std::string line;
  const std::vector<FormField> fields = FieldsOf(schema);
  if (fields.empty()) Tell("a JSON object of this schema: " + schema);
  while (fields.empty()) {
    line.clear();
    if (Answer("object: ", line) != Answered::kLine) return std::nullopt;
    if (auto given = ParseJson(line); given && given->is_object()) return *std::move(given);
    Complain("this must be a JSON object");
  }
  for (const FormField& field : fields) {
    Tell(VisibleLine(field.name) + ": " + field.hint);
    for (;;) {
      line = entered_[field.name];
      if (Answer(VisibleLine(field.name) + "> ", line) != Answered::kLine) return std::nullopt;
      auto value = field.ParseLine(line);
      if (value) {
        entered_[field.name] = line;
        if (*value) object[field.name] = **std::move(value);
        break;
      }
      Complain(value.error().message);
    }
  }
  return object;
}

}  // namespace reprise
