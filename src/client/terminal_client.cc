#include "client/terminal_client.h"

#include <algorithm>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/answers.h"
#include "client/server_access.h"
#include "client/start_line.h"
#include "domain/codec.h"
#include "domain/transcript/event_visitor.h"
#include "terminal/console.h"
#include "terminal/question_text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostLines = 40;  // of a message shown whole
constexpr std::size_t kPastTurns = 3;   // shown when a chat is opened
constexpr std::size_t kMostToldOf = 3;  // files of instructions announced one by one
constexpr std::chrono::seconds kFirstAnswer{10};

}  // namespace

std::string TerminalClient::Joined(std::string first, const std::string& second) {
  if (!first.empty() && !second.empty()) first += "\n";
  return first + second;
}

TerminalClient::TerminalClient(Parts parts)
    : link_(parts.link),
      server_(link_.server()),
      input_(parts.input),
      style_(parts.style),
      has_colour_(parts.style.has_colour()),
      screen_(parts.input),
      view_(screen_, style_),
      menu_({.place = [this](const std::string& line) { return PlaceOfMenu(line); },
             .items = [this](const std::string& line) { return MenuItems(line); },
             .changed =
                 [this] {
                   searches_ = searches_ && menu_.is_open();
                   UpdateScreen(/*at_once=*/true);
                 }}),
      opening_(std::move(parts.opening)),
      advice_(std::move(parts.leaving_advice)),
      home_(std::move(parts.home)),
      settings_file_(std::move(parts.settings_file)),
      keys_(parts.settings.keys),
      meanwhile_{.descriptors = [this] { return Descriptors(); },
                 .timeout_ms = [this] { return TimeoutMs(); },
                 .proceed = [this] { return Proceed(); },
                 .resized =
                     [this] {
                       screen_.Resize();
                       view_.Resized();
                       FitQuestion();
                       UpdateScreen(/*at_once=*/true);  // whose lines are cut to the width
                     }},
      chat_(parts.chat.str()),
      path_("/chats/" + chat_),
      model_(std::move(parts.model)) {
  view_.SetPictures([this](const Attachment& file) { ShowPicture(file); });
  input_.editor()->SetMenu(menu_);
  input_.editor()->SetKeys(keys_, parts.settings.is_vi);
  input_.editor()->SetHooks({.run = [this](LineEditor::Command key) { Press(key); },
                             .complain = [this](const std::string& text) { Complain(text); },
                             .read_paste =
                                 [this](const std::string& before, const std::string& pasted) {
                                   return at_prompt_ ? NamesOfDropped(before, pasted) : pasted;
                                 }});
}

void TerminalClient::Run() {
  Attach(/*at_start=*/true);
  if (!opening_.empty()) {
    input_.editor()->Remember(opening_);
    opening_.starts_with('!') ? Say(opening_) : Obey(opening_);  // a script's text must not run as a command
  }
  while (!leaving_) {
    if (may_leave_deleted()) LeaveDeleted();
    if (is_asked()) {
      Ask({.asked = NextQuestion()});
      continue;
    }
    std::string text = Joined(std::exchange(aside_, {}), std::exchange(draft_, {}));
    at_prompt_ = true;
    hides_prompt_ = screen_.is_plain() && running();
    ShowState();
    screen_.SetBelow(Below());
    const Came came = screen_.ReadMessage(hides_prompt_ ? "" : "> ", meanwhile_, text);
    at_prompt_ = false;
    if (came == Came::kLine || came == Came::kInterrupt) {
      menu_.Forget();
      searches_ = false;
      escaped_ = {};  // Esc, Enter, Esc is not Esc twice
    }
    switch (came) {
      case Came::kLine:
        warned_ = false;
        if (text.find_first_not_of(" \t\n") != std::string::npos) Enter(text);
        break;
      case Came::kWithdrawn:
      case Came::kKey:
      case Came::kEarly:
        draft_ = text;
        break;
      case Came::kEscape:
        draft_ = text;
        if (!Stop()) GoBack();
        break;
      case Came::kInterrupt:
        if (Stop()) {
          draft_ = text;
          break;
        }
        if (!text.empty()) input_.editor()->Remember(text);
        leaving_ = warned_ && text.empty();
        warned_ = text.empty();
        if (warned_ && !leaving_) Tell("(Ctrl-C once more leaves, as Ctrl-D and /quit do)");
        break;
      case Came::kEnd:
        leaving_ = true;
        break;
    }
  }
  Leave();
  if (running()) view_.End();
  screen_.Draw();
  screen_.RestoreTitle();
}

