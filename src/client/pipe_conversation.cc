#include "client/pipe_conversation.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/text.h"
#include "terminal/console.h"
#include "terminal/file_text.h"
#include "terminal/question_text.h"

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

// Nothing goes on while a message is typed.
const TerminalInput::Meanwhile kNothing = {
    .descriptors = [] { return std::vector<int>(); }, .timeout_ms = [] { return -1; }, .proceed = [] { return false; }};

bool IsRefusal(const Error& error) { return !error.reason.empty(); }

}  // namespace

int PipeConversation::Run() {
  ShowWhatRuns(/*at_start=*/true);
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

void PipeConversation::Show(std::string_view text) {
  Print(text);
  std::fflush(stdout);
}

void PipeConversation::Ask(const std::string& text) {
  if (!json_) return Show(text);
  std::fputs(text.c_str(), stderr);
}

void PipeConversation::Failed(const Error& error) { status_ = Complain(error); }

void PipeConversation::Obey(const std::string& line) {
  const std::string word = line.substr(0, line.find_first_of(" \n"));
  std::string rest = word.size() == line.size() ? "" : line.substr(word.size() + 1);
  if (line.starts_with("//")) return Say(line.substr(1));
  // No command has a further slash in its name: a path.
  if (!line.starts_with("/") || word.find('/', 1) != std::string::npos) return Say(line);
  if (word == "/edit") return rest.empty() ? Warn("/edit TEXT needs the text to say instead") : Edit(rest);
  if (word == "/queue") {
    if (rest.empty()) return Warn("/queue TEXT needs the text to say");
    return Exchange(path_ + "/interactions", {{"user_message", rest}, {"if_running", "queue"}});
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
  Warn("there is no such command" + DidYouMean(word, kChatCommands) + " (/help lists them; //... says it)");
}

void PipeConversation::Say(const std::string& message) {
  Exchange(path_ + "/interactions", {{"user_message", message}});
}

void PipeConversation::Undo(const Json& files) {
  const auto undone = server_.Call("POST", path_ + "/undo", files);
  if (!undone && undone.error().reason == "not_found") return Warn("there is nothing to undo yet: say something first");
  if (!undone && undone.error().reason == "nothing_to_undo") {
    return Failed(
        MakeError(ErrorCode::kConflict, "the first message cannot be taken back; /edit TEXT says another one instead"));
  }
  if (!undone) return Failed(undone.error());
  if (json_) return Show(DumpJson(*undone) + "\n");
  Show("back to " + VisibleLine(TextMember(*undone, "head")) + "\n");
}

void PipeConversation::Edit(const std::string& text) {
  const auto chat = server_.Call("GET", path_);
  if (!chat && chat.error().reason != "not_found") return Failed(chat.error());
  const std::string head = chat ? TextMember(*chat, "head") : "";
  if (head.empty()) return Warn("there is no message to edit yet: say something first");
  Exchange(path_ + "/interactions/" + head + "/edit", {{"new_user_message", text}});
}

void PipeConversation::History() {
  const auto chat = server_.Call("GET", path_);
  if (!chat && chat.error().reason == "not_found") return Warn("nothing was said in this chat yet");
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
        Show("  tool   " + VisibleLine(TextMember(event, "tool_name") + " " + TextMember(event, "tool_input")) + "\n");
      }
    }
  }
}

// --- what runs already -----------------------------------------------------------------------------------------
bool PipeConversation::ShowWhatRuns(bool at_start) {
  const auto chat = server_.Call("GET", path_);
  if (!chat) return false;
  for (const Json& interaction : MemberOf(*chat, "interactions")) {
    const std::string status = TextMember(interaction, "status"), id = TextMember(interaction, "id");
    if (status != "RUNNING" && !status.starts_with("WAITING")) continue;
    const std::string what = status == "RUNNING" ? " is running" : " waits for you";
    // The lines of a pipe were written for something else.
    if (!input_.is_terminal() && at_start) {
      Warn(id + what + " in this chat (/follow shows it)");
      return true;
    }
    Ask(VisibleLine(id) + what + " (Ctrl-C cancels it)\n  you    " +
        Indented(TextMember(interaction, "user_message"), "         ") + "\n");
    interaction_ = id;
    Follow(*server_.Stream("GET", path_ + "/interactions/" + id + "/events", Json(nullptr)), /*live=*/false);
    return true;
  }
  return false;
}

