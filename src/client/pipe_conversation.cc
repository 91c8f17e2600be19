#include "client/pipe_conversation.h"

#include <cstddef>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "client/answers.h"
#include "client/run_stream.h"
#include "domain/transcript/event_visitor.h"
#include "domain/transcript/transcript.h"
#include "terminal/console.h"
#include "terminal/question_text.h"
#include "terminal/run_text.h"

namespace reprise {
namespace {

constexpr std::size_t kShownResult = 200;  // characters

constexpr std::string_view kHelp =
    "/undo          take the last message back; \"/undo files\" also what it changed in the workspace\n"
    "/edit TEXT     say TEXT instead of the last message\n"
    "/history       what was said so far\n"
    "/approvals     all that waits for you, in every chat\n"
    "/follow        show what runs in this chat, and answer what it asks\n"
    "/queue TEXT    send TEXT after the current run\n"
    "/quit          leave (or end of input, Ctrl-D)\n"
    "//TEXT         a message that begins with /\n"
    "Ctrl-C         cancels what runs; at the prompt it clears the line, and leaves at the second time\n";

const std::vector<std::string> kChatCommands{"/undo",   "/edit",  "/history", "/approvals",
                                             "/follow", "/queue", "/quit",    "/help"};

// While a message is typed, nothing else happens.
const TerminalInput::Meanwhile kNothing = {
    .descriptors = [] { return std::vector<int>(); }, .timeout_ms = [] { return -1; }, .proceed = [] { return false; }};

class PipeConversation {
 public:
  // `link` and `input` must outlive this. With `json`, standard output gets events as lines of JSON, and questions go
  // to standard error. An empty `model` is the chat's or the server's. REQUIRES: `link` is reached.
  PipeConversation(ServerLink& link, TerminalInput& input, const ChatId& chat, std::string model, bool json)
      : link_(link),
        input_(input),
        chat_(chat.str()),
        path_("/chats/" + chat_),
        model_(std::move(model)),
        json_(json) {}

  // Runs until the input ends or the person leaves. Begins with the line `opening`, if it is not empty. Returns the
  // exit status.
  int Run(const std::string& opening) {
    ShowWhatRuns(/*at_start=*/true);
    if (!opening.empty()) Obey(opening);
    bool warned = false;
    std::string line;
    while (!leaving_) {
      if (!json_ && !input_.is_terminal()) Show("> ");
      line = std::exchange(aside_, {});
      switch (input_.ReadMessage(json_ ? "" : "> ", kNothing, line)) {
        case TerminalInput::Came::kEnd:
          if (input_.is_terminal() && !json_) Show("\n");
          return status_;
        case TerminalInput::Came::kInterrupt:
          Show("\n");
          if (!input_.is_terminal() || (warned && line.empty())) return status_;
          warned = line.empty();
          if (warned) Ask("(Ctrl-C once more leaves, as Ctrl-D and /quit do)\n");
          continue;
        case TerminalInput::Came::kEscape:
        case TerminalInput::Came::kWithdrawn:
        case TerminalInput::Came::kKey:
        case TerminalInput::Came::kEarly:
        case TerminalInput::Came::kLine:
          break;
      }
      warned = false;
      if (line == "/quit") return status_;
      if (!line.empty()) Obey(line);
    }
    return status_;
  }

 private:
  enum class Answered { kLine, kNone, kWithdrawn, kCancelled };

  void Show(std::string_view text) {
    Print(text);
    std::fflush(stdout);
  }

  // With --json this goes to standard error, because standard output has only events.
  void Ask(const std::string& text) {
    if (!json_) return Show(text);
    std::fputs(text.c_str(), stderr);
  }

  void Failed(const Error& error) { status_ = Complain(error); }

  // --- typed lines
  void Obey(const std::string& line) {
    const auto [command, text] = ParseTyped(line);
    if (command.empty()) return Say(text);
    if (command == "/edit") return text.empty() ? Warn("/edit TEXT needs the text to say instead") : Edit(text);
    if (command == "/queue") {
      if (text.empty()) return Warn("/queue TEXT needs the text to say");
      return Say(text, {{"if_running", "queue"}});
    }
    if (line == "/help") return Show(kHelp);
    if (line == "/history") return History();
    if (line == "/undo") return Undo(Json::object());
    if (line == "/undo files") return Undo({{"files", "restore"}});
    if (line == "/approvals") return Approvals();
    if (line == "/follow") {
      if (!ShowWhatRuns(/*at_start=*/false)) Warn("nothing runs in this chat");
      return;
    }
    const auto expanded = ExpandFolderCommand(link_, FolderQuery(link_), {.command = command, .text = text});
    if (!expanded) return Failed(expanded.error());
    if (*expanded) {
      return Say((*expanded)->message,
                 (*expanded)->model.empty() ? Json::object() : Json{{"model", (*expanded)->model}});
    }
    Warn("there is no such command" + DidYouMean(command, kChatCommands) +
         " (/help lists them; // before it sends it as text)");
  }

