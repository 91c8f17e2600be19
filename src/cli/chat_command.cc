#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "app/keys.h"
#include "app/local_models.h"
#include "app/options.h"
#include "app/trust.h"
#include "base/json.h"
#include "base/path.h"
#include "base/private_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/answers.h"
#include "client/archive/chat_reader.h"
#include "client/pipe_conversation.h"
#include "client/run_stream.h"
#include "client/server_access.h"
#include "client/server_link.h"
#include "client/start_line.h"
#include "client/terminal_client.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "terminal/console.h"
#include "terminal/key_table.h"
#include "terminal/run_text.h"
#include "terminal/terminal_input.h"

namespace reprise {
namespace {

// Prints the answer, and warnings about the run on standard error.
void TellAll(const RunState& state, const std::string& chat, bool has_cancelled, bool json) {
  const std::string& text = state.answer.content;
  const bool has_answer = state.status == InteractionStatus::kCompleted || !text.empty();
  if (has_answer && !json) {
    Print(Indented(text, "") + "\n");
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) Warn("the answer is empty");
    if (!state.answer.reason.empty()) Warn("the answer was cut off: " + VisibleLine(state.answer.reason));
  }
  if (!state.failure.message.empty()) {
    Warn(VisibleLine(state.failure.message) + " (" + NextStep(state.failure.code, state.model) +
         ", in `reprise --chat " + chat + "`)");
  }
  if (state.cancelled) {
    Warn(has_cancelled ? "cancelled" : "the run was cancelled: " + VisibleLine(state.cancelled->reason));
  }
}

// Says how to answer the question, which stays open.
int TellQuestion(const PendingQuestion& question, const std::string& chat) {
  const std::string needed = std::holds_alternative<PendingApproval>(question) ? "an approval" : "an answer";
  Warn(VisibleLine(needed + " is needed: " + AskedBy(question)) + " (`reprise --chat " + chat + "` asks you)");
  return kExitFailure;
}

// Says why the server refused the message.
int TellRefusal(const Error& error, const std::string& chat, std::size_t message_bytes) {
  if (error.Is(Reason::kBusy)) {
    Warn("chat " + chat + " is running, or waits for you: `reprise --chat " + chat + "` shows it");
  } else if (error.Is(Reason::kTooLarge)) {
    Warn("the message has " + Grouped(message_bytes) + " bytes: " + error.message +
         "; write it to a file in the workspace, and name the file in the message");
  } else {
    return Complain(error);
  }
  return kExitFailure;
}

// Sends one message and prints only the answer's text, or with `json` every event, one a line. Returns the exit
// status: failure unless the interaction is COMPLETED. Does not wait for an approval or a question: that stays open,
// and a warning says how to answer it. Ctrl-C cancels the run. Fails if the chat works in another folder. With --rm the
// chat of a turn that has ended goes to the trash.
Exited RunOneShot(ServerLink& link, Interrupts& interrupts, const ChatId& chat, const std::string& typed,
                  const CommandLine& line) {
  const bool json = line.json;
  ServerClient& server = link.server();
  // "/NAME" is a command of the folder if there is one; else the message is sent as it is.
  const auto expanded = ExpandFolderCommand(link, FolderQuery(link), ParseTyped(typed));
  if (!expanded) return Complain(expanded.error());
  const std::string& message = *expanded ? (*expanded)->message : typed;
  // A script may be gone before the answer comes. Its run still finishes, and an open question stays open.
  Json body = link.RunOptions(*expanded ? (*expanded)->model : std::string());
  body["user_message"] = message;
  body["on_disconnect"] = "continue";
  if (!link.folder().empty()) body["workspace"] = link.folder();  // refused if the chat works elsewhere
  RunStream run(server, chat.str());
  run.Start("/chats/" + chat.str() + "/interactions", std::move(body));
  const RunState& state = run.state();
  for (bool interrupted = false, cancelled = false;;) {
    std::array<pollfd, 2> ready = {pollfd{run.descriptor(), POLLIN, 0}, pollfd{interrupts.descriptor(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return kExitFailure;
    if (interrupts.Take() && std::exchange(interrupted, true)) return kExitFailure;  // twice: do not wait
    run.Receive();
    while (const auto heard = run.Next()) {
      if (json) PrintDocument(heard->data);
    }
    const auto& ended = run.ended();
    if (run.is_complete() || (ended && *ended)) {
      TellAll(state, chat.str(), cancelled, json);
      const bool is_told = run.is_complete() || state.cancelled || !state.failure.message.empty();
      if (!is_told) Warn("the server is stopping");
      if (line.removes_chat && is_told) TRY(server.Call("DELETE", "/chats/" + chat.str()));
      return state.status == InteractionStatus::kCompleted ? kExitOk : kExitFailure;
    }
    if (ended) return TellRefusal(ended->error(), chat.str(), message.size());
    if (!state.open.empty()) return FlushOutput(), TellQuestion(state.open.front(), chat.str());
    if (interrupted && !run.interaction().empty() && !std::exchange(cancelled, true)) {
      if (auto done = server.Call("POST", run.path() + "/cancel"); !done) return Complain(done.error());
    }
  }
}

// Shown once, when the first key was made: how to keep the chats readable, and where a model comes from.
void TellOfFirstStart(const Options& options, const Environment& environment) {
  if (!options.plain) {
    Print("copy " + VisibleLine(Resolved(KeyFileOf(options)).string()) +
          " to a safe place: without this key nobody can read the chats in " +
          VisibleLine(Resolved(options.data_dir).string()) + "\n");
  }
  if (options.model == "offline") {
    Print(
        "this model is a demonstration: say demo; OPENAI_API_KEY, ANTHROPIC_API_KEY or a server of your own gives a "
        "real one\n");
    for (const LocalModelServer& server : FindLocalModels(options, environment)) {
      Print(VisibleLine(OfferOf(server, options, environment)) + "\n");
    }
  }
}

Result<std::string> AllOfStandardInput() {
  constexpr std::size_t kMost = 16 << 20;
  std::string text;
  std::array<char, 65536> bytes;
  while (const std::size_t size = std::fread(bytes.data(), 1, bytes.size(), stdin)) {
    text.append(bytes.data(), size);
    if (text.size() > kMost) return Fail(ErrorCode::kTooLarge, "standard input has more than 16 MiB");
  }
  if (std::ferror(stdin) != 0) return Fail(ErrorCode::kIo, "standard input cannot be read");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// A text that can be an id may be that of a new chat. Only the beginning of an id made by Reprise surely is none.
Result<ChatId> ChatNamed(const std::string& name, ServerClient& server) {
  auto chat = ChatId::Parse(name);
  if (chat && !name.starts_with("chat_")) return chat;
  auto found = FindChat(name, NamesAt(server));
  return !found && found.error().code == ErrorCode::kNotFound ? chat : found;
}

// With --continue the newest chat of the client's folder.
Result<ChatId> ChooseChat(const CommandLine& line, ServerLink& link) {
  if (!line.argument.empty()) return ChatNamed(line.argument, link.server());
  if (!line.newest_chat) return ChatId::Random();
  std::optional<std::string> newest;
  TRY(ForEachChat([&](const std::string& path) { return link.server().Call("GET", path); },
                  [&](const Json& chat) {
                    if (!chat.contains("error") && link.WorksHere(chat)) newest = TextMember(chat, "id");
                    return !newest;
                  }));
  return newest ? ChatId::Parse(*newest) : ChatId::Random();
}

void TellOfBeginning(ServerLink& link, const ChatId& chat, const Environment& environment) {
  const auto answer = link.server().Call("GET", "/chats/" + chat.str() + "?limit=1");
  const ConversationStart beginning{.chat = chat.str(),
                                    .known = answer ? &*answer : nullptr,
                                    .model = link.model(),
                                    .home = environment("HOME").value_or(""),
                                    .names_chat = true};
  Print(StartLine(link, beginning, /*columns=*/0, Style(Colour::kNever)) + "\n");
}

// terminal.json beside the user's configuration; empty if that has no place.
std::string SettingsFileOf(const Environment& environment) {
  const auto folder = ConfigFolder(environment);
  return folder ? *folder + "/terminal.json" : std::string();
}

// The usual ones if there is no file.
Result<TerminalSettings> ReadTerminalSettings(const std::string& path) {
  constexpr std::size_t kMost = 64 << 10;
  std::error_code unknown;
  if (path.empty() || !std::filesystem::exists(path, unknown)) return TerminalSettings();
  const auto text = ReadSmallFile(path, kMost);
  if (!text) return Fail(text.error());
  auto settings = ParseTerminalSettings(*text);
  if (settings) return settings;
  return Fail(ErrorCode::kInvalidArgument, path + ": " + settings.error().message);
}

}  // namespace

Exited RunChat(const CommandLine& line, const Environment& environment) {
  if (!line.argument.empty() && line.newest_chat) return Misused("--continue and a chat do not go together");
  if (line.removes_chat && (line.newest_chat || !line.argument.empty())) {
    return Misused("--rm removes only a new chat; `reprise rm` removes others");
  }
  const bool input_is_terminal = ::isatty(STDIN_FILENO) != 0, output_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const bool is_one_shot = !line.prompt.empty() || (line.bare && !input_is_terminal);
  if (line.removes_chat && !is_one_shot) return Misused("--rm goes with -p");
  const std::string opening = line.opening.value_or("");
  if (line.opening && opening.find_first_not_of(" \t\r\n") == std::string::npos) return Misused("the message is empty");
  std::string message = line.prompt + opening;  // at most one of them
  if (is_one_shot && !input_is_terminal) {
    auto given = TRY(AllOfStandardInput());
    message += (message.empty() || given.empty() ? "" : "\n\n") + given;
    if (message.empty()) return Misused("a command is needed, or a message (reprise --help says more)");
  }
  if (is_one_shot && message.find_first_not_of(" \t\r\n") == std::string::npos) return Misused("the message is empty");
  if (!IsUtf8(message)) return Misused("the message is not UTF-8");
  if (line.bare && !is_one_shot && !output_is_terminal) {
    return Misused("a conversation needs a terminal; -p TEXT sends one message and prints the answer");
  }

  const auto named = TRY(OfUse(NamedServer(line.url, environment)));
  ServerLink link(line.flags, environment, named, /*restarts=*/true);
  TRY(OfUse(link.Check()));
  if (!named) {
    TRY(RequireHomeConsent(link.options(), environment, /*ask=*/!is_one_shot));
    for (const std::string& note : NotesOf(link.options(), environment)) Warn(VisibleLine(note));
  }
  std::error_code unknown;
  const bool is_first_start =
      !named && !link.options().plain && !std::filesystem::exists(KeyFileOf(link.options()), unknown);
  TRY(link.Find({}));

  // Exactly one of the two, before the transport's thread.
  std::optional<Interrupts> interrupts;
  std::optional<TerminalInput> input;
  is_one_shot ? void(interrupts.emplace()) : void(input.emplace());
  TRY(link.Reach({}));
  const auto chat = TRY(OfUse(ChooseChat(line, link)));

  if (is_one_shot) return RunOneShot(link, *interrupts, chat, message, line);
  if (!line.json && is_first_start && output_is_terminal) TellOfFirstStart(link.options(), environment);
  if (line.json || !input->is_terminal() || !output_is_terminal) {
    if (!line.json) TellOfBeginning(link, chat, environment);
    return RunPipeConversation(link, *input, chat, link.model(), line.json, opening);
  }
  const std::string settings_file = SettingsFileOf(environment);
  const auto settings = TRY(OfUse(ReadTerminalSettings(settings_file)));
  const bool has_colour = DecideColour(line.colour, environment, output_is_terminal) == Colour::kAlways;
  TerminalClient client({.link = link,
                         .input = *input,
                         .style = Style(has_colour ? settings.colour : Colour::kNever, settings.theme),
                         .chat = chat,
                         .opening = opening,
                         .model = link.model(),
                         .leaving_advice = "reprise chat",
                         .home = environment("HOME").value_or(""),
                         .settings = settings,
                         .settings_file = settings_file});
  client.Run();
  return kExitOk;
}

}  // namespace reprise
