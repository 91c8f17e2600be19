#include "client/acp/session.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/path.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "client/acp/rpc_error.h"
#include "client/answers.h"
#include "domain/codec.h"
#include "terminal/console.h"
#include "terminal/question_text.h"

namespace reprise::acp {
namespace {

using Clock = std::chrono::steady_clock;

// A server that another process started has this long to come back before one is started here.
constexpr std::chrono::seconds kComesBack{15};
constexpr std::chrono::seconds kGivenUp{60};
constexpr std::chrono::milliseconds kFirstTry{20}, kBetweenTries{200}, kOutputStep{100};
constexpr int kEditorOpensMs = 2000;
constexpr std::chrono::seconds kRunEnds{2};    // the wait for the end of a cancelled run
constexpr std::chrono::seconds kToolsCome{5};  // slower tools are offered in a later round

struct Command {
  const char *name, *description;
};
constexpr std::array kCommands = {
    Command{"compact", "Sum up what was said; later requests have the summary in its place"},
    Command{"regenerate", "Run the last message again, as another branch"},
    Command{"resume", "Go on where the last run failed or was cancelled"},
    Command{"undo", "Go back to before the last message; nothing is lost"},
};

// The absolute path of the workspace file that a call concerns; empty if there is none.
std::string PathOf(const event::ApprovalRequired& asked, const std::string& workspace) {
  const auto given = ParseJson(asked.tool_input);
  const std::string path = given ? TextMember(*given, "path") : "";
  if (path.empty() || workspace.empty()) return "";
  const auto full = std::filesystem::path(path.starts_with('/') ? path : workspace + "/" + path).lexically_normal();
  return LiesBeneath(full.string(), workspace) ? full.string() : "";
}

const char* StopReason(InteractionStatus status, const std::string& answer_reason) {
  if (status == InteractionStatus::kCancelled) return "cancelled";
  if (answer_reason == "length" || answer_reason == "context_window") return "max_tokens";
  if (answer_reason == "refusal" || answer_reason == "content_filter") return "refusal";
  return "end_turn";
}

}  // namespace

Session::Session(Parts parts)
    : link_(parts.link),
      client_(parts.client),
      abilities_(parts.abilities),
      chat_(std::move(parts.chat)),
      path_("/chats/" + chat_),
      exists_(parts.exists),
      is_new_(!parts.exists),
      updates_(parts.workspace, abilities_.updates),
      workspace_(std::move(parts.workspace)),
      cwd_(std::move(parts.cwd)),
      tools_(std::move(parts.tools)) {
  if (abilities_.has_terminal) terminal_.emplace(client_, chat_, cwd_);
}

// --- messages to the client --------------------------------------------------------------------------------------

void Session::Update(Json update) {
  client_.Notify("session/update", {{"sessionId", chat_}, {"update", std::move(update)}});
}

void Session::Show(std::vector<Json> updates) {
  for (Json& update : updates) Update(std::move(update));
}

// Sends our own text in place of the agent's.
void Session::Say(const std::string& text) {
  Update({{"sessionUpdate", "agent_message_chunk"}, {"content", {{"type", "text"}, {"text", text}}}});
}

void Session::AnnounceCommands() {
  Json commands = Json::array();
  for (const Command& command : kCommands) {
    commands.push_back({{"name", command.name}, {"description", command.description}});
  }
  Update({{"sessionUpdate", "available_commands_update"}, {"availableCommands", std::move(commands)}});
}

void Session::AnswerLoad() {
  if (!load_) return;
  auto [request_id, response] = *std::exchange(load_, std::nullopt);
  client_.Answer(request_id, std::move(response));
}

void Session::AnswerPrompt(const char* stop_reason) {
  if (prompt_) client_.Answer(*std::exchange(prompt_, std::nullopt), {{"stopReason", stop_reason}});
}

void Session::RefusePrompt(Json error) {
  if (prompt_) client_.Refuse(*std::exchange(prompt_, std::nullopt), std::move(error));
}

// --- a prompt ----------------------------------------------------------------------------------------------------

void Session::Prompt(const Json& request_id, const Json& blocks) {
  const auto refuse = [&](const Error& error) { client_.Refuse(request_id, rpc::ErrorObject(error)); };
  auto prompt = ReadPrompt(blocks, workspace_);
  if (!prompt) return refuse(prompt.error());
  const auto waits_for_words = std::ranges::find_if(open_, [](const OpenQuestion& each) {
    return std::holds_alternative<PendingInput>(each.asked) && each.request == 0;
  });
  if (!prompt_ && waits_for_words != open_.end()) {
    const event::InputRequired asked = std::get<PendingInput>(waits_for_words->asked).request;
    auto body = TextAnswer(asked, prompt->text);
    if (!body) return refuse(body.error());
    prompt_ = request_id;
    return GiveAnswer(*waits_for_words, *body);
  }
  if (!prompt_ && cancel_wanted_) {  // the last one was cancelled while the server was lost, so its run must end first
    if (follows_ == Follows::kLost) LoseServer();
    AwaitEnd();
    if (follows_ == Follows::kLost) {
      return refuse(Refused(Reason::kConnectionFailed, "the server has ended and is not back yet"));
    }
  }
  if (prompt_ || follows_ != Follows::kNothing) {
    return client_.Refuse(request_id, rpc::ErrorObject(rpc::kInvalidRequest,
                                                       "a prompt of this session is under way; wait for its end, or "
                                                       "cancel it (session/cancel)",
                                                       "busy"));
  }
  if (prompt->files.empty() && prompt->text.starts_with('/')) {
    const auto is_command = RunCommand(request_id, prompt->text);
    if (!is_command) return refuse(is_command.error());
    if (*is_command) return;
  }
  Json body = RunOptions();
  body["user_message"] = prompt->text;
  if (!workspace_.empty()) body["workspace"] = workspace_;  // refused if the chat was moved meanwhile
  for (PromptFile& file : prompt->files) {
    const auto uploaded = link_.server().Upload(path_ + "/files", file.name, std::move(file.bytes));
    if (!uploaded) return refuse(NotAnswering(uploaded.error(), link_.server()));
    exists_ = true;
    body["attachments"].push_back(TextMember(*uploaded, "id"));
  }
  prompt_ = request_id;
  Begin(path_ + "/interactions", std::move(body));
}

// The newest interaction of the chat; null if there is none.
Result<Json> Session::Newest() {
  const auto chat = TRY(link_.Call("GET", path_ + "?limit=1&state=none"));
  const Json& interactions = ListedIn(chat, "interactions");
  return !interactions.empty() ? interactions.back() : Json(nullptr);
}

// True if the text is a command, which is now under way or answered.
Result<bool> Session::RunCommand(const Json& request_id, const std::string& text) {
  std::string name = text.substr(1);
  while (name.ends_with(' ') || name.ends_with('\n')) name.pop_back();
  if (std::ranges::none_of(kCommands, [&](const Command& each) { return name == each.name; })) {
    return false;
  }
  if (name == "undo") {
    TRY(link_.Call("POST", path_ + "/undo", Json::object()));
    Say("(back to before the last message)");
    client_.Answer(request_id, {{"stopReason", "end_turn"}});
    return true;
  }
  std::string path = path_ + "/compact";
  Json body = Json::object();
  if (name != "compact") {
    const Json newest = TRY(Newest());
    if (newest.is_null()) return Fail(ErrorCode::kInvalidArgument, "nothing has been said in this session yet");
    path = path_ + "/interactions/" + TextMember(newest, "id") + "/" + name;
    body = RunOptions();
  }
  prompt_ = request_id;
  Begin(path, std::move(body));
  return true;
}

void Session::Begin(const std::string& path, Json body) {
  open_.clear();
  cancel_wanted_ = was_lost_ = has_resumed_ = false;
  has_heard_ = true;
  OpenEditor();
  run_ = std::make_unique<RunStream>(link_.server(), chat_);
  run_->Start(path, std::move(body));
  follows_ = Follows::kRun;
}

void Session::Attach(const std::string& interaction) {
  has_heard_ = true;
  OpenEditor();
  run_ = std::make_unique<RunStream>(link_.server(), chat_);
  run_->Attach(interaction);
  follows_ = Follows::kRun;
}

void Session::Resume() {
  OpenEditor();
  run_->Resume();
  follows_ = Follows::kRun;
}

// --- files that the client has open, and its tools ---------------------------------------------------------------

// Connects the client's open files and tools to the chat. Waits until the server knows them, because a run that begins
// earlier would read saved files only and lack the client's tools.
void Session::OpenEditor() {
  const bool is_wanted = abilities_.reads_files || tools_ || terminal_;
  if (!is_wanted || (editor_ && !editor_->ended())) return;
  is_connected_ = has_offered_ = false;
  const auto flag = [](bool is_so) { return is_so ? "true" : "false"; };
  editor_ = link_.server().Stream(
      "GET", path_ + "/editor?reads=" + flag(abilities_.reads_files) + "&writes=" + flag(abilities_.writes_files),
      Json(nullptr));
  const auto until = Clock::now() + std::chrono::milliseconds(kEditorOpensMs);
  while (editor_->received().empty() && !editor_->ended()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{editor_->descriptor(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) < 0) return;
    editor_->Receive();
  }
  if (tools_) tools_->AwaitOffers(kToolsCome);
  ServeEditor();
  OfferTools();
}

void Session::ServeEditor() {
  if (!editor_) return;
  editor_->Receive();
  while (auto event = editor_->Next()) {
    if (event->name == "editor_open") is_connected_ = true;
    if (event->name == "editor_request") TakeEditorRequest(event->data);
    if (event->name != "editor_cancel") continue;
    const std::string id = TextMember(event->data, "request_id");
    if (tools_) tools_->Cancel(id);
    if (terminal_) terminal_->Cancel(id);
  }
  if (editor_->ended()) CloseEditor();  // the server ended or another client took over; the next prompt reopens it
}

void Session::CloseEditor() {
  editor_.reset();
  is_connected_ = has_offered_ = false;
  for (const auto& [id, request] : std::exchange(editor_requests_, {})) client_.Withdraw(request);
  if (tools_) tools_->CancelAll();
  if (terminal_) terminal_->CancelAll();
}

void Session::TakeEditorRequest(const Json& request) {
  const std::string id = TextMember(request, "request_id");
  const std::string method = TextMember(request, "method");
  if (method == "call") return TakeCall(id, request);
  const bool writes = method == "write";
  Json params = {{"sessionId", chat_}, {"path", TextMember(request, "path")}};
  if (writes) params["content"] = TextMember(request, "content");
  editor_requests_[id] = client_.Ask(writes ? "fs/write_text_file" : "fs/read_text_file", std::move(params),
                                     [this, id, writes](const Json& response) { TellEditor(id, writes, response); });
}

void Session::TellEditor(const std::string& id, bool wrote, const Json& response) {
  editor_requests_.erase(id);
  const Json& content = MemberOf(MemberOf(response, "result"), "content");
  Json body;
  if (response.contains("error")) {
    body["error"] = TextMember(MemberOf(response, "error"), "message");
  } else if (wrote) {
    body["done"] = true;
  } else if (content.is_string()) {
    body["content"] = content;
  } else {
    body["error"] = "there is no content";
  }
  AnswerEditor(id, body);
}

void Session::TakeCall(const std::string& id, const Json& request) {
  const std::string tool = TextMember(request, "tool");
  const Json& arguments = MemberOf(request, "arguments");
  if (terminal_ && tool == TerminalTool::kName) {
    const auto shown = [this](const std::string& terminal) { Show(updates_.SetTerminal(terminal)); };
    terminal_->Call(id, arguments, shown, [this, id](const Json& answer) { AnswerEditor(id, answer); });
  } else if (tools_) {
    tools_->Call(id, tool, TextMember(request, "terms"), arguments);
  } else {
    AnswerEditor(id, {{"error", "there is no such tool here"}});
  }
}

// The server may not wait any more ("not_found"). If it rejects an answer, such as one that is too long, it gets that
// as an error instead, because the request may have taken effect.
void Session::AnswerEditor(const std::string& id, const Json& answer) {
  const auto taken = link_.Call("POST", path_ + "/editor/" + id, answer);
  if (taken || taken.error().Is(Reason::kNotFound) || answer.contains("error")) return;
  const Json why = {{"error", "it was done, but what came of it cannot be passed on: " + taken.error().message}};
  static_cast<void>(link_.Call("POST", path_ + "/editor/" + id, why));
}

// Offers all tools, if they have changed or the server does not know them yet.
void Session::OfferTools() {
  if (!is_connected_ || !editor_ || editor_->ended()) return;
  auto offer = tools_ ? tools_->TakeOffer(!has_offered_) : std::nullopt;
  if (!offer && terminal_ && !has_offered_) offer = Json{{"tools", Json::array()}};
  if (!offer) return;
  if (terminal_) (*offer)["tools"].push_back(TerminalTool::Offer());
  const auto taken = link_.Call("PUT", path_ + "/editor", *offer);
  has_offered_ = true;
  if (taken) return;
  Warn("the server does not take the client's tools: " + VisibleLine(taken.error().message));
  // Removes the earlier offer, because its tools may no longer exist.
  static_cast<void>(link_.Call("PUT", path_ + "/editor", Json{{"tools", Json::array()}}));
}

void Session::ServeTools() {
  if (tools_) tools_->ClearWake();
  OfferTools();
  if (!tools_) return;
  while (const auto answer = tools_->TakeAnswer()) AnswerEditor(answer->first, answer->second);
}

// --- an existing session -----------------------------------------------------------------------------------------

// Leaves requests to the editor alone if nothing changes for it.
void Session::Reopen(std::string cwd, std::unique_ptr<ClientTools> tools) {
  AnswerLoad();
  if (!tools_ && !tools && cwd == cwd_) return;
  CloseEditor();
  tools_ = std::move(tools);
  cwd_ = std::move(cwd);
  if (terminal_) terminal_.emplace(client_, chat_, cwd_);
}

void Session::Load(const Json& request_id, Json response) {
  if (!exists_) return client_.Answer(request_id, std::move(response));  // nothing has been said yet
  const auto chat = link_.Call("GET", path_ + "?state=none");
  if (!chat) return client_.Refuse(request_id, rpc::ErrorObject(chat.error()));
  const bool follows = follows_ != Follows::kNothing;
  updates_ = Updates(workspace_, abilities_.updates);
  const std::string running = Replay(*chat);
  // A prompt is under way that the server has not answered yet; its run is shown when it begins.
  if (follows && run_->interaction().empty()) return client_.Answer(request_id, std::move(response));
  load_ = {request_id, std::move(response)};
  follows_ = Follows::kNothing;
  SettleAll();
  if (follows && run_->interaction() != running && !FinishIfEnded()) return Resume();
  if (running.empty() || hears()) return AnswerLoad();
  Attach(running);
}

// Shows the history. Returns the running interaction, of which only the user's message is shown.
std::string Session::Replay(const Json& chat) {
  for (const Json& interaction : MemberOf(chat, "interactions")) {
    const std::string id = TextMember(interaction, "id");
    updates_.Begin(id);
    if (const std::string said = TextMember(interaction, "user_message"); !said.empty()) {
      Update(Updates::UserMessage(id, said));
    }
    if (IsRunning(TextMember(interaction, "status"))) return id;
    for (const Json& each : MemberOf(interaction, "agent_events")) {
      const auto event = ReceivedEvent(each);
      if (!event || std::holds_alternative<event::Retry>(event->payload) ||
          std::holds_alternative<event::LoopDetected>(event->payload)) {
        continue;  // these matter only while they happen
      }
      Show(updates_.Take(*event));
    }
    Show(updates_.Flush(/*all=*/true));
  }
  return "";
}

void Session::FollowRun() {
  if (follows_ != Follows::kNothing) {  // the client has seen the run so far
    if (hears()) OpenEditor();
    return AskAgain();
  }
  const auto chat = Summary();
  const std::string running = chat ? TextMember(RunningIn(*chat), "id") : "";
  if (running.empty()) return;
  updates_.Begin(running);
  Attach(running);
}

Result<Json> Session::Summary() {
  if (!exists_) return Json::object();
  return link_.Call("GET", path_ + "?limit=1&state=none");
}

// Has the server make the chat in its folder, if it has not.
Result<void> Session::Create() {
  if (exists_) return {};
  Json body = {{"id", chat_}};
  if (!workspace_.empty()) body["workspace"] = workspace_;
  TRY(link_.Call("POST", "/chats", body));
  exists_ = true;
  return {};
}

// The members of requests that start a run: this client's mode, and its model unless the chat has one of its own.
Json Session::RunOptions() const {
  Json options = link_.RunOptions(wanted_model_);
  if (wanted_model_.empty()) options.erase("model");
  return options;
}

Result<void> Session::Change(const Json& settings) {
  TRY(Create());
  TRY(link_.Call("PATCH", path_, settings));
  if (settings.contains("model")) wanted_model_.clear();
  return {};
}

// --- its end -----------------------------------------------------------------------------------------------------

void Session::CancelRun() {
  if (!run_ || run_->interaction().empty()) return;
  static_cast<void>(link_.Call("POST", run_->path() + "/cancel", Json::object()));  // the outcome arrives as an event
}

void Session::Cancel() {
  if (!prompt_ && !hears() && open_.empty()) return;
  cancel_wanted_ = true;
  if (follows_ == Follows::kLost) return AnswerPrompt("cancelled");  // the run is cancelled when the server is back
  CancelRun();
}

bool Session::CancelRequest(const Json& request_id) {
  if (prompt_ != request_id) return false;
  Cancel();
  return true;
}

void Session::Close() {
  if (prompt_) {
    Cancel();
    AwaitEnd();  // after the answer the client may open the session again and prompt
    AnswerPrompt("cancelled");
  }
  AnswerLoad();
  SettleAll();
  run_.reset();
  follows_ = Follows::kNothing;
  CloseEditor();
}

// --- a run's questions -------------------------------------------------------------------------------------------

Session::OpenQuestion* Session::FindQuestion(const std::string& id) {
  const auto found =
      std::ranges::find_if(open_, [&](const OpenQuestion& each) { return QuestionId(each.asked) == id; });
  return found == open_.end() ? nullptr : &*found;
}

// Removes a question that needs no answer any more.
void Session::Settle(const std::string& id) {
  const OpenQuestion* const question = FindQuestion(id);
  if (question == nullptr) return;
  if (question->request != 0) client_.Withdraw(question->request);
  std::erase_if(open_, [&](const OpenQuestion& each) { return QuestionId(each.asked) == id; });
}

void Session::SettleAll() {
  while (!open_.empty()) Settle(std::string(QuestionId(open_.front().asked)));
}

// For a client that opens the session again, because it may have forgotten its questions.
void Session::AskAgain() {
  for (const OpenQuestion& question : std::exchange(open_, {})) {
    if (question.request != 0) client_.Withdraw(question.request);
    Ask(question.asked);
  }
}

// Removes questions that the run no longer waits for, because any client may answer them.
void Session::KeepOpen() {
  std::vector<std::string> gone;
  for (const OpenQuestion& question : open_) {
    if (!Has(run_->state().open, QuestionId(question.asked))) gone.push_back(QuestionId(question.asked));
  }
  for (const std::string& id : gone) Settle(id);
}

void Session::Ask(const PendingQuestion& question) {
  const auto* const approval = std::get_if<PendingApproval>(&question);
  approval != nullptr ? LookAtChange(*approval) : AskInput(std::get<PendingInput>(question));
}

// Shows the call's change to a file with the question: to the file on the disk, or to the client's unsaved text.
void Session::LookAtChange(const PendingApproval& question) {
  const event::ApprovalRequired& asked = question.request;
  const std::string &tool = asked.tool_name, &id = asked.approval_id;
  updates_.Know(asked);
  Json change = nullptr;
  if (tool == "write_file" || tool == "edit_file" || tool == "apply_patch" || tool == "delete_file") {
    if (auto told = link_.server().Call("GET", "/approvals/" + id + "/change")) change = *std::move(told);
  }
  if (MemberOf(change, "path").is_string()) {
    updates_.SetDiffs(asked.call_id, change);
  }
  const bool may_be_unsaved = abilities_.reads_files && (tool == "write_file" || tool == "edit_file");
  const std::string path = may_be_unsaved && FindQuestion(id) == nullptr ? PathOf(asked, workspace_) : "";
  if (path.empty()) return AskPermission(question);
  const int request =
      client_.Ask("fs/read_text_file", {{"sessionId", chat_}, {"path", path}},
                  [this, question, change](const Json& response) { ShowChangeInEditor(question, change, response); });
  open_.push_back({.asked = question, .request = request});
}

void Session::ShowChangeInEditor(const PendingApproval& question, const Json& on_disk, const Json& response) {
  const event::ApprovalRequired& asked = question.request;
  const std::string& id = asked.approval_id;
  if (FindQuestion(id) == nullptr) return;  // it was answered meanwhile
  std::erase_if(open_, [&](const OpenQuestion& each) { return QuestionId(each.asked) == id; });
  const Json& content = MemberOf(MemberOf(response, "result"), "content");
  const auto given = ParseJson(asked.tool_input);
  if (given && content.is_string() && content != MemberOf(on_disk, "before")) {
    const std::string before = content.get<std::string>();
    if (const auto after = ChangedText(asked.tool_name, *given, before)) {
      updates_.SetDiff(asked.call_id, TextMember(*given, "path"), before, *after);
    }
  }
  AskPermission(question);
}

void Session::AskPermission(const PendingApproval& question) {
  const event::ApprovalRequired& asked = question.request;
  const std::string& id = asked.approval_id;
  Show(updates_.Take({.payload = asked}));
  if (FindQuestion(id) != nullptr) return;
  const auto answered = [this, id](const Json& response) {
    OpenQuestion* const open = FindQuestion(id);
    if (open == nullptr) return;
    open->request = 0;
    const Json& outcome = MemberOf(MemberOf(response, "result"), "outcome");
    const std::string said = TextMember(outcome, "outcome");
    if (said == "cancelled") return Cancel();  // the client's word for the end of the turn
    const auto body = said == "selected" ? ApprovalAnswer(std::get<PendingApproval>(open->asked).request,
                                                          TextMember(outcome, "optionId"))
                                         : std::nullopt;
    body ? GiveAnswer(*open, *body) : PutToPage(*open);
  };
  Json call = updates_.DescribeCall(asked.call_id);
  if (asked.tool_name == kNetworkTool) call["title"] = CallLabel(asked.tool_name, asked.tool_input);
  const int request = client_.Ask(
      "session/request_permission",
      {{"sessionId", chat_}, {"toolCall", std::move(call)}, {"options", PermissionOptions(asked)}}, answered);
  open_.push_back({.asked = question, .request = request});
}

void Session::AskInput(const PendingInput& input) {
  const event::InputRequired& asked = input.request;
  const std::string& id = asked.request_id;
  if (FindQuestion(id) != nullptr) return;
  OpenQuestion question{.asked = input};
  const std::string call = updates_.CallId(asked.call_id);
  if (auto form = Elicitation(asked, abilities_.forms)) {
    (*form)["sessionId"] = chat_;
    (*form)["toolCallId"] = call;
    question.request = client_.Ask("elicitation/create", *std::move(form), [this, id](const Json& response) {
      OpenQuestion* const open = FindQuestion(id);
      if (open == nullptr) return;
      open->request = 0;
      const Json& result = MemberOf(response, "result");
      result.is_object() ? GiveAnswer(*open, InputAnswer(std::get<PendingInput>(open->asked).request, result))
                         : PutToPage(*open);
    });
  } else if (Json choices = ChoiceOptions(asked); !choices.empty()) {
    Json shown = {
        {"toolCallId", call}, {"title", VisibleLine(asked.question)}, {"kind", "other"}, {"status", "pending"}};
    if (asked.url) {
      shown["content"] =
          Json::array({{{"type", "content"}, {"content", {{"type", "text"}, {"text", VisibleLine(*asked.url)}}}}});
    }
    question.request = client_.Ask(
        "session/request_permission",
        {{"sessionId", chat_}, {"toolCall", std::move(shown)}, {"options", std::move(choices)}},
        [this, id](const Json& response) {
          OpenQuestion* const open = FindQuestion(id);
          if (open == nullptr) return;
          open->request = 0;
          const Json& outcome = MemberOf(MemberOf(response, "result"), "outcome");
          if (TextMember(outcome, "outcome") == "cancelled") return Cancel();
          const auto body = ChoiceAnswer(std::get<PendingInput>(open->asked).request, TextMember(outcome, "optionId"));
          body ? GiveAnswer(*open, *body) : PutToPage(*open);
        });
  } else {
    // Ends the turn although the run waits, because users can only write between turns.
    Say(QuestionText(asked));
    AnswerPrompt("end_turn");
  }
  open_.push_back(std::move(question));
}

// The client gave no usable answer. The run still waits, so tells the user where to answer.
void Session::PutToPage(const OpenQuestion& question) {
  if (const auto* const input = std::get_if<PendingInput>(&question.asked)) {
    Say(QuestionText(input->request));
    return AnswerPrompt("end_turn");
  }
  const auto& asked = std::get<PendingApproval>(question.asked).request;
  Say("(`" + CallLabel(asked.tool_name, asked.tool_input) + "` waits for an approval; answer it at " +
      link_.server().url() + "/ or with `reprise approvals`)");
}

void Session::GiveAnswer(const OpenQuestion& question, const Json& body) {
  const PendingQuestion asked = question.asked;
  const AnswerOutcome given = reprise::GiveAnswer(link_, asked, body);
  if (given.is_settled()) {  // the run says what becomes of it
    run_->state().Settle(QuestionId(asked));
    std::erase_if(open_, [&](const OpenQuestion& each) { return QuestionId(each.asked) == QuestionId(asked); });
    return;
  }
  Say("(the answer was not taken: " + VisibleLine(given.why) + ")");
  PutToPage({.asked = asked});
}

// --- the run -----------------------------------------------------------------------------------------------------

int Session::TimeoutMs() const {
  if (follows_ == Follows::kLost) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next_try_ - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(0, left + 1));
  }
  return hears() && updates_.HoldsOutput() ? static_cast<int>(kOutputStep.count()) : -1;
}