  void Say(const std::string& message, Json body = Json::object()) {
    body["user_message"] = message;
    if (!link_.folder().empty()) body["workspace"] = link_.folder();  // refused if the chat works elsewhere
    Exchange(path_ + "/interactions", body);
  }

  void Undo(const Json& files) {
    const auto undone = link_.Call("POST", path_ + "/undo", files);
    if (!undone && undone.error().Is(Reason::kNotFound))
      return Warn("there is nothing to undo yet: say something first");
    if (!undone && undone.error().Is(Reason::kNothingToUndo)) {
      return Failed(MakeError(ErrorCode::kConflict,
                              "the first message cannot be taken back; /edit TEXT says another one instead"));
    }
    if (!undone) return Failed(undone.error());
    if (json_) return Show(DumpJson(*undone) + "\n");
    Show("back to " + VisibleLine(TextMember(*undone, "head")) + "\n");
  }

  void Edit(const std::string& text) {
    const auto chat = link_.Call("GET", path_);
    if (!chat && !chat.error().Is(Reason::kNotFound)) return Failed(chat.error());
    const std::string head = chat ? TextMember(*chat, "head") : "";
    if (head.empty()) return Warn("there is no message to edit yet: say something first");
    Exchange(path_ + "/interactions/" + head + "/edit", {{"new_user_message", text}});
  }

  void History() {
    const auto chat = link_.Call("GET", path_);
    if (!chat && chat.error().Is(Reason::kNotFound)) return Warn("nothing was said in this chat yet");
    if (!chat) return Failed(chat.error());
    if (json_) return Show(DumpJson(*chat) + "\n");
    for (const Json& interaction : MemberOf(*chat, "interactions")) {
      Show(VisibleLine(TextMember(interaction, "id")) + "  " + VisibleLine(TextMember(interaction, "status")) +
           "\n  you    " + Indented(TextMember(interaction, "user_message"), "         ") + "\n");
      for (const Json& event : MemberOf(interaction, "agent_events")) {
        const std::string type = TextMember(event, "type");
        if (type == "ANSWER" || type == "MESSAGE") {
          Show("  agent  " + Indented(TextMember(event, "content"), "         ") + "\n");
        } else if (type == "TOOL_CALL") {
          Show("  tool   " + VisibleLine(TextMember(event, "tool_name") + " " + TextMember(event, "tool_input")) +
               "\n");
        }
      }
    }
  }

  void Approvals() {
    const auto waiting = link_.Call("GET", "/approvals");
    if (!waiting) return Failed(waiting.error());
    if (json_) return Show(DumpJson(*waiting) + "\n");
    const auto questions = QuestionsIn(*waiting);
    for (const PendingQuestion& question : questions) {
      Show(VisibleLine(QuestionRun(question).chat_id.str() + "/" + QuestionRun(question).interaction_id.str()) + "\n");
      may_skip_ = true;
      while (!AskPerson(question, nullptr) && !leaving_) {
      }
      if (!std::exchange(may_skip_, false) || leaving_) return;
    }
    if (questions.empty()) return Show("nothing waits for you\n");
    static_cast<void>(ShowWhatRuns(/*at_start=*/false));
  }

  // Shows this chat's unfinished interaction to its end. False if there is none; a failure is told.
  bool ShowWhatRuns(bool at_start) {
    const auto chat = link_.Call("GET", path_);
    if (!chat && !chat.error().Is(Reason::kNotFound)) return Failed(chat.error()), true;
    const Json running = chat ? RunningIn(*chat) : Json(nullptr);
    if (running.is_null()) return false;
    // The lines of a pipe were not written as answers to that run.
    if (!input_.is_terminal() && at_start) {
      Warn(SayRunning(running) + " in this chat (/follow shows it)");
      return true;
    }
    Ask(SayRunning(running) + " (Ctrl-C cancels it)\n  you    " +
        Indented(TextMember(running, "user_message"), "         ") + "\n");
    RunStream run(link_.server(), chat_);
    run.Attach(TextMember(running, "id"));
    Follow(run);
    return true;
  }