void PipeConversation::Approvals() {
  const auto waiting = server_.Call("GET", "/approvals");
  if (!waiting) return Failed(waiting.error());
  if (json_) return Show(DumpJson(*waiting) + "\n");
  std::size_t count = 0;
  for (const char* kind : {"approvals", "inputs"}) {
    const auto list = waiting->find(kind);
    if (list == waiting->end() || !list->is_array()) continue;
    for (const Json& asked : *list) {
      ++count;
      const std::string chat = TextMember(asked, "chat_id"), interaction = TextMember(asked, "interaction_id");
      Show(VisibleLine(chat + "/" + interaction) + "\n");
      const bool is_approval = std::string_view(kind) == "approvals";
      elsewhere_ = "/chats/" + chat + "/interactions/" + interaction;
      may_skip_ = true;
      open_.assign(1, {is_approval, TextMember(asked, is_approval ? "approval_id" : "request_id"), asked});
      while (!open_.empty() && !leaving_) AskFirst(nullptr);
      elsewhere_.clear();
      if (!std::exchange(may_skip_, false) || leaving_) return;
    }
  }
  if (count == 0) Show("nothing waits for you\n");
  if (count != 0) static_cast<void>(ShowWhatRuns(/*at_start=*/false));
}

// --- a run, from its first event to its last -------------------------------------------------------------------
void PipeConversation::Exchange(const std::string& path, Json body) {
  interaction_.clear();
  if (!model_.empty()) body["model"] = model_;
  Follow(*server_.Stream("POST", path, body), /*live=*/true);
}

void PipeConversation::Follow(ArrivingEvents& stream, bool live) {
  open_.clear();
  labels_.clear();
  complete_ = said_ = false;
  at_line_start_ = true;
  streamed_ = {};
  while (!leaving_) {
    stream.Receive();
    while (const auto event = stream.Next()) {
      if (event->name == "stream_live") live = true;
      Heard(event->name, event->data);
    }
    if (stream.ended()) break;
    if (live && !open_.empty()) {
      AskFirst(&stream);
    } else if (input_.WaitForOrInterrupt(stream.descriptor())) {
      Cancel();
    }
  }
  if (leaving_) return;
  EndText();
  if (const auto& ended = *stream.ended(); !ended) {
    if (ended.error().reason == "busy") {
      status_ = kExitFailure;
      return Warn("something runs in this chat already: /follow shows it, /queue TEXT says this when it has ended");
    }
    return Failed(ended.error());
  }
  if (complete_) return;
  status_ = kExitFailure;
  Warn("the server is stopping; open questions are kept, and asked again when it is back");
}

void PipeConversation::Cancel() {
  if (interaction_.empty()) return;
  open_.clear();
  if (auto done = server_.Call("POST", path_ + "/interactions/" + interaction_ + "/cancel"); !done) {
    Failed(done.error());
  }
}

void PipeConversation::Heard(const std::string& name, const Json& data) {
  if (name == "interaction_started") {
    interaction_ = TextMember(data, "interaction_id");
    for (const Json& file : data.value("attachments", Json::array())) Show(FileText(file) + "\n");
  }
  if (json_) {
    Show(DumpJson(data) + "\n");
  } else {
    Tell(name, data);
  }
  if (name == "approval_required") open_.push_back({true, TextMember(data, "approval_id"), data});
  if (name == "input_required") open_.push_back({false, TextMember(data, "request_id"), data});
  std::erase_if(open_, [&](const OpenQuestion& question) { return Settles(name, data, question.id); });
  if (name == "interaction_complete") {
    complete_ = true;
    if (TextMember(data, "status") != "COMPLETED") status_ = kExitFailure;
  }
}

void PipeConversation::Write(const std::string& text) {
  if (text.empty()) return;
  Show(text);
  at_line_start_ = text.ends_with('\n');
}

void PipeConversation::EndText() {
  if (json_) return;
  Write(streamed_.End());
  if (!std::exchange(at_line_start_, true)) Show("\n");
}