// --- messages to the person --------------------------------------------------------------------------------------

void TerminalClient::Tell(const std::string& text) {
  for (const std::string& line : Wrap(VisibleText(text, ""), screen_.columns())) screen_.Add(line);
}

void TerminalClient::Complain(const std::string& text) {
  for (const std::string& line : Wrap(VisibleLine("reprise: " + text), screen_.columns(), "", "  ")) {
    screen_.Add(style_.Paint(Style::kError, line));
  }
}

void TerminalClient::Failed(const Error& error) { Complain(error.message); }

// --- opening a chat ----------------------------------------------------------------------------------------------

// A path of the API, for the chat's folder. The chat need not exist yet.
std::string TerminalClient::InFolder(const std::string& path) const {
  if (elsewhere_) return path + "?chat_id=" + chat_;
  return path + FolderQuery(link_);
}

// Announces files of instructions that wait for approval, once each.
void TerminalClient::TellOfInstructions() {
  const auto instructions = server_.Call("GET", InFolder("/instructions"));
  if (!instructions) return;  // this user may not see them
  std::size_t waiting = 0;
  for (const Json& file : ListedIn(*instructions, "files")) {
    const std::string path = TextMember(file, "path"), state = TextMember(file, "state");
    if ((state != "new" && state != "changed") || !told_of_.insert(path + TextMember(file, "digest")).second) continue;
    if (++waiting > kMostToldOf) continue;
    Tell("(" + path + (state == "new" ? " is new" : " has changed") +
         " and is not used yet: /instructions shows it, and allows it)");
  }
  if (waiting > kMostToldOf) {
    Tell("(and " + std::to_string(waiting - kMostToldOf) +
         " more: /instructions shows them, `reprise trust` allows many)");
  }
}

// Shows the chat's last turns and follows its unfinished run.
void TerminalClient::Attach(bool at_start) {
  input_.editor()->ForgetAll();
  knows_other_chats_ = false;
  undone_.clear();
  shown_.clear();
  started_.clear();
  own_.clear();
  head_.clear();
  given_back_.clear();
  deleted_ = false;
  if (!changes_) Watch();  // before reading the chat, so that no run begins unnoticed in between
  for (const Json& model : MemberOf(link_.Models(), "models")) {
    const auto window = model.find("context_window");
    windows_[TextMember(model, "name")] =
        window != model.end() && window->is_number_unsigned() ? window->get<std::uint64_t>() : 0;
  }
  const auto chat = Call("GET", path_);
  const ConversationStart beginning{.chat = chat_, .known = chat ? &*chat : nullptr, .model = model_, .home = home_};
  if (at_start) screen_.Add(StartLine(link_, beginning, screen_.columns(), style_));
  about_ = StatusOf(link_, beginning);
  TakeFolder(beginning.known);
  may_have_cost_ = true;
  chats_mode_.clear();
  if (chat) TakeMode(*chat);
  view_.ForgetContext();
  if (elsewhere_) Tell("(this chat works in " + folder_ + ")");
  TellOfInstructions();
  if (!chat && !chat.error().Is(Reason::kNotFound)) return Failed(chat.error());
  if (!chat) return;
  std::vector<Json> turns;
  for (const Json& interaction : ListedIn(*chat, "interactions")) {
    const std::string message = TextMember(interaction, "user_message");
    if (!IsRunning(TextMember(interaction, "status"))) shown_.insert(TextMember(interaction, "id"));
    if (message.empty()) continue;
    input_.editor()->Remember(message);
    if (IsRunning(TextMember(interaction, "status"))) continue;
    turns.push_back(interaction);
    head_ = TextMember(interaction, "id");
  }
  const std::size_t first = turns.size() - std::min(turns.size(), kPastTurns);
  if (first > 0) Tell("(" + std::to_string(first) + (first == 1 ? " turn" : " turns") + " before these: /history)");
  for (std::size_t i = first; i < turns.size(); ++i) ShowTurn(turns[i], 0);
  LookAtStatus();
  Follow(*chat);
}