  // --- a run, from its first event to its last
  // `body` comes before the options of all runs.
  void Exchange(const std::string& path, const Json& body) {
    Json whole = link_.RunOptions(model_);
    whole.update(body);
    RunStream run(link_.server(), chat_);
    run.Start(path, std::move(whole));
    Follow(run);
  }

  void Follow(RunStream& run) {
    labels_.clear();
    said_ = false;
    at_line_start_ = true;
    streamed_ = {};
    while (!leaving_) {
      run.Receive();
      while (const auto heard = run.Next()) Heard(*heard);
      if (run.ended()) break;
      if (run.is_live() && !run.state().open.empty()) {
        EndText();
        const PendingQuestion question = run.state().open.front();
        if (AskPerson(question, &run)) run.state().Settle(QuestionId(question));
      } else if (input_.WaitForOrInterrupt(run.descriptor())) {
        Cancel(run);
      }
    }
    if (leaving_) return;
    EndText();
    if (const auto& ended = *run.ended(); !ended) {
      if (ended.error().Is(Reason::kBusy)) {
        status_ = kExitFailure;
        return Warn("something runs in this chat already: /follow shows it, /queue TEXT says this when it has ended");
      }
      return Failed(ended.error());
    }
    if (run.state().status != InteractionStatus::kCompleted) status_ = kExitFailure;
    if (!run.is_complete()) Warn("the server is stopping; open questions are kept, and asked again when it is back");
  }

  void Cancel(RunStream& run) {
    if (run.interaction().empty()) return;
    run.state().open.clear();
    if (auto done = link_.Call("POST", run.path() + "/cancel"); !done) Failed(done.error());
  }

  void Heard(const RunStream::Heard& heard) {
    if (json_) return Show(DumpJson(heard.data) + "\n");
    if (heard.event) Tell(*heard.event);
    if (heard.name == "queued") Show("(queued)\n");
  }

  void Write(const std::string& text) {
    if (text.empty()) return;
    Show(text);
    at_line_start_ = text.ends_with('\n');
  }

  void EndText() {
    if (json_) return;
    Write(streamed_.End());
    if (!std::exchange(at_line_start_, true)) Show("\n");
  }

  void Tell(const AgentEvent& event) {
    std::visit(
        Overload{
            Ignoring<event::ThinkingDelta, event::Thinking, event::SoundDelta, event::Sound, event::ToolOutputDelta,
                     event::Approved, event::Rejected, event::InputRequired, event::InputReceived, event::TaskUpdated,
                     event::PlanUpdated, event::GrantsUpdated, event::LoopDetected, event::Compacted, event::JobStarted,
                     event::JobEnded, event::Nested, event::FilesChanged, event::InteractionComplete>(),
            [&](const event::SentBack& e) { Note("(a check sends the agent back: " + VisibleLine(e.content) + ")"); },
            [&](const event::InteractionStarted& e) {
              for (const Attachment& file : e.attachments) Show(FileText(file) + "\n");
            },
            [&](const event::TextDelta& e) {
              said_ = true;
              Write(streamed_.Add(e.content));
            },
            [&](const event::MessageText& e) {
              TellAnswer(e.content, {});
              TellSources("sources:", SourceLines(SourcesOf(e.citations)));
            },
            [&](const event::Answer& e) {
              TellAnswer(e.content, e.reason);
              TellSources("sources:", SourceLines(SourcesOf(e.citations)));
            },
            [&](const event::WebSearch& e) {
              const std::string failed = e.error.empty() ? "" : " (failed: " + e.error + ")";
              Note("[web search: " + VisibleLine(e.query + failed) + "]");
              TellSources({}, SourceLines(e.results, e.omitted));
            },
            [&](const event::ApprovalRequired& e) {
              if (e.tool_name != kNetworkTool) labels_[e.call_id] = CallLabel(e.tool_name, e.tool_input);
            },
            [&](const event::ToolCallStarted& e) {
              labels_[e.id] = CallLabel(e.tool_name, e.tool_input);
              Note("[" + VisibleLine(e.tool_name + " " + e.tool_input) + "]");
            },
            [&](const event::ToolResult& e) { TellResult(e); },
            [&](const event::Usage&) { labels_.clear(); },  // the next response's calls follow
            [&](const event::Failed& e) { Note("error: " + VisibleLine(e.message)); },
            [&](const event::Cancelled& e) { Note(VisibleLine(CancelledText(e.reason))); },
            [&](const event::Retry& e) { Note("(trying again: " + VisibleLine(e.message) + ")"); }},
        event.payload);
  }

