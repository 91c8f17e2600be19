// The questions that a run asks the person: approvals, questions of tools, forms.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/terminal_text.h"
#include "client/answers.h"
#include "client/terminal_client.h"
#include "terminal/console.h"
#include "terminal/diff_view.h"
#include "terminal/question_text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kRowsBesideQuestion = 6;  // left free by a question below
constexpr int kDiffLines = 40;          // unless the whole is asked for
constexpr std::size_t kTextLines = 40;  // the same
// Keys pressed so soon after a question was drawn were meant for something else.
constexpr std::chrono::milliseconds kQuiet{500};
constexpr const char* kHowToAnswer =
    "y, n, a or e, or a number that is listed, while the line is empty; n stops the run and waits for your words. "
    "o, if it is listed, lets this one call run outside the sandbox, where it reaches all your files, the network and "
    "your secrets. A line answers too: words behind y or n are for the model, as in: n use another name";

bool ChangesFile(const std::string& tool) {
  return tool == "write_file" || tool == "edit_file" || tool == "apply_patch";
}

// Whether the question shows the call as a diff.
bool ShowsDiff(const event::ApprovalRequired& asked) {
  return ChangesFile(asked.tool_name) || asked.tool_name == "delete_file";
}

// The changes of files in GET .../change.
std::vector<Json> ChangesIn(const Json& change) {
  std::vector<Json> changes{change};
  for (const Json& each : ListedIn(change, "more")) changes.push_back(each);
  return changes;
}

std::optional<std::string> TextIn(const Json& change, const char* name) {
  const Json& text = MemberOf(change, name);
  return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
}

void Append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

// Whether the number is one of those shown: a mode for the work of a plan, or a pattern of calls.
bool TakeNumber(const TypedAnswer& answer, const event::ApprovalRequired& call, bool in_every_chat, Json& body) {
  const std::size_t index = answer.pattern - 1;
  if (index < call.modes.size()) {
    body["mode"] = call.modes[index];
    return true;
  }
  if (index >= call.patterns.size()) return false;
  body["pattern"] = call.patterns[index].pattern;
  body["scope"] = answer.in_every_chat || in_every_chat ? "always" : "chat";
  return true;
}

}  // namespace

// Asks until the question is settled or put off, or the person goes on to another one (chosen_). False if nothing else
// is to be asked now, as when the person leaves.
bool TerminalClient::Ask(const OpenQuestion& question) {
  asking_ = question.id();
  chosen_.clear();
  asks_from_list_ = question.from_list;
  looked_ = std::chrono::steady_clock::now();
  if (!question.is_approval()) {
    while (!AskInput(question)) {
    }
  } else if (!AllowedByMode(question) || !AllowByMode(question)) {
    // If the mode cannot allow it, the person decides.
    ShowState();
    AskApproval(question);
  }
  const bool goes_on = !Open().empty() && !leaving_;
  if (chosen_.empty()) {
    Choose(1);
    std::erase_if(Open(), [&](const PendingQuestion& each) { return QuestionId(each) == question.id(); });
  }
  asking_.clear();
  asks_from_list_ = false;
  question_text_.clear();
  drawn_question_.clear();
  return goes_on;
}

bool TerminalClient::AllowedByMode(const OpenQuestion& question) {
  const bool asks_all = allows_ == Allows::kNothing || allows_ == Allows::kAuto || allows_ == Allows::kPlan;
  if (question.from_list || whose_ != Whose::kOwn) return false;  // whoever began it chose its mode
  if (asks_all || !question.call().modes.empty()) return false;   // no mode approves a plan
  if (question.call().tool_name == kNetworkTool || !question.call().allows("approve")) return false;
  if (allows_ == Allows::kAll) return true;
  // Still asks about risky files (where secrets are kept, say) and changes that cannot be shown.
  if (!ChangesFile(question.call().tool_name) || question.call().risk != "medium") return false;
  const auto change = server_.Call("GET", "/approvals/" + question.id() + "/change");
  if (!change) return false;
  const auto changes = ChangesIn(*change);  // a patch may delete files, which this mode does not allow
  return std::ranges::all_of(changes, [](const Json& each) { return TextIn(each, "after").has_value(); });
}

