#include "cli/chat_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/interrupts.h"
#include "cli/key_access.h"
#include "cli/one_shot.h"
#include "cli/own_server.h"
#include "cli/question_text.h"
#include "cli/search_command.h"
#include "cli/server_access.h"
#include "cli/server_client.h"
#include "cli/terminal_client.h"
#include "cli/terminal_input.h"
#include "cli/terminal_text.h"
#include "reprise/ids.h"

namespace reprise {
namespace {

constexpr std::size_t kShownResult = 200;  // characters

constexpr std::string_view kHelp =
    "/undo          take the last message back\n"
    "/edit TEXT     say TEXT instead of the last message\n"
    "/history       what was said so far\n"
    "/approvals     all that waits for an answer, in every chat\n"
    "/follow        show what runs in this chat, and answer what it asks\n"
    "/queue TEXT    say TEXT when what runs has ended\n"
    "/quit          leave (or end of input, Ctrl-D)\n"
    "//TEXT         a message that begins with /\n"
    "Ctrl-C         cancels what runs; at the prompt it clears the line, and leaves at the second time\n";

const std::vector<std::string> kChatCommands{"/undo",   "/edit",  "/history", "/approvals",
                                             "/follow", "/queue", "/quit",    "/help"};

// Nothing goes on while a message is typed.
const TerminalInput::Meanwhile kNothing = {
    .descriptor = [] { return -1; }, .timeout_ms = [] { return -1; }, .proceed = [] { return false; }};

bool IsRefusal(const Error& error) { return !error.reason.empty(); }

// A question that waits for its answer.
struct OpenQuestion {
  bool is_approval;
  std::string id;  // of the approval, or of the request
  Json asked;
};

class Conversation {
 public:
  Conversation(ServerClient& server, TerminalInput& input, const ChatId& chat, bool json)
      : server_(server), input_(input), path_("/chats/" + chat.str()), json_(json) {}