  void TellAnswer(const std::string& content, const std::string& cut_off) {
    if (!std::exchange(said_, false)) Write(Indented(content, ""));
    EndText();
    if (!cut_off.empty()) Show("(cut off: " + VisibleLine(cut_off) + ")\n");
  }

  void TellSources(const std::string& heading, const std::string& lines) {
    if (lines.empty()) return;
    if (!heading.empty()) Note(heading);
    for (const std::string& line : LinesOf(lines)) Note("  " + VisibleLine(line));
  }

  void TellResult(const event::ToolResult& result) {
    // Names the call, unless it is the only one.
    const auto label = labels_.find(result.id);
    const bool alone = labels_.size() == 1;
    Note("  " + (label == labels_.end() || alone ? "" : label->second + ": ") +
         Shortened(VisibleLine(result.tool_output), kShownResult));
    for (const Attachment& file : result.files) Show("  " + FileText(file) + "\n");
  }

  // Shows the text on a line of its own.
  void Note(const std::string& text) {
    EndText();
    Show(text + "\n");
  }

  // --- questions
  // If `run` is null, answers given elsewhere go unnoticed. True if the question is done with; false to ask it again.
  bool AskPerson(const PendingQuestion& question, RunStream* run) {
    run_ = run;
    asked_ = &question;
    const auto* const approval = std::get_if<PendingApproval>(&question);
    const bool settled =
        approval != nullptr ? Approve(approval->request) : Respond(std::get<PendingInput>(question).request);
    run_ = nullptr;
    return settled;
  }

  // Reads the next line as the answer to `prompt`.
  Answered Answer(const std::string& prompt, std::string& line) {
    const auto settled = [this] { return !Has(run_->state().open, QuestionId(*asked_)); };
    const auto withdrawn = [this, &settled] {
      if (run_ == nullptr) return false;
      run_->Receive();
      return run_->ended().has_value() || settled();
    };
    if (!input_.is_terminal()) Ask(prompt);
    const TerminalInput::Meanwhile meanwhile = {
        .descriptors = [this] { return run_ == nullptr ? std::vector<int>() : std::vector<int>{run_->descriptor()}; },
        .timeout_ms = [] { return -1; },
        .proceed = withdrawn};
    line.clear();
    auto came = input_.ReadAnswer({.prompt = prompt}, meanwhile, line);
    while (came == TerminalInput::Came::kEarly) {  // it comes back as a message
      if (!line.empty()) aside_ += (aside_.empty() ? "" : "\n") + std::exchange(line, {});
      came = input_.ReadAnswer({.prompt = prompt}, meanwhile, line);
    }
    switch (came) {
      case TerminalInput::Came::kEscape:
      case TerminalInput::Came::kKey:
      case TerminalInput::Came::kEarly:
      case TerminalInput::Came::kLine:
        return Answered::kLine;
      case TerminalInput::Came::kWithdrawn:
        // If only the connection broke, the question may still be open; the end of the stream tells.
        Ask(settled() ? "\n(this needs no answer any more)\n" : "\n");
        return Answered::kWithdrawn;
      case TerminalInput::Came::kInterrupt:
        Ask("\n");
        if (run_ != nullptr) Cancel(*run_);
        may_skip_ = false;  // ends a list of questions too
        return Answered::kCancelled;
      case TerminalInput::Came::kEnd:
        break;
    }
    Ask("\n");
    if (std::exchange(may_skip_, false)) return Answered::kCancelled;
    if (!input_.is_terminal()) return Answered::kNone;
    // The person leaves, and the question stays open for the next client of the chat.
    Ask("(the question stays open: reprise chat " + path_.substr(path_.rfind('/') + 1) + " asks it again)\n");
    leaving_ = true;
    return Answered::kCancelled;
  }

  // These three return the same as AskPerson.
  bool Give(const Json& body) {
    using Became = AnswerOutcome::Became;
    const AnswerOutcome given = GiveAnswer(link_, *asked_, body);
    if (!given.why.empty()) Warn(given.why);
    const bool is_lost = given.became == Became::kLost;  // the end of the stream tells more
    if (is_lost || given.became == Became::kTooLate) status_ = kExitFailure;
    return is_lost || given.is_settled();
  }