void Session::Proceed() {
  if (follows_ == Follows::kLost && Clock::now() >= next_try_) LoseServer();
  ServeEditor();
  ServeTools();
  if (!hears()) return;
  run_->Receive();
  while (hears()) {
    const auto heard = run_->Next();
    if (!heard) break;
    Hear(*heard);
  }
  if (!hears()) return;
  Show(updates_.Flush(/*all=*/false));
  if (run_->ended()) Ended();
}

void Session::Hear(const RunStream::Heard& heard) {
  has_heard_ = true;
  if (heard.event) Hear(*heard.event);
  KeepOpen();
  if (heard.name == "stream_live") AnswerLoad();
}

void Session::Hear(const AgentEvent& event) {
  // False if the question was answered before its event arrived here.
  const auto ask = [&](const std::string& id) {
    for (const PendingQuestion& each : run_->state().open) {
      if (QuestionId(each) == id) return Ask(PendingQuestion(each)), true;
    }
    return false;
  };
  const auto* const asked = std::get_if<event::ApprovalRequired>(&event.payload);
  if (asked != nullptr && ask(asked->approval_id)) return;
  Show(updates_.Take(event));
  if (const auto* const started = std::get_if<event::InteractionStarted>(&event.payload)) {
    exists_ = true;
    updates_.Begin(started->interaction_id);
    if (cancel_wanted_) CancelRun();
  } else if (const auto* const input = std::get_if<event::InputRequired>(&event.payload)) {
    ask(input->request_id);
  } else if (const auto* const usage = std::get_if<event::Usage>(&event.payload)) {
    TellUsage(usage->tokens);
  }
}