void PipeConversation::Tell(const std::string& name, const Json& data) {
  if (name == "text_delta") {
    said_ = true;
    return Write(streamed_.Add(TextMember(data, "content")));
  }
  if (name == "answer" || name == "message") {
    if (!std::exchange(said_, false)) Write(Indented(TextMember(data, "content"), ""));
    EndText();
    if (data.contains("truncated")) Show("(cut off: " + VisibleLine(TextMember(data, "reason")) + ")\n");
    return;
  }
  if (name == "approval_required") Label(TextMember(data, "call_id"), data);
  if (name == "tool_call") {
    EndText();
    Label(TextMember(data, "id"), data);
    Show("[" + VisibleLine(TextMember(data, "tool_name") + " " + TextMember(data, "tool_input")) + "]\n");
  } else if (name == "tool_result") {
    EndText();
    // Which of them, where one cannot tell by the line above.
    const auto label = labels_.find(TextMember(data, "id"));
    const bool alone = labels_.size() == 1;
    Show("  " + (label == labels_.end() || alone ? "" : label->second + ": ") +
         Shortened(VisibleLine(TextMember(data, "tool_output")), kShownResult) + "\n");
    for (const Json& file : data.value("files", Json::array())) Show("  " + FileText(file) + "\n");
  } else if (name == "usage") {
    labels_.clear();  // the calls of the next response follow
  } else if (name == "error") {
    EndText();
    Show("error: " + VisibleLine(TextMember(data, "message")) + "\n");
  } else if (name == "cancelled") {
    EndText();
    const std::string reason = TextMember(data, "reason");
    Show(reason == "server_stopping"               ? "(cancelled: the server is stopping)\n"
         : reason == "requested" || reason.empty() ? "(cancelled)\n"
                                                   : "(cancelled: " + VisibleLine(reason) + ")\n");
  } else if (name == "retry") {
    EndText();
    Show("(trying again: " + VisibleLine(TextMember(data, "message")) + ")\n");
  } else if (name == "queued") {
    Show("(queued)\n");
  }
}

void PipeConversation::Label(const std::string& call, const Json& data) {
  labels_[call] = CallLabel(TextMember(data, "tool_name"), TextMember(data, "tool_input"));
}

// --- questions -------------------------------------------------------------------------------------------------
void PipeConversation::AskFirst(ArrivingEvents* stream) {
  EndText();
  stream_ = stream;
  const OpenQuestion question = open_.front();
  question_ = question.id;
  // What becomes of it when it was answered, or cannot be.
  const bool settled = question.is_approval ? Approve(question.asked) : Respond(question.asked);
  if (settled) std::erase_if(open_, [&](const OpenQuestion& each) { return each.id == question.id; });
  stream_ = nullptr;
}

PipeConversation::Answered PipeConversation::Answer(const std::string& prompt, std::string& line) {
  const auto settled = [this] {
    const auto& events = stream_->received();
    return std::any_of(events.begin(), events.end(),
                       [this](const auto& event) { return Settles(event.name, event.data, question_); });
  };
  const auto withdrawn = [this, &settled] {
    if (stream_ == nullptr) return false;
    stream_->Receive();
    return stream_->ended().has_value() || settled();
  };
  if (!input_.is_terminal()) Ask(prompt);
  const TerminalInput::Meanwhile meanwhile = {
      .descriptors =
          [this] { return stream_ == nullptr ? std::vector<int>() : std::vector<int>{stream_->descriptor()}; },
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
      // Where only the connection is gone, the question may wait; what became of it is said next.
      Ask(settled() ? "\n(this needs no answer any more)\n" : "\n");
      return Answered::kWithdrawn;
    case TerminalInput::Came::kInterrupt:
      Ask("\n");
      if (stream_ != nullptr) Cancel();
      may_skip_ = false;  // a list is not gone on with
      return Answered::kCancelled;
    case TerminalInput::Came::kEnd:
      break;
  }
  Ask("\n");
  if (std::exchange(may_skip_, false)) return Answered::kCancelled;
  if (!input_.is_terminal()) return Answered::kNone;
  // The person goes; the question stays for whoever opens the chat next.
  Ask("(the question stays open: reprise chat " + path_.substr(path_.rfind('/') + 1) + " asks it again)\n");
  leaving_ = true;
  return Answered::kCancelled;
}

std::string PipeConversation::RunPath() const {
  return elsewhere_.empty() ? path_ + "/interactions/" + interaction_ : elsewhere_;
}

bool PipeConversation::Give(const std::string& route, const Json& body) {
  const auto given = server_.Call("POST", RunPath() + route, body);
  if (given) return true;
  if (given.error().reason == "stale") return Warn(given.error().message), true;  // the question follows
  if (!IsRefusal(given.error()) || IsNoLongerOpen(given.error())) return Failed(given.error()), true;
  Warn(given.error().message);
  return false;
}