// Shows a change of a file first; other calls are shown when they run. False if the answer failed.
bool TerminalClient::AllowByMode(const OpenQuestion& question) {
  bool cut = false;
  if (ShowsDiff(question.call())) {
    screen_.Add(DescribeQuestion(question, /*whole=*/false, cut));
    view_.DiffIsShown(question.call().call_id);
  }
  return Give(question, AnswerTo(question.call(), /*approved=*/true));
}

// Shows the question once: below, where it vanishes when it needs no answer any more, or, if it does not fit there,
// among the lines that stay, and only its title below.
void TerminalClient::ShowQuestion(std::vector<std::string> lines, const std::string& title) {
  if (lines == drawn_question_) return;
  drawn_question_ = lines;
  if (screen_.is_plain()) return screen_.Add(lines);
  question_text_ = std::move(lines);
  question_title_ = title;
  FitQuestion();
}

// Also when the screen has become smaller.
void TerminalClient::FitQuestion() {
  const int beside = kRowsBesideQuestion + static_cast<int>(QuestionList().size());
  if (question_text_.empty() || screen_.RowsOf(question_text_) + beside <= screen_.rows()) return;
  if (question_text_.size() > 1) screen_.Add(question_text_);
  question_text_.assign(1, style_.Paint(Style::kBold, CutToWidth(VisibleLine(question_title_), screen_.columns())));
}

// Moves the question and its answer to the lines that stay.
void TerminalClient::KeepQuestion(const std::string& answer) {
  screen_.Add(question_text_);
  question_text_.clear();
  drawn_question_.clear();
  if (!answer.empty() && !screen_.is_plain()) screen_.Add(answer);  // on a plain one it stands there
}

// A question that a key of `letters` answers without Enter.
TerminalInput::Question TerminalClient::Choice(std::string prompt, std::string letters) {
  return {
      .prompt = std::move(prompt),
      .takes_key = [letters = std::move(letters)](
                       const std::string& key) { return key.size() == 1 && letters.find(key) != std::string::npos; },
      .quiet = kQuiet};
}

// Says so at once, above what the run goes on to say.
void TerminalClient::AnsweredElsewhere(const std::string& id) {
  if (id == asking_ && !std::exchange(answered_elsewhere_, true)) Tell("(already answered)");
}

// Reads the answer to the shown question: a key, or a line. Text typed before does not count: it is a message, which
// Enter puts aside.
TerminalClient::Answered TerminalClient::Answer(TerminalInput::Question how, std::string& line, Besides besides) {
  const std::string filled_in = line;
  const bool is_first = how.quiet.count() > 0;  // the line may hold unfinished text
  answered_elsewhere_ = false;
  for (;;) {
    how.chooses = is_first && Open().size() > 1 && !asking_.empty();
    how.holds_draft = is_first && !draft_.empty();
    if (how.holds_draft) {
      line = std::exchange(draft_, {});
      Tell("(the line holds what you were typing: Enter keeps it for later, and then a key answers)");
    }
    UpdateScreen(/*at_once=*/true);
    screen_.SetBelow(Below());
    const Came came = screen_.ReadAnswer(how, meanwhile_, line);
    if (came == Came::kEarly) {
      aside_ = Joined(aside_, line);
      line = filled_in;
      continue;
    }
    if (how.chooses && came == Came::kKey && (line == kUpKey || line == kDownKey)) {
      Choose(line == kUpKey ? -1 : 1);
      question_text_.clear();
      return Answered::kWithdrawn;
    }
    const bool may_be_command = came == Came::kLine && besides == Besides::kCommands && running();
    if (may_be_command && !ParseTyped(line).command.empty()) {
      Obey(line);
      line.clear();
      if (!leaving_) continue;
    } else if (came == Came::kKey || came == Came::kLine) {
      return Answered::kLine;
    }
    const bool stops = came == Came::kInterrupt || came == Came::kEscape;
    if (stops && besides == Besides::kGoingBack && !is_first) return Answered::kBack;
    if (line != filled_in) draft_ = Joined(draft_, line);  // for the next line
    line.clear();
    if (came == Came::kWithdrawn) {
      question_text_.clear();
      return Answered::kWithdrawn;
    }
    if (stops && besides == Besides::kGoingBack) return Answered::kBack;
    // Another client's run goes on, and so does its question.
    if (stops && running() && whose_ == Whose::kAnothers && TakeBack()) continue;
    KeepQuestion();
    if (stops) {
      Stop();
    } else {  // the person leaves, and a run's question stays open for the next client of the chat
      if (!asking_.empty()) Tell("(the question stays open: " + advice_ + " " + chat_ + " asks it again)");
      leaving_ = true;
    }
    Open().clear();
    return Answered::kLeft;
  }
}