// `number` is the turn's number for /edit; 0: none is shown.
void TerminalClient::ShowTurn(const Json& interaction, std::size_t number) {
  if (number != 0) {
    Tell("[" + std::to_string(number) + "] " + TextMember(interaction, "id") + "  " +
         TextMember(interaction, "status"));
  }
  ShowUserMessage(TextMember(interaction, "user_message"));
  view_.Begin(/*live=*/false);
  for (const Json& each : ListedIn(interaction, "agent_events")) {
    if (const auto event = ReceivedEvent(each)) view_.Heard(*event);
  }
  view_.End();
}

void TerminalClient::ShowUserMessage(std::string_view text) {
  const std::vector<std::string> lines = Wrap(Indented(text, ""), screen_.columns(), "> ", "  ");
  const std::size_t shown = lines.size() > kMostLines ? kMostLines / 2 : lines.size();
  for (std::size_t i = 0; i < shown; ++i) screen_.Add(style_.Paint(Style::kBold, lines[i]));
  if (shown < lines.size()) {
    screen_.Add(style_.Paint(Style::kDim, "  ... " + Counted(lines.size() - shown, "more line")));
  }
}

// Begins to show the chat's unfinished interaction, if there is one.
void TerminalClient::Follow(const Json& chat) {
  const Json& interaction = RunningIn(chat);
  if (interaction.is_null()) return;
  Tell(SayRunning(interaction) + " (Ctrl-C cancels it)");
  FollowOne(interaction);
}

// Begins to show an interaction that another client has started.
void TerminalClient::FollowOne(const Json& interaction) {
  const std::string id = TextMember(interaction, "id");
  if (id != head_) TellOfParent(TextMember(interaction, "parent_id"));
  head_ = id;
  shown_.insert(id);
  ShowUserMessage(TextMember(interaction, "user_message"));
  auto stream = std::make_unique<RunStream>(server_, chat_);
  stream->Attach(id);
  Begin(std::move(stream), own_.contains(id) ? Whose::kOwn : Whose::kAnothers);
}

// --- a message ---------------------------------------------------------------------------------------------------

// Whether a typed text is a command, for this client or the shell, and no message.
bool TerminalClient::IsOrder(const std::string& text) { return RunsHere(text) || !ParseTyped(text).command.empty(); }

// What a person types to send this message.
std::string TerminalClient::AsTyped(const std::string& message) {
  if (RunsHere(message)) return " " + message;
  return message.starts_with("//") || IsOrder(message) ? "/" + message : message;
}

// A command typed behind the message that /undo has put into the line is meant as a command, and the message stays.
void TerminalClient::Enter(const std::string& text) {
  const std::string given_back = std::exchange(given_back_, {});
  if (!given_back.empty() && text.starts_with(given_back)) {
    const std::string more(Trimmed(std::string_view(text).substr(given_back.size()), " \n"));
    if (IsOwnCommand(more.substr(0, more.find_first_of(" \n")))) {
      draft_ = given_back_ = given_back;
      return Obey(more);
    }
  }
  Obey(text);
}

// After /undo.
void TerminalClient::GiveBack(const std::string& message) { draft_ = given_back_ = AsTyped(message); }

void TerminalClient::Obey(const std::string& text) {
  if (RunsHere(text)) return RunHere(text);
  const TypedLine typed = ParseTyped(text);
  typed.command.empty() ? Say(typed.text) : RunCommand(typed.command, typed.text);
}

void TerminalClient::Say(const std::string& text, const std::string& model) {
  const std::vector<std::string> files = FilesIn(text);
  if (running() && (compact_ || !files.empty() || !attachments_.empty())) {
    draft_ = text;
    return Complain("a message with files or a summary is sent at once: wait until this has ended");
  }
  Json body = RunOptions(model.empty() ? model_ : model);
  body["user_message"] = text;
  if (!elsewhere_ && !link_.folder().empty()) body["workspace"] = link_.folder();
  const auto attachments = Attachments(files);
  if (!attachments) {
    draft_ = text;
    return;
  }
  if (!attachments->empty()) body["attachments"] = *attachments;
  if (compact_) body["compact"] = true;
  if (!compact_ && attachments->empty()) body["if_running"] = "queue";
  Start(path_ + "/interactions", std::move(body), text, text);
}

Json TerminalClient::RunOptions(const std::string& model) const {
  Json options = link_.RunOptions(model);
  if (is_mode_chosen_) options["approval_mode"] = ModeOfMessages();
  return options;
}

