// What a run asks the person: approvals, questions of tools, forms.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/terminal_text.h"
#include "client/terminal_client.h"
#include "terminal/diff_view.h"
#include "terminal/question_text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kRowsBesideQuestion = 6;  // that a question below leaves to the rest
constexpr int kDiffLines = 40;          // unless all of it is asked for
constexpr std::size_t kTextLines = 40;  // likewise
constexpr const char* kMoreToAllow = "Allow for 30 days: 1 this chat, 1 always every chat";
constexpr const char* kHowToAnswer =
    "y, n, a or e, or a number of the list; words after y or n go to the model: n use another name";

bool ChangesFile(const std::string& tool) { return tool == "write_file" || tool == "edit_file"; }

// Of a change of a file people read the difference.
bool ShowsDiff(const Json& asked) {
  const std::string tool = TextMember(asked, "tool_name");
  return ChangesFile(tool) || tool == "delete_file";
}

Json AnswerTo(const std::string& id, const Json& asked, bool approved) {
  return {{"approval_id", id}, {"approved", approved}, {"arguments_digest", TextMember(asked, "arguments_digest")}};
}

void Append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

}  // namespace

// Asks the question that has been open longest.
void TerminalClient::AskNext() { Ask(OpenQuestion(open_.front())); }

// Asks it until it is settled or put off. False: nothing else is to be asked now, as when the person goes.
bool TerminalClient::Ask(const OpenQuestion& question) {
  asking_ = question.id;
  asks_from_list_ = question.from_list;
  looked_ = std::chrono::steady_clock::now();
  if (!question.is_approval) {
    while (!AskInput(question)) {
    }
  } else if (!AllowedByMode(question) || !AllowByMode(question)) {
    // Whatever keeps it from being allowed is something for the person.
    AskApproval(question);
  }
  const bool goes_on = !open_.empty() && !leaving_;
  std::erase_if(open_, [&](const OpenQuestion& each) { return each.id == question.id; });
  asking_.clear();
  asks_from_list_ = false;
  question_text_.clear();
  return goes_on;
}

bool TerminalClient::AllowedByMode(const OpenQuestion& question) {
  if (!question.is_approval || question.from_list || allows_ == Allows::kNothing) return false;
  if (allows_ == Allows::kAll) return true;
  // What is risky (a file where secrets are kept, say) is asked about, and what nobody could read afterwards.
  return ChangesFile(TextMember(question.asked, "tool_name")) && TextMember(question.asked, "risk") == "medium" &&
         server_.Call("GET", "/approvals/" + question.id + "/change").has_value();
}