// Shows a file of instructions and, if the person agrees, allows it as shown. False if nothing else is to be asked.
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
    ShowQuestion(std::move(lines), path);
    // The person can allow only what was shown.
    const std::string choices = cut ? "[n]o, [s]how all of it first" : "[y]es, as it is now, [n]o";
    const std::string prompt = "use it as instructions for the model? " + choices + ": ";
    std::string line;
    if (Answer(Choice(prompt, cut ? "ns" : "yn"), line, Besides::kGoingBack) != Answered::kLine) {
      KeepQuestion();
      return false;
    }
    KeepQuestion(prompt + VisibleLine(line));
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
    if (const auto allowed = Call("POST", InFolder("/instructions/trust"), body); !allowed) {
      Complain(allowed.error().message);
    } else {
      Tell(path + " is used from the next message on");
    }
    return true;
  }
}

// True if the question is settled; false to ask it again.
bool TerminalClient::Give(const OpenQuestion& question, const Json& body) {
  const AnswerOutcome given = GiveAnswer(link_, question.asked, body);
  if (!given.why.empty()) Complain(given.why);
  return given.is_settled();
}

// The call, its effect on a file, its risk and the reason to ask. Sets `cut` if not all of it is shown.
std::vector<std::string> TerminalClient::DescribeQuestion(const OpenQuestion& question, bool whole, bool& cut) {
  const event::ApprovalRequired& asked = question.call();
  const ApprovalText shown = DescribeApproval(asked, whole);
  cut = shown.cut;
  std::vector<std::string> lines;
  if (question.is_edited) Append(lines, Painted(Style::kWarning, "with the arguments as you have changed them:"));
  if (question.from_list) {
    const InteractionRef run = QuestionRun(question.asked);
    Append(lines, Painted(Style::kDim, VisibleLine(run.chat_id.str() + "/" + run.interaction_id.str())));
  }
  if (ShowsDiff(asked)) {
    auto change = server_.Call("GET", "/approvals/" + question.id() + "/change");
    if (question.is_edited && change) change = ChangeWithOtherArguments(*change, asked);
    if (change && change->is_object()) {
      cut = false;
      for (const Json& each : ChangesIn(*change)) {
        const std::string path = VisibleLine(TextMember(each, "path"));
        Append(lines, Wrap(style_.Paint(Style::kBold, VisibleLine(asked.tool_name) + " " + path) +
                               (asked.risk.empty() ? "" : "  (risk: " + VisibleLine(asked.risk) + ")"),
                           screen_.columns(), "", "  "));
        const Diff diff = DiffLines(
            TextIn(each, "before"), TextIn(each, "after"), style_,
            {.path = path, .width = screen_.columns(), .max_lines = whole ? 0 : kDiffLines, .numbered = true});
        Append(lines, diff.lines);
        cut = cut || diff.cut;
      }
      Append(lines, Wrap(VisibleLine(asked.reason), screen_.columns()));
      return lines;
    }
    if (!change && change.error().Is(Reason::kNoChangeToShow)) {
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

// The text in this role, wrapped to the width of the screen.
std::vector<std::string> TerminalClient::Painted(Style::Role role, const std::string& text) const {
  std::vector<std::string> lines = Wrap(text, screen_.columns());
  for (std::string& line : lines) line = style_.Paint(role, line);
  return lines;
}

// Shows the call to answer below the others, if these are to be answered with it. Returns the prompt and the keys that
// answer.
TerminalInput::Question TerminalClient::ShowApprovals(const std::vector<OpenQuestion>& shown, const Showing& how) {
  const std::string others = OthersThatWait();
  ApprovalChoices offered{.together = shown.size(),
                          .may_be_put_off = shown.front().from_list || (screen_.is_plain() && !others.empty())};
  if (Open().size() > shown.size()) offered.kind = VisibleLine(shown.front().call().tool_name);
  std::vector<std::string> lines;
  for (std::size_t i = 1; how.together && i < shown.size(); ++i) {
    bool cut = false;
    Append(lines, DescribeQuestion(shown[i], how.whole, cut));
    offered.cut = offered.cut || cut;
    lines.emplace_back();
  }
  if (how.together && shown.size() > 1) {
    Append(lines, Painted(Style::kWarning, "the first of these " + std::to_string(shown.size()) + " calls:"));
  } else if (screen_.is_plain() && !others.empty()) {
    Append(lines, Painted(Style::kWarning, others + " (l goes on to it)"));
  }
  bool cut = false;
  Append(lines, DescribeQuestion(shown.front(), how.whole, cut));
  offered.cut = offered.cut || cut;
  const std::vector<CallPattern>& patterns = shown.front().call().patterns;
  offered.patterns = std::min<std::size_t>(patterns.size(), 9);  // one digit each
  if (offered.patterns > 0) {
    std::string list;
    for (std::size_t i = 0; i < offered.patterns; ++i) {
      list += (i == 0 ? "" : "  ") + std::to_string(i + 1) + ". " + VisibleLine(patterns[i].pattern);
    }
    Append(lines,
           Painted(Style::kDim, how.in_every_chat ? "Allow in every chat for 30 days (A: in this chat; ? explains):"
                                                  : "Allow for 30 days: 1 this chat, A1 every chat (? explains):"));
    Append(lines, Wrap(list, screen_.columns(), "", "   "));
  }
  const std::vector<std::string>& modes = shown.front().call().modes;
  if (!modes.empty()) {  // of a plan
    offered.patterns = modes.size();
    std::string list;
    for (std::size_t i = 0; i < modes.size(); ++i) {
      list += (i == 0 ? "" : "  ") + std::to_string(i + 1) + ". " + VisibleLine(modes[i]);
    }
    Append(lines, Painted(Style::kDim, "Approve the plan and continue in mode (y = ask; n WORDS = changes):"));
    Append(lines, Wrap(list, screen_.columns(), "", "   "));
  }
  offered.inside = shown.front().call().allows("approve") || shown.front().is_edited;
  offered.outside = shown.front().call().allows(kApproveOutside);
  // A call that does not ask for it has the meaning in the explanation.
  if (!offered.inside && offered.outside) Append(lines, Painted(Style::kWarning, kOutsideMeans));
  const std::string legend = ApprovalLegend(offered);
  std::string prompt = "allow? " + legend + ": ";
  // Leaves room for an answer of one letter.
  if (DisplayWidth(prompt) + 1 >= screen_.columns()) {
    Append(lines, Wrap(legend, screen_.columns()));
    prompt = "allow? ";
  }
  ShowQuestion(std::move(lines), CallLabel(shown.front().call().tool_name, shown.front().call().tool_input));
  std::string letters = offered.inside ? "ynae?" : "ne?";
  if (offered.outside) letters += "o";
  if (offered.cut) letters += "s";
  if (offered.together > 1) letters += "YN";
  if (offered.may_be_put_off) letters += "l";
  if (offered.patterns > 0) letters += "A";
  for (std::size_t i = 1; i <= offered.patterns; ++i) letters += static_cast<char>('0' + i);
  return Choice(std::move(prompt), std::move(letters));
}

// Lets the person edit the arguments. The question then shows them, and an approval sends them.
TerminalClient::Answered TerminalClient::EditArguments(OpenQuestion& question) {
  auto& asked = std::get<PendingApproval>(question.asked).request;
  drawn_question_.clear();  // the edited text pushes it up, so it is shown again
  if (question.typed.empty()) question.typed = EditableArguments(EscapeHidden(asked.tool_input));
  const Answered answered = Answer({.prompt = "arguments: "}, question.typed, Besides::kGoingBack);
  if (answered != Answered::kLine) return answered;
  auto arguments = ArgumentsOf(question.typed);
  if (!arguments) return Complain(arguments.error().message + "; e edits them again"), Answered::kBack;
  asked.tool_input = *std::move(arguments);
  asked.patterns.clear();  // made for the old arguments
  question.is_edited = true;
  return Answered::kLine;
}

// Asks until the question is settled, put off or withdrawn.
void TerminalClient::AskApproval(const OpenQuestion& question) {
  std::vector<OpenQuestion> shown = Together(question);
  Showing how;
  for (;;) {
    std::string line;
    const TerminalInput::Question choice = ShowApprovals(shown, how);
    if (Answer(choice, line, Besides::kCommands) != Answered::kLine) {
      if (!chosen_.empty() && !shown.front().typed.empty())
        left_.insert_or_assign(question.id(), std::move(shown.front()));
      return;
    }
    const OpenQuestion& asked = shown.front();
    const event::ApprovalRequired& call = asked.call();
    const TypedAnswer answer = ParseApprovalAnswer(line);
    Json body = AnswerTo(call, answer.kind != TypedAnswer::Kind::kNo);
    if (!answer.words.empty()) body["feedback"] = answer.words;
    if (asked.is_edited && body["approved"] == Json(true)) body["arguments"] = call.tool_input;
    if (answer.kind == TypedAnswer::Kind::kAlways) body["scope"] = "chat";
    if (answer.kind == TypedAnswer::Kind::kOutside) body["outside_sandbox"] = true;
    switch (answer.kind) {
      case TypedAnswer::Kind::kYes:
      case TypedAnswer::Kind::kNo:
      case TypedAnswer::Kind::kAlways:
      case TypedAnswer::Kind::kOutside:
        break;
      case TypedAnswer::Kind::kEverywhere:
        how.in_every_chat = !how.in_every_chat;
        continue;
      case TypedAnswer::Kind::kPattern:
        if (TakeNumber(answer, call, how.in_every_chat, body)) break;
        Tell(kHowToAnswer);
        continue;
      case TypedAnswer::Kind::kEdit: {
        const Answered answered = EditArguments(shown.front());
        if (answered != Answered::kBack && answered != Answered::kLine) return;
        continue;
      }
      case TypedAnswer::Kind::kYesToAll:
        if (asked.is_edited) {
          Tell("this one has other arguments now: answer it by itself");
          continue;
        }
        // The person can allow only what was shown.
        if (shown.size() > 1 && !std::exchange(how.together, true)) {
          Tell("(all of them are shown now: Y once more allows them)");
          continue;
        }
        KeepQuestion(choice.prompt + VisibleLine(line));
        AllowAll(shown);
        if (shown.empty() || shown.front().id() != question.id()) return;
        continue;
      case TypedAnswer::Kind::kNoToAll:
        KeepQuestion(choice.prompt + VisibleLine(line));
        return StopRunsOf(shown);
      case TypedAnswer::Kind::kShow:
        how.whole = true;
        continue;
      case TypedAnswer::Kind::kExplain:
        Tell(kHowToAnswer);
        for (const std::string& pattern : PatternLines(call)) Tell(pattern);
        continue;
      case TypedAnswer::Kind::kLater:
        if (question.from_list) return KeepQuestion(choice.prompt + VisibleLine(line));
        if (Open().size() > 1) return KeepQuestion(choice.prompt + VisibleLine(line)), Choose(1);
        [[fallthrough]];
      case TypedAnswer::Kind::kUnclear:
        Tell(kHowToAnswer);
        aside_ = Joined(aside_, line);
        continue;
    }
    KeepQuestion(choice.prompt + VisibleLine(line));
    if (answer.kind == TypedAnswer::Kind::kNo && answer.words.empty()) return StopRunsOf({question});
    if (!Give(asked, body)) continue;
    if (!call.modes.empty() && body["approved"] == Json(true)) UseModeOfPlan();
    if (ShowsDiff(call)) view_.DiffIsShown(call.call_id);
    return;
  }
}

// Reads one of `letters` ("yes" and "no" also count). Empty if there is no answer.
std::string TerminalClient::ReadChoice(const std::string& prompt, const std::string& letters) {
  for (;;) {
    std::string line;
    if (Answer(Choice(prompt, letters), line, Besides::kCommands) != Answered::kLine) return {};
    if (line == "yes" || line == "no") line.resize(1);
    if (line.size() == 1 && letters.find(line) != std::string::npos) {
      KeepQuestion(prompt + line);
      return line;
    }
    Tell("y or n");
    aside_ = Joined(aside_, line);
  }
}

// Asks to open an address, or to fill in a form.
bool TerminalClient::AskForm(const OpenQuestion& question, const event::InputRequired& asked) {
  std::optional<Json> response;
  const std::string asks = asked.url ? "have you done that? " : "fill in the form? ";
  const std::string line = ReadChoice(asks + "[y]es, [n]o: ", "yn");
  if (line.empty()) return true;
  if (line == "y" && !asked.schema) response = "done";
  if (line == "y" && asked.schema) {
    // Entries are kept, because the server may refuse the form.
    if (std::exchange(filled_in_, asked.request_id) != asked.request_id) entered_.clear();
    response = FillInForm(*asked.schema,
                          {.tell = [this](const std::string& text) { Tell(text); },
                           .complain = [this](const std::string& text) { Complain(text); },
                           .read =
                               [this](const std::string& prompt, std::string& typed) {
                                 if (Answer({.prompt = prompt}, typed) != Answered::kLine) return false;
                                 KeepQuestion(prompt + VisibleLine(typed));
                                 return true;
                               }},
                          entered_);
    if (!response) return true;  // already settled, or left open
  }
  return Give(question, AnswerTo(asked, std::move(response)));
}

bool TerminalClient::AskInput(const OpenQuestion& question) {
  ShowState();
  const auto& asked = std::get<PendingInput>(question.asked).request;
  std::vector<std::string> lines;
  Append(lines, Painted(Style::kBold, VisibleText(asked.question, "")));
  if (asked.url) Append(lines, Wrap("open: " + VisibleLine(*asked.url), screen_.columns(), "  ", "    "));
  if (asked.url || asked.schema) {
    ShowQuestion(std::move(lines), asked.question);
    return AskForm(question, asked);
  }
  std::string line;
  const std::vector<std::string>& options = asked.options;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string number = "  " + std::to_string(i + 1) + ". ";
    Append(lines, Wrap(VisibleLine(options[i]), screen_.columns(), number, "     "));
  }
  ShowQuestion(std::move(lines), asked.question);
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  // Digits choose an option, unless an option is itself a number.
  std::string letters;
  if (options.size() <= 9 && std::ranges::none_of(options, is_number)) {
    for (std::size_t i = 1; i <= options.size(); ++i) letters += static_cast<char>('0' + i);
  }
  const std::string prompt = options.empty() ? "answer: " : "answer (a number, or words): ";
  for (;;) {
    if (Answer(Choice(prompt, letters), line) != Answered::kLine) return true;
    const bool is_option = std::ranges::find(options, line) != options.end();
    if (line.find_first_not_of(" \t\n") == std::string::npos) {
      Tell("(Enter alone is no answer: /decline gives none)");
    } else if (options.empty() || is_option || !is_number(line)) {
      break;
    } else if (const std::size_t number = line.size() < 4 ? std::stoul(line) : 0;
               number >= 1 && number <= options.size()) {
      KeepQuestion(prompt + line);
      line = options[number - 1];
      break;
    } else {
      Tell("there is no option " + line + ": 1 to " + std::to_string(options.size()) + ", or words");
    }
    line.clear();
  }
  if (!drawn_question_.empty()) KeepQuestion(prompt + VisibleLine(line));
  return Give(question, AnswerTo(asked, line == "/decline" ? std::nullopt : std::optional<Json>(line)));
}

}  // namespace reprise