// Reports how full the model's context window is.
void Session::TellUsage(const TokenUsage& usage) {
  const auto number = [](const Json& value) { return value.is_number_integer() ? value.get<std::int64_t>() : 0; };
  for (const Json& model : MemberOf(link_.Models(), "models")) {
    const std::int64_t window = number(MemberOf(model, "context_window"));
    if (TextMember(model, "name") != run_->state().model || window <= 0) continue;
    Update({{"sessionUpdate", "usage_update"}, {"used", usage.input_tokens + usage.output_tokens}, {"size", window}});
  }
}

// The stream has ended, with the run or because of an error.
void Session::Ended() {
  const Result<void> ended = *run_->ended();
  follows_ = Follows::kNothing;
  if (run_->is_complete()) return Finish();
  // A stream without further events belongs to a run that had ended before.
  if (ended && run_->is_attached() && FinishIfEnded()) return;
  if (ended || HowLost(ended.error()) != Loss::kNone) {
    if (std::exchange(has_heard_, false)) lost_at_ = Clock::now();
    next_try_ = Clock::now() + kFirstTry;
    was_lost_ = true;
    follows_ = Follows::kLost;
    if (cancel_wanted_) AnswerPrompt("cancelled");  // as in Cancel
    return;
  }
  Show(updates_.Flush(/*all=*/true));
  SettleAll();
  AnswerLoad();
  RefusePrompt(rpc::ErrorObject(ended.error()));
}