// Waits for the first sign that the server took the request, so that the next one does not overtake it. False if
// Ctrl-C was pressed.
bool TerminalClient::WaitForFirst(RunStream& stream) {
  const auto deadline = std::chrono::steady_clock::now() + kFirstAnswer;
  while (stream.received().empty() && !stream.ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    if (input_.WaitForOrInterrupt(stream.descriptor(), left)) return false;
    stream.Receive();
  }
  return true;
}

void TerminalClient::GiveUp(const std::string& typed) {
  draft_ = typed;
  Complain("stopped waiting; the server may still run this message");
}

// `typed` returns to the line if the request is refused.
void TerminalClient::Start(const std::string& path, Json body, const std::string& text, const std::string& typed) {
  if (lost_) FollowAgain();
  if (lost_) {
    draft_ = typed;
    return;
  }
  HearOfOthers();
  if (may_leave_deleted()) {
    draft_ = typed;
    return;
  }
  auto stream = std::make_unique<RunStream>(server_, chat_);
  stream->Start(path, body);
  if (!WaitForFirst(*stream)) return GiveUp(typed);
  const bool is_answered = !stream->ended() || *stream->ended() || !stream->received().empty();
  const Loss loss = is_answered ? Loss::kNone : HowLost((*stream->ended()).error());
  if (loss != Loss::kNone) {
    if (const auto found = link_.FindAgain(); !found) {
      draft_ = typed;
      return Failed(found.error());
    }
    if (loss == Loss::kNeverReached) {  // the server that was found may need to be told more
      Json whole = link_.RunOptions(model_);
      whole.update(body);  // what was chosen for this message stays
      stream = std::make_unique<RunStream>(server_, chat_);
      stream->Start(path, std::move(whole));
    } else {
      stream->Resume();  // the request may have arrived
    }
    if (!WaitForFirst(*stream)) return GiveUp(typed);
  }
  if (const auto& ended = stream->ended(); ended && !*ended && stream->received().empty()) {
    if (ended->error().Is(Reason::kRequestWaits)) {  // it arrived before the server was lost
      queued_.push_back({text, {}, std::move(stream)});
      return;
    }
    draft_ = typed;  // it was refused, so the person can send it again
    Failed(ended->error());
    if (ended->error().Is(Reason::kTooLarge)) Tell("(write it to a file in the workspace, and name the file instead)");
    return;
  }
  if (body.contains("attachments")) attachments_.clear(), uploaded_.clear();
  if (body.contains("compact")) compact_ = false;
  undone_.clear();
  undone_chat_.reset();
  if (!stream->received().empty() && stream->received().front().name == "queued") {
    const Json queued = stream->Next()->data;
    queued_.push_back({text, TextMember(queued, "id"), std::move(stream)});
    if (screen_.is_plain()) Tell("(queued)");
    return;
  }
  if (running()) {  // that run has ended, but the event has not arrived yet
    queued_.push_back({text, {}, std::move(stream)});
    return;
  }
  if (!text.empty() && !screen_.is_plain()) ShowUserMessage(text);  // what was typed stays on a plain one
  follows_ = path == path_ + "/interactions";
  Begin(std::move(stream), Whose::kOwn);
}

// --- the shown run -----------------------------------------------------------------------------------------------

void TerminalClient::Begin(std::unique_ptr<RunStream> stream, Whose whose) {
  stream_ = std::move(stream);
  stream_->MergeText();
  whose_ = whose;
  view_.Begin(/*live=*/true);
  Receive();
}

// Shows what has arrived. True withdraws the edit: for a question, or because the question needs no answer any more.
bool TerminalClient::Proceed() {
  if (running()) Receive();
  ReceiveQueued();
  HearOfOthers();
  if (asks_from_list_) LookAtList();
  const bool prompts_anew = !aside_.empty() || (hides_prompt_ && !running()) || may_leave_deleted();
  const bool withdrawn = asking_.empty() ? is_asked() || (at_prompt_ && prompts_anew) : !Has(Open(), asking_);
  if (!withdrawn) UpdateScreen(/*at_once=*/false);
  return withdrawn;
}

std::vector<int> TerminalClient::Descriptors() const {
  std::vector<int> descriptors;
  if (stream_) descriptors.push_back(stream_->descriptor());
  if (changes_) descriptors.push_back(changes_->descriptor());
  for (const QueuedText& waiting : queued_) descriptors.push_back(waiting.stream->descriptor());
  return descriptors;
}