bool PipeConversation::Approve(const Json& asked) {
  Json body = {{"approval_id", TextMember(asked, "approval_id")},
               {"approved", false},
               {"arguments_digest", TextMember(asked, "arguments_digest")}};
  bool whole = false;
  for (;;) {
    const ApprovalText shown = DescribeApproval(asked, whole);
    Ask(shown.text);
    std::string line;
    switch (Answer(std::string("allow? [y]es, [n]o, [a]lways in this chat, [e]dit the arguments") +
                       (shown.cut ? ", [s]how all" : "") + (may_skip_ ? ", [l]ater" : "") + ": ",
                   line)) {
      case Answered::kWithdrawn:
      case Answered::kCancelled:
        return true;
      case Answered::kNone:
        static_cast<void>(Give("/approve", body));
        return true;
      case Answered::kLine:
        break;
    }
    if (may_skip_ && (line == "l" || line == "later")) return true;
    if (line == "n" || line == "no") return Give("/approve", body);
    if (line == "a" || line == "always") body["scope"] = "chat";
    if (line == "e" || line == "edit") {
      std::string input = TextMember(asked, "tool_input_escaped");
      if (input.empty()) input = TextMember(asked, "tool_input");
      const auto answered = Answer("arguments: ", line);
      if (answered == Answered::kWithdrawn || answered == Answered::kCancelled) return true;
      if (answered == Answered::kNone) return static_cast<void>(Give("/approve", body)), true;
      const auto arguments = ParseJson(line);
      if (!arguments || !arguments->is_object()) {
        Warn("the arguments must be a JSON object, such as " + input);
        continue;
      }
      body["arguments"] = line;  // as it was typed
      line = "y";
    }
    if (line == "s" || line == "show") whole = true;
    if (line != "y" && line != "yes" && line != "a" && line != "always") continue;
    body["approved"] = true;
    return Give("/approve", body);
  }
}

bool PipeConversation::Respond(const Json& asked) {
  const std::string schema = TextMember(asked, "schema"), url = TextMember(asked, "url");
  Ask(VisibleText(TextMember(asked, "question"), "") + "\n");
  Json body = {{"request_id", TextMember(asked, "request_id")}};
  if (!url.empty() || !schema.empty()) {
    if (!url.empty()) Ask("  open: " + VisibleLine(url) + "\n");
    std::string line;
    do {
      const auto answered =
          Answer(std::string(url.empty() ? "fill in the form? " : "have you done that? ") + "[y]es, [n]o: ", line);
      if (answered == Answered::kWithdrawn || answered == Answered::kCancelled) return true;
      if (answered == Answered::kNone) line = "n";
    } while (line != "y" && line != "yes" && line != "n" && line != "no");
    if (line.starts_with("n")) {
      body["declined"] = true;
      return Give("/respond", body) || !input_.is_terminal();
    }
    if (schema.empty()) {
      body["response"] = "done";
      return Give("/respond", body);
    }
    auto object = FillIn(schema);
    if (!object) return true;
    body["response"] = *std::move(object);
    return Give("/respond", body);
  }
  if (const auto options = asked.find("options"); options != asked.end() && options->is_array()) {
    for (const Json& option : *options) {
      if (option.is_string()) Ask("  - " + VisibleLine(option.get<std::string>()) + "\n");
    }
  }
  std::string line;
  const auto answered = Answer("answer: ", line);
  if (answered == Answered::kWithdrawn || answered == Answered::kCancelled) return true;
  if (answered == Answered::kLine && !line.empty()) {
    body["response"] = line;
  } else {
    body["declined"] = true;
  }
  return Give("/respond", body) || answered == Answered::kNone;
}

std::optional<Json> PipeConversation::FillIn(const std::string& schema) {
  Json object = Json::object();
  std::string line;
  const std::vector<FormField> fields = FieldsOf(schema);
  if (fields.empty()) Ask("a JSON object of this schema: " + VisibleLine(schema) + "\n");
  while (fields.empty()) {
    if (Answer("object: ", line) != Answered::kLine) return Unanswered();
    if (auto given = ParseJson(line); given && given->is_object()) return *std::move(given);
    Warn("this must be a JSON object");
  }
  for (const FormField& field : fields) {
    Ask(VisibleLine(field.name) + ": " + field.hint + "\n");
    for (;;) {
      if (Answer(VisibleLine(field.name) + "> ", line) != Answered::kLine) return Unanswered();
      auto value = field.ParseLine(line);
      if (value) {
        if (*value) object[field.name] = **std::move(value);
        break;
      }
      Warn(value.error().message);
    }
  }
  return object;
}

std::optional<Json> PipeConversation::Unanswered() {
  if (!input_.is_terminal()) static_cast<void>(Give("/respond", {{"request_id", question_}, {"declined", true}}));
  return std::nullopt;
}

}  // namespace reprise