// True if the run has ended while its stream was not followed; then finishes it.
bool Session::FinishIfEnded() {
  const auto interaction = link_.Call("GET", run_->path());
  const auto status = ParseInteractionStatus(interaction ? TextMember(*interaction, "status") : "");
  if (!status || !IsFinished(*status)) return false;
  const Json& error = MemberOf(*interaction, "error");
  run_->state().status = status;
  run_->state().failure = {.code = TextMember(error, "code"), .message = TextMember(error, "message")};
  Finish();
  return true;
}

// Waits briefly for the end of a cancelled run, so that the chat is free. Its last events are not shown.
void Session::AwaitEnd() {
  const auto until = Clock::now() + kRunEnds;
  while (hears() && !run_->ended()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{run_->descriptor(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) < 0) return;
    run_->Receive();
    while (const auto heard = run_->Next()) {
      const bool begins = heard->event && std::holds_alternative<event::InteractionStarted>(heard->event->payload);
      if (begins) Hear(*heard);  // it can be cancelled only now
    }
  }
  if (!hears()) return;
  SettleAll();
  run_.reset();
  follows_ = Follows::kNothing;
}

// Searches for the lost server, and gives up after kGivenUp.
void Session::LoseServer() {
  const auto now = Clock::now();
  const bool is_given_up = now - lost_at_ > kGivenUp;
  const auto found = link_.FindAgain(/*may_start=*/now - lost_at_ > kComesBack);
  if (!found && !is_given_up) {
    next_try_ = now + kBetweenTries;
    return;
  }
  if (!found) {
    follows_ = Follows::kNothing;
    SettleAll();
    AnswerLoad();
    return RefusePrompt(rpc::ErrorObject(
        rpc::kInternalError,
        "the server has ended and did not come back: " + found.error().message + "; what was said until then is kept",
        "connection_failed"));
  }
  if (cancel_wanted_) CancelRun();
  Resume();
}

void Session::Finish() {
  const RunState state = run_->state();
  const bool has_failed = state.status == InteractionStatus::kFailed;
  const std::string& code = state.failure.code;
  Show(updates_.Flush(/*all=*/true));
  SettleAll();
  AnswerLoad();
  // The server ended during the run, so the run is resumed, once.
  if (prompt_ && has_failed && code == "interrupted" && was_lost_ && !has_resumed_ && !cancel_wanted_) {
    Begin(run_->path() + "/resume", RunOptions());
    has_resumed_ = true;
    return;
  }
  if (std::exchange(is_new_, false)) {
    const auto chat = Summary();
    if (const std::string title = chat ? TextMember(*chat, "title") : ""; !title.empty()) {
      Update({{"sessionUpdate", "session_info_update"}, {"title", title}});
    }
  }
  if (has_failed && code == "max_rounds") return AnswerPrompt("max_turn_requests");
  if (has_failed && !cancel_wanted_) {
    return RefusePrompt(rpc::ErrorObject(rpc::kInternalError, state.failure.message, code));
  }
  AnswerPrompt(has_failed ? "cancelled"
                          : StopReason(state.status.value_or(InteractionStatus::kCompleted), state.answer.reason));
}

}  // namespace reprise::acp