void TerminalClient::Receive() {
  stream_->Receive();
  while (running()) {
    const auto heard = stream_->Next();
    if (!heard) break;
    stale_ = true;
    if (heard->event) Heard(*heard->event);
  }
  if (running() && stream_->ended()) FinishRun();
}

void TerminalClient::Heard(const AgentEvent& event) {
  const auto* const changed = std::get_if<event::FilesChanged>(&event.payload);
  if (changed == nullptr && !changed_by_.empty()) ShowChanges(std::exchange(changed_by_, {}));  // all have arrived
  std::visit(
      Overload{Ignoring<event::ThinkingDelta, event::TextDelta, event::Thinking, event::MessageText, event::Answer,
                        event::ToolCallStarted, event::ToolOutputDelta, event::ToolResult, event::ApprovalRequired,
                        event::InputRequired, event::TaskUpdated, event::PlanUpdated, event::GrantsUpdated,
                        event::Usage, event::Retry, event::LoopDetected, event::SentBack, event::SoundDelta,
                        event::Sound, event::WebSearch, event::Compacted, event::JobStarted, event::JobEnded,
                        event::Nested, event::Cancelled, event::Failed, event::InteractionComplete>(),
               [&](const event::InteractionStarted& e) {
                 HearOfBeginning(e);
                 const auto window = windows_.find(e.model);
                 if (whose_ == Whose::kOwn && model_.empty() && !e.model.empty()) about_.model = VisibleLine(e.model);
                 view_.SetContextWindow(window == windows_.end() ? 0 : window->second);
               },
               [&](const event::FilesChanged& e) { changed_by_ = e.call_id.value_or(""); },
               [&](const event::Approved& e) { AnsweredElsewhere(e.approval_id); },
               [&](const event::Rejected& e) {
                 if (!e.expired) AnsweredElsewhere(e.approval_id);
               },
               [&](const event::InputReceived& e) { AnsweredElsewhere(e.request_id); }},
      event.payload);
  view_.Heard(event);
}

// Shows how the finished call changed files, unless a question has shown it.
void TerminalClient::ShowChanges(const std::string& call) {
  if (call.empty() || !view_.WantsDiff(call)) return;
  const auto changed = server_.Call("GET", stream_->path() + "/diff?call_id=" + PercentEncoded(call));
  if (changed) view_.ShowDiff(call, ListedIn(*changed, "files"));
}

// Ends the shown run, whose stream has ended, and shows the chat's next one.
void TerminalClient::FinishRun() {
  const auto ended = *stream_->ended();
  const bool is_complete = stream_->is_complete();
  view_.End();
  stream_.reset();
  stale_ = true;
  LookAtStatus();
  if (!ended) {
    Failed(ended.error());
  } else if (!is_complete) {
    Complain("the server stopped; open questions are kept");
  }
  if (!ended || !is_complete) {
    FollowAgain();
    if (running()) return;
    if (!lost_) Tell("(/continue goes on with what was cut off)");
  }
  if (ended && is_complete) TellOfInstructions();  // the agent may have written some
  ShowNext();
}

// After the server was lost: follows the chat's run again, which may wait for an answer.
void TerminalClient::FollowAgain() {
  lost_ = true;
  const auto chat = Call("GET", path_);
  lost_ = !chat && HowLost(chat.error()) == Loss::kNeverReached;
  if (!chat && chat.error().Is(Reason::kNotFound)) return;  // the chat has no message yet
  if (!chat) return Failed(chat.error());
  for (QueuedText& waiting : queued_) waiting.is_lost = false;
  ReceiveQueued();
  ShowNext();  // a message of this client may be what runs
  if (!running()) Follow(*chat);
}

bool TerminalClient::Cancel() {
  if (stream_->interaction().empty()) return false;
  const auto done = Call("POST", stream_->path() + "/cancel");
  if (!done) Failed(done.error());
  return done.has_value();
}

int TerminalClient::TimeoutMs() const {
  const auto now = std::chrono::steady_clock::now();
  auto next = std::chrono::steady_clock::time_point::max();
  if (!changes_) next = watched_from_;
  if (running()) next = std::min(next, drawn_ + StepOfStatus());
  if (asks_from_list_) next = std::min(next, now + kBetweenLooks);
  if (next == std::chrono::steady_clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::max<std::int64_t>(0, left + 1));
}

}  // namespace reprise