// What becomes of a file is shown first; all else is shown when it runs. False: it could not be given.
bool TerminalClient::AllowByMode(const OpenQuestion& question) {
  bool cut = false;
  if (ShowsDiff(question.asked)) {
    screen_.Add(DescribeQuestion(question, /*whole=*/false, cut));
    view_.DiffIsShown(TextMember(question.asked, "call_id"));
  }
  return Give(question, "/approve", AnswerTo(question.id, question.asked, /*approved=*/true));
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
  answered_elsewhere_ = false;
  switch (screen_.ReadAnswer(prompt, meanwhile_, line)) {
    case Came::kLine:
      KeepQuestion();
      screen_.Add(prompt + VisibleLine(line));
      return Answered::kLine;
    case Came::kWithdrawn:
      question_text_.clear();
      if (answered_elsewhere_) Tell("(already answered)");
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
  // The person goes; what a run asks stays for whoever opens the chat next.
  KeepQuestion();
  if (!asking_.empty()) Tell("(the question stays open: " + advice_ + " " + chat_ + " asks it again)");
  open_.clear();
  leaving_ = true;
  return Answered::kLeft;
}

// Shows a file of instructions, and allows it as it was shown if the person says so. False: nothing else is to be
// asked.
bool TerminalClient::AskToTrust(const Json& file) {
  const std::string path = VisibleLine(TextMember(file, "path"));
  for (bool whole = false;;) {
    std::vector<std::string> lines =
        Painted(Style::kBold, path + (TextMember(file, "state") == "new" ? " is new:" : " has changed:"));
    std::vector<std::string> text = Wrap(Indented(TextMember(file, "text"), ""), screen_.columns(), "  ", "  ");
    const bool cut = !whole && text.size() > kTextLines;
    if (cut) {
      const std::size_t hidden = text.size() - kTextLines;
      text.resize(kTextLines);
      text.push_back(style_.Paint(Style::kDim, "  ... " + Counted(hidden, "more line")));
    }
    Append(lines, text);
    ShowQuestion(std::move(lines));
    // Nobody allows what they have not been shown.
    const std::string choices = cut ? "[n]o, [s]how all of it first" : "[y]es, as it is now, [n]o";
    std::string line;
    if (Answer("use it as instructions for the model? " + choices + ": ", line, /*may_go_back=*/true) !=
        Answered::kLine) {
      KeepQuestion();
      return false;
    }
    if (line == "n" || line == "no") return true;
    if (cut && (line == "s" || line == "show")) {
      whole = true;
      continue;
    }
    if (cut || (line != "y" && line != "yes")) {
      Tell(choices);
      continue;
    }
    const Json body = {{"path", TextMember(file, "path")}, {"digest", TextMember(file, "digest")}};
    if (const auto allowed = Call("POST", "/instructions/trust", body); !allowed) {
      Complain(allowed.error().message);
    } else {
      Tell(path + " is used from the next message on");
    }
    return true;
  }
}

// True: the question is settled. False: it is to be asked again.
bool TerminalClient::Give(const OpenQuestion& question, const std::string& route, const Json& body) {
  const auto given = Call("POST", question.run + route, body);
  if (given) return true;
  if (given.error().reason == "stale") return Complain(given.error().message), true;  // the question follows
  if (IsNoLongerOpen(given.error())) return Failed(given.error()), true;
  Complain(given.error().message);
  return false;
}

// The call, what it would change, its risk and why it asks. `cut`: not all of it is shown.
std::vector<std::string> TerminalClient::DescribeQuestion(const OpenQuestion& question, bool whole, bool& cut) {
  const std::string tool = TextMember(question.asked, "tool_name");
  const ApprovalText shown = DescribeApproval(question.asked, whole);
  cut = shown.cut;
  std::vector<std::string> lines;
  if (question.is_edited) Append(lines, Painted(Style::kWarning, "with the arguments as you have changed them:"));
  if (question.from_list)
    Append(lines, Painted(Style::kDim, VisibleLine(TextMember(question.asked, "chat_id") + "/" +
                                                   TextMember(question.asked, "interaction_id"))));
  if (ShowsDiff(question.asked)) {
    auto change = server_.Call("GET", "/approvals/" + question.id + "/change");
    if (question.is_edited && change) change = ChangeWithOtherArguments(*change, question.asked);
    if (change && change->is_object()) {
      const auto text = [&](const char* name) {
        const auto member = change->find(name);
        return member != change->end() && member->is_string() ? std::optional(member->get<std::string>())
                                                              : std::nullopt;
      };
      const std::string path = VisibleLine(TextMember(*change, "path")), risk = TextMember(question.asked, "risk");
      Append(lines, Wrap(style_.Paint(Style::kBold, VisibleLine(tool) + " " + path) +
                             (risk.empty() ? "" : "  (risk: " + VisibleLine(risk) + ")"),
                         screen_.columns(), "", "  "));
      const Diff diff = DiffLines(text("before"), text("after"), style_,
                                  {.path = path, .width = screen_.columns(), .max_lines = whole ? 0 : kDiffLines});
      Append(lines, diff.lines);
      cut = diff.cut;
      Append(lines, Wrap(VisibleLine(TextMember(question.asked, "reason")), screen_.columns()));
      return lines;
    }
    if (!change && change.error().reason == "no_change_to_show") {
      Append(lines, Painted(Style::kWarning, VisibleLine(change.error().message)));
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

// In as many lines as it takes.
std::vector<std::string> TerminalClient::Painted(Style::Role role, const std::string& text) const {
  std::vector<std::string> lines = Wrap(text, screen_.columns());
  for (std::string& line : lines) line = style_.Paint(role, line);
  return lines;
}

// Gives all of them the same answer. Those that could not be given it stay, here and among the open ones.
void TerminalClient::AnswerAll(std::vector<OpenQuestion>& shown, bool approved) {
  std::erase_if(shown, [&](const OpenQuestion& each) {
    if (!Give(each, "/approve", AnswerTo(each.id, each.asked, approved))) return false;
    std::erase_if(open_, [&](const OpenQuestion& open) { return open.id == each.id; });
    return true;
  });
}

// Shows the calls, the last of them first (it is the one to answer), and what may be answered. Returns the prompt.
std::string TerminalClient::ShowApprovals(const std::vector<OpenQuestion>& shown, bool whole) {
  ApprovalChoices offered{.together = shown.size(), .may_be_put_off = shown.front().from_list};
  std::vector<std::string> lines;
  for (std::size_t i = 1; i <= shown.size(); ++i) {
    if (i == shown.size() && i > 1) {
      Append(lines,
             Painted(Style::kWarning, "of " + std::to_string(i) + " calls that ask together, the first to answer is:"));
    }
    bool cut = false;
    Append(lines, DescribeQuestion(shown[i % shown.size()], whole, cut));
    offered.cut = offered.cut || cut;
    if (i < shown.size()) lines.emplace_back();
  }
  const std::vector<std::string> patterns = PatternLines(shown.front().asked);
  offered.patterns = patterns.size();
  if (!patterns.empty()) Append(lines, Painted(Style::kDim, kMoreToAllow));
  for (const std::string& pattern : patterns) Append(lines, Wrap(pattern, screen_.columns(), "", "   "));
  const std::string legend = ApprovalLegend(offered);
  std::string prompt = "allow? " + legend + ": ";
  // An answer of one letter stands behind it.
  if (DisplayWidth(prompt) + 1 >= screen_.columns()) {
    Append(lines, Wrap(legend, screen_.columns()));
    prompt = "allow? ";
  }
  ShowQuestion(std::move(lines));
  return prompt;
}

// The person edits the arguments, which the question then shows: an answer sends them.
TerminalClient::Answered TerminalClient::EditArguments(OpenQuestion& question) {
  if (question.typed.empty()) {
    const std::string escaped = TextMember(question.asked, "tool_input_escaped");
    question.typed = EditableArguments(escaped.empty() ? TextMember(question.asked, "tool_input") : escaped);
  }
  const Answered answered = Answer("arguments: ", question.typed, /*may_go_back=*/true);
  if (answered != Answered::kLine) return answered;
  auto arguments = ArgumentsOf(question.typed);
  if (!arguments) return Complain(arguments.error().message + "; e edits them again"), Answered::kBack;
  question.asked["tool_input"] = *std::move(arguments);
  question.asked.erase("tool_input_escaped");
  question.asked.erase("patterns");  // they were made for the others
  question.is_edited = true;
  return Answered::kLine;
}

// Until it is settled, put off or taken away.
void TerminalClient::AskApproval(const OpenQuestion& question) {
  // Those that are open together can be answered together, after all of them were shown: only those, as another one may
  // come meanwhile.
  std::vector<OpenQuestion> shown{question};
  if (!question.from_list) {
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(shown),
                 [&](const OpenQuestion& each) { return each.is_approval && each.id != question.id; });
  }
  bool whole = false;
  for (;;) {
    std::string line;
    if (Answer(ShowApprovals(shown, whole), line) != Answered::kLine) return;
    const OpenQuestion& asked = shown.front();
    const TypedAnswer answer = ParseApprovalAnswer(line);
    Json body = AnswerTo(asked.id, asked.asked, answer.kind != TypedAnswer::Kind::kNo);
    if (!answer.words.empty()) body["feedback"] = answer.words;
    if (asked.is_edited && body["approved"] == Json(true)) body["arguments"] = TextMember(asked.asked, "tool_input");
    switch (answer.kind) {
      case TypedAnswer::Kind::kYes:
      case TypedAnswer::Kind::kNo:
        break;
      case TypedAnswer::Kind::kAlways:
        body["scope"] = "chat";
        break;
      case TypedAnswer::Kind::kPattern: {
        const Json patterns = asked.asked.value("patterns", Json::array());
        if (answer.pattern > patterns.size()) {
          Tell(kHowToAnswer);
          continue;
        }
        body["pattern"] = TextMember(patterns[answer.pattern - 1], "pattern");
        body["scope"] = answer.in_every_chat ? "always" : "chat";
        break;
      }
      case TypedAnswer::Kind::kEdit: {
        const Answered answered = EditArguments(shown.front());
        if (answered != Answered::kBack && answered != Answered::kLine) return;
        continue;
      }
      case TypedAnswer::Kind::kYesToAll:
      case TypedAnswer::Kind::kNoToAll:
        if (asked.is_edited) {
          Tell("this one has other arguments now: answer it by itself");
          continue;
        }
        AnswerAll(shown, answer.kind == TypedAnswer::Kind::kYesToAll);
        if (shown.empty() || shown.front().id != question.id) return;
        continue;
      case TypedAnswer::Kind::kShow:
        whole = true;
        continue;
      case TypedAnswer::Kind::kLater:
        if (question.from_list) return;
        [[fallthrough]];
      case TypedAnswer::Kind::kUnclear:
        Tell(kHowToAnswer);
        continue;
    }
    if (!Give(asked, "/approve", body)) continue;
    if (ShowsDiff(asked.asked)) view_.DiffIsShown(TextMember(asked.asked, "call_id"));
    return;
  }
}

bool TerminalClient::AskInput(const OpenQuestion& question) {
  const std::string schema = TextMember(question.asked, "schema"), url = TextMember(question.asked, "url");
  std::vector<std::string> lines;
  Append(lines, Painted(Style::kBold, VisibleText(TextMember(question.asked, "question"), "")));
  Json body = {{"request_id", question.id}};
  std::string line;
  if (!url.empty() || !schema.empty()) {
    if (!url.empty()) {
      Append(lines, Wrap("open: " + VisibleLine(url), screen_.columns(), "  ", "    "));
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
    Append(lines, Wrap(VisibleLine(options.back()), screen_.columns(), number, "     "));
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