  int Run() {
    ShowWhatRuns(/*at_start=*/true);
    bool warned = false;
    std::string line;
    while (!leaving_) {
      if (!json_ && !input_.is_terminal()) Show("> ");
      line.clear();
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
        case TerminalInput::Came::kWithdrawn:
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
  void Show(std::string_view text) {
    Print(text);
    std::fflush(stdout);
  }
  // A question is not part of what --json prints.
  void Ask(const std::string& text) {
    if (!json_) return Show(text);
    std::fputs(text.c_str(), stderr);
  }
  void Failed(const Error& error) { status_ = Complain(error); }

  void Obey(const std::string& line) {
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
    if (line == "/undo") return Undo();
    if (line == "/approvals") return Approvals();
    if (line == "/follow") {
      if (!ShowWhatRuns(/*at_start=*/false)) Warn("nothing runs in this chat");
      return;
    }
    Warn("there is no such command" + DidYouMean(word, kChatCommands) + " (/help lists them; //... says it)");
  }

  void Say(const std::string& message) { Exchange(path_ + "/interactions", {{"user_message", message}}); }

  void Undo() {
    const auto undone = server_.Call("POST", path_ + "/undo");
    if (!undone && undone.error().reason == "not_found")
      return Warn("there is nothing to undo yet: say something first");
    if (!undone && undone.error().reason == "nothing_to_undo") {
      return Failed(MakeError(ErrorCode::kConflict,
                              "the first message cannot be taken back; /edit TEXT says another one instead"));
    }
    if (!undone) return Failed(undone.error());
    if (json_) return Show(DumpJson(*undone) + "\n");
    Show("back to " + VisibleLine(TextMember(*undone, "head")) + "\n");
  }

  void Edit(const std::string& text) {
    const auto chat = server_.Call("GET", path_);
    if (!chat && chat.error().reason != "not_found") return Failed(chat.error());
    const std::string head = chat ? TextMember(*chat, "head") : "";
    if (head.empty()) return Warn("there is no message to edit yet: say something first");
    Exchange(path_ + "/interactions/" + head + "/edit", {{"new_user_message", text}});
  }

  void History() {
    const auto chat = server_.Call("GET", path_);
    if (!chat && chat.error().reason == "not_found") return Warn("nothing was said in this chat yet");
    if (!chat) return Failed(chat.error());
    if (json_) return Show(DumpJson(*chat) + "\n");
    for (const Json& interaction : (*chat)["interactions"]) {
      Show(VisibleLine(TextMember(interaction, "id")) + "  " + VisibleLine(TextMember(interaction, "status")) +
           "\n  you    " + Indented(TextMember(interaction, "user_message"), "         ") + "\n");
      for (const Json& event : interaction["agent_events"]) {
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

  // --- what runs already -----------------------------------------------------------------------------------------
  // Shows an interaction of this chat that has not ended, to its end. False: there is none.
  bool ShowWhatRuns(bool at_start) {
    const auto chat = server_.Call("GET", path_);
    if (!chat || !chat->is_object() || !(*chat)["interactions"].is_array()) return false;
    for (const Json& interaction : (*chat)["interactions"]) {
      const std::string status = TextMember(interaction, "status"), id = TextMember(interaction, "id");
      if (status != "RUNNING" && !status.starts_with("WAITING")) continue;
      const std::string what = status == "RUNNING" ? " is running" : " waits for an answer";
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

  void Approvals() {
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
    if (count == 0) Show("nothing waits for an answer\n");
    if (count != 0) static_cast<void>(ShowWhatRuns(/*at_start=*/false));
  }

  // --- a run, from its first event to its last -------------------------------------------------------------------
  void Exchange(const std::string& path, const Json& body) {
    interaction_.clear();
    Follow(*server_.Stream("POST", path, body), /*live=*/true);
  }

  // `live`: nothing of it is a recording, whose questions may have been answered.
  void Follow(ArrivingEvents& stream, bool live) {
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
    Warn("the server is stopping; what waits for an answer is kept, and asked again when it is back");
  }

  void Cancel() {
    if (interaction_.empty()) return;
    open_.clear();
    if (auto done = server_.Call("POST", path_ + "/interactions/" + interaction_ + "/cancel"); !done) {
      Failed(done.error());
    }
  }

  void Heard(const std::string& name, const Json& data) {
    if (name == "interaction_started") interaction_ = TextMember(data, "interaction_id");
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

  void Tell(const std::string& name, const Json& data) {
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
      Show("(waits until what runs has ended)\n");
    }
  }

  void Label(const std::string& call, const Json& data) {
    labels_[call] = CallLabel(TextMember(data, "tool_name"), TextMember(data, "tool_input"));
  }

  // --- questions -------------------------------------------------------------------------------------------------
  enum class Answered { kLine, kNone, kWithdrawn, kCancelled };

  // Asks the question that has been open longest. `stream` may be null: nobody else's answer is noticed.
  void AskFirst(ArrivingEvents* stream) {
    EndText();
    stream_ = stream;
    const OpenQuestion question = open_.front();
    question_ = question.id;
    // What becomes of it when it was answered, or cannot be.
    const bool settled = question.is_approval ? Approve(question.asked) : Respond(question.asked);
    if (settled) std::erase_if(open_, [&](const OpenQuestion& each) { return each.id == question.id; });
    stream_ = nullptr;
  }

  // The next line, as the answer to `prompt`.
  Answered Answer(const std::string& prompt, std::string& line) {
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
        .descriptor = [this] { return stream_ == nullptr ? -1 : stream_->descriptor(); },
        .timeout_ms = [] { return -1; },
        .proceed = withdrawn};
    line.clear();
    switch (input_.ReadAnswer(prompt, meanwhile, line)) {
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

  std::string RunPath() const { return elsewhere_.empty() ? path_ + "/interactions/" + interaction_ : elsewhere_; }

  // True: the question is settled. False: it is to be asked again.
  bool Give(const std::string& route, const Json& body) {
    const auto given = server_.Call("POST", RunPath() + route, body);
    if (given) return true;
    if (given.error().reason == "stale") return Warn(given.error().message), true;  // the question follows
    if (!IsRefusal(given.error()) || IsNoLongerOpen(given.error())) return Failed(given.error()), true;
    Warn(given.error().message);
    return false;
  }

  bool Approve(const Json& asked) {
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

  bool Respond(const Json& asked) {
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

  // The object that a form wants, member by member. nullopt: the question is settled, or left open.
  std::optional<Json> FillIn(const std::string& schema) {
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

  // Of a pipe that has ended: nobody is going to answer.
  std::optional<Json> Unanswered() {
    if (!input_.is_terminal()) static_cast<void>(Give("/respond", {{"request_id", question_}, {"declined", true}}));
    return std::nullopt;
  }

  ServerClient& server_;
  TerminalInput& input_;
  const std::string path_;
  const bool json_;
  int status_ = kExitOk;
  bool leaving_ = false;

  // --- of the run that is shown
  std::string interaction_;
  std::vector<OpenQuestion> open_;
  std::map<std::string, std::string> labels_;  // call id -> what it is, of the calls of this round
  StreamedText streamed_;
  bool at_line_start_ = true;  // of the terminal, where text of the model ends
  bool said_ = false;          // the answer has been shown piece by piece
  bool complete_ = false;

  // --- of the question that is asked
  ArrivingEvents* stream_ = nullptr;
  std::string question_;
  std::string elsewhere_;  // the run's path, if it is another than that which is shown
  bool may_skip_ = false;
};

}  // namespace

namespace {

// One that is just starting or ending holds the folder for a moment.
constexpr std::chrono::milliseconds kBetweenTries{50}, kPatience{10'000};

// The server that uses the data folder, or one that is started for this.
Result<std::string> FindOrStart(const Options& options, const Flags& flags, const Environment& environment,
                                std::unique_ptr<OwnServer>& own) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const auto running = FindServer(options);
    Error refused;
    if (running && *running) {
      const auto client = ConnectTo(**running, options);
      if (!client) return Fail(client.error());
      const auto there = (*client)->Call("GET", "/healthz");
      if (there) return (*running)->url;
      refused = NotAnswering(there.error(), **client);
    } else if (running) {
      auto started = OwnServer::Start(flags, environment);
      if (started) {
        own = *std::move(started);
        return own->url();
      }
      refused = std::move(started.error());
      // Unless somebody else was quicker, trying again does not help.
      if (const auto other = FindServer(options); other && !*other) return Fail(std::move(refused));
    } else {
      if (running.error().reason != "store_locked") return Fail(running.error());
      refused = running.error();
    }
    if (std::chrono::steady_clock::now() > deadline) return Fail(std::move(refused));
    std::this_thread::sleep_for(kBetweenTries);
  }
}

// Said once, when there is a key for the first time: what a person has to know to keep their chats.
void TellOfFirstStart(const Options& options, const std::string& url) {
  const auto full = [](const std::string& path) {
    std::error_code failed;
    const auto absolute = std::filesystem::weakly_canonical(path, failed);
    return VisibleLine(failed ? path : absolute.string());
  };
  Print(
      "Reprise runs on this machine only.\n"
      "  chats      " +
      full(options.data_dir) + "\n" +
      (options.plain ? ""
                     : "  key        " + full(KeyFileOf(options)) +
                           "\n             copy it to a safe place: without it nobody can read the chats\n") +
      "  workspace  " + full(options.workspace) +
      " (what the agent works on)\n"
      "  server     " +
      url + "\n" +
      (options.model == "offline" ? "  model      offline, a demonstration: say demo\n"
                                    "             with OPENAI_API_KEY or ANTHROPIC_API_KEY set, a real one\n"
                                  : "  model      " + VisibleLine(options.model) + "\n"));
}

Result<std::string> AllOfStandardInput() {
  constexpr std::size_t kMost = 16 << 20;
  std::string text;
  std::array<char, 65536> bytes;
  while (const std::size_t size = std::fread(bytes.data(), 1, bytes.size(), stdin)) {
    text.append(bytes.data(), size);
    if (text.size() > kMost) return Fail(ErrorCode::kTooLarge, "standard input has more than 16 MiB");
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<ChatId> ChooseChat(const CommandLine& line, ServerClient& server) {
  if (!line.argument.empty()) return ChatId::Parse(line.argument);
  if (!line.newest_chat) return ChatId::Random();
  const auto list = server.Call("GET", "/chats?limit=1");
  if (!list) return Fail(list.error());
  for (const Json& chat : list->value("chats", Json::array())) {
    if (!chat.contains("error")) return ChatId::Parse(TextMember(chat, "id"));
  }
  return ChatId::Random();
}

}  // namespace

int RunChat(const CommandLine& line, const Environment& environment) {
  if (!line.argument.empty()) {
    if (const auto chat = ChatId::Parse(line.argument); !chat) return Misused(chat.error().message);
    if (line.newest_chat) return Misused("--continue and a chat's id do not go together");
  }
  const bool input_is_terminal = ::isatty(STDIN_FILENO) != 0, output_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const bool is_one_shot = !line.prompt.empty() || (line.bare && !input_is_terminal);
  std::string message = line.prompt;
  if (is_one_shot && !input_is_terminal) {
    auto given = AllOfStandardInput();
    if (!given) return Complain(given.error());
    message += (message.empty() || given->empty() ? "" : "\n\n") + *given;
    if (message.empty()) return Misused("a command is needed, or a message (reprise --help says more)");
  }
  if (line.bare && !is_one_shot && !output_is_terminal) {
    return Misused("a conversation needs a terminal; -p TEXT sends one message and prints the answer");
  }

  const auto named = NamedServer(line.url, environment);
  if (!named) return ComplainOfUse(named.error());
  Options options;
  bool is_first_start = false;
  std::unique_ptr<OwnServer> own;
  std::string url;
  if (*named) {
    url = (*named)->url;
    const auto file = line.flags.find("token-file");
    options.token_file = file != line.flags.end() ? file->second : environment("REPRISE_TOKEN_FILE").value_or("");
  } else {
    auto loaded = LoadOptions(line.flags, environment);
    if (!loaded) return ComplainOfUse(loaded.error());
    options = *std::move(loaded);
    std::error_code unknown;
    is_first_start = !options.plain && !std::filesystem::exists(KeyFileOf(options), unknown);
    auto found = FindOrStart(options, line.flags, environment, own);
    if (!found) return Complain(found.error());
    url = *std::move(found);
  }

  // One of the two, before the transport's thread.
  std::optional<Interrupts> interrupts;
  std::optional<TerminalInput> input;
  is_one_shot ? void(interrupts.emplace()) : void(input.emplace());
  const auto connected = ConnectTo({url}, options);
  if (!connected) return Complain(connected.error());
  ServerClient& server = **connected;
  if (auto there = server.Call("GET", "/healthz"); !there) return Complain(NotAnswering(there.error(), server));
  const auto chat = ChooseChat(line, server);
  if (!chat) return Complain(chat.error());
  const auto model = line.flags.find("model");
  const std::string chosen_model = model == line.flags.end() ? "" : model->second;

  if (is_one_shot) return RunOneShot(server, *interrupts, *chat, chosen_model, message, line.json);
  if (!line.json && is_first_start && output_is_terminal) TellOfFirstStart(options, url);
  if (!line.json) Print("chat " + chat->str() + ", /help lists the commands\n");
  if (line.json || !input->is_terminal() || !output_is_terminal || !input->can_move_cursor()) {
    return Conversation(server, *input, *chat, line.json).Run();
  }

  TerminalClient client({
      .server = server,
      .input = *input,
      .style = Style(DecideColour(line.colour, environment, output_is_terminal)),
      .chat = *chat,
      .model = chosen_model,
      .leaving_advice = "reprise chat",
      .search = *named ? std::function<int(const std::string&)>() : [&](const std::string& text) {
        CommandLine search = line;
        search.argument = text;
        search.limit = 50;
        return RunSearch(search, environment);
      },
      .find_server = *named ? std::function<Result<void>()>() : [&]() -> Result<void> {
        own.reset();
        auto found = FindOrStart(options, line.flags, environment, own);
        if (!found) return Fail(std::move(found.error()));
        server.SetUrl(*found);
        return {};
      }});
  return client.Run();
}

}  // namespace reprise