  bool Approve(const event::ApprovalRequired& asked) {
    Json body = AnswerTo(asked, /*approved=*/false);
    bool whole = false;
    for (;;) {
      const ApprovalText shown = DescribeApproval(asked, whole);
      const ApprovalChoices offered{.cut = shown.cut,
                                    .may_be_put_off = may_skip_,
                                    .inside = asked.allows("approve"),
                                    .outside = asked.allows(kApproveOutside)};
      Ask(shown.text + (offered.outside ? std::string(kOutsideMeans) + "\n" : ""));
      std::string line;
      switch (Answer("allow? " + ApprovalLegend(offered) + ": ", line)) {
        case Answered::kWithdrawn:
        case Answered::kCancelled:
          return true;
        case Answered::kNone:
          static_cast<void>(Give(body));
          return true;
        case Answered::kLine:
          break;
      }
      if (may_skip_ && (line == "l" || line == "later")) return true;
      if (line == "n" || line == "no") return Give(body);
      if (line == "a" || line == "always") body["scope"] = "chat";
      if (line == "e" || line == "edit") {
        const auto answered = Answer("arguments: ", line);
        if (answered == Answered::kWithdrawn || answered == Answered::kCancelled) return true;
        if (answered == Answered::kNone) return static_cast<void>(Give(body)), true;
        const auto arguments = ParseJson(line);
        if (!arguments || !arguments->is_object()) {
          Warn("the arguments must be a JSON object, such as " + EscapeHidden(asked.tool_input));
          continue;
        }
        body["arguments"] = line;  // as it was typed
        line = "y";
      }
      if (line == "s" || line == "show") whole = true;
      const bool leaves = offered.outside && (line == "o" || line == "outside");
      if (!leaves && line != "y" && line != "yes" && line != "a" && line != "always") continue;
      if (leaves) body["outside_sandbox"] = true;
      body["approved"] = true;
      return Give(body);
    }
  }

  bool Respond(const event::InputRequired& asked) {
    Ask(VisibleText(asked.question, "") + "\n");
    if (asked.url || asked.schema) {
      if (asked.url) Ask("  open: " + VisibleLine(*asked.url) + "\n");
      std::string line;
      do {
        const auto answered =
            Answer(std::string(asked.url ? "have you done that? " : "fill in the form? ") + "[y]es, [n]o: ", line);
        if (answered == Answered::kWithdrawn || answered == Answered::kCancelled) return true;
        if (answered == Answered::kNone) line = "n";
      } while (line != "y" && line != "yes" && line != "n" && line != "no");
      if (line.starts_with("n")) return Give(AnswerTo(asked, std::nullopt)) || !input_.is_terminal();
      if (!asked.schema) return Give(AnswerTo(asked, "done"));
      std::map<std::string, std::string> entered;
      auto object =
          FillInForm(*asked.schema,
                     {.tell = [this](const std::string& text) { Ask(text + "\n"); },
                      .complain = [](const std::string& text) { Warn(text); },
                      .read = [this](const std::string& prompt,
                                     std::string& typed) { return Answer(prompt, typed) == Answered::kLine; }},
                     entered);
      if (object) return Give(AnswerTo(asked, *std::move(object)));
      // A pipe has ended, so no answer can come.
      if (!input_.is_terminal()) static_cast<void>(Give(AnswerTo(asked, std::nullopt)));
      return true;
    }
    for (const std::string& option : asked.options) Ask("  - " + VisibleLine(option) + "\n");
    std::string line;
    const auto answered = Answer("answer: ", line);
    if (answered == Answered::kWithdrawn || answered == Answered::kCancelled) return true;
    const bool is_said = answered == Answered::kLine && !line.empty();
    return Give(AnswerTo(asked, is_said ? std::optional<Json>(line) : std::nullopt)) || answered == Answered::kNone;
  }

  ServerLink& link_;
  TerminalInput& input_;
  const std::string chat_, path_;
  const std::string model_;
  const bool json_;
  int status_ = kExitOk;
  bool leaving_ = false;
  std::string aside_;  // typed before a question was shown

  // --- of the run that is shown
  std::map<std::string, std::string> labels_;  // of this round's calls: call id -> the call in a few words
  StreamedText streamed_;
  bool at_line_start_ = true;  // whether the shown text ends with a line end
  bool said_ = false;          // the answer was shown as it arrived

  // --- of the question that is asked
  RunStream* run_ = nullptr;
  const PendingQuestion* asked_ = nullptr;
  bool may_skip_ = false;
};

}  // namespace

int RunPipeConversation(ServerLink& link, TerminalInput& input, const ChatId& chat, std::string model, bool json,
                        const std::string& opening) {
  return PipeConversation(link, input, chat, std::move(model), json).Run(opening);
}

}  // namespace reprise
