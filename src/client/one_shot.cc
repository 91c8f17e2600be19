#include "client/one_shot.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/terminal_text.h"
#include "client/answers.h"
#include "client/run_stream.h"
#include "terminal/question_text.h"
#include "terminal/run_text.h"

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
  const auto* const approval = std::get_if<PendingApproval>(&question);
  const std::string what =
      approval != nullptr
          ? "an approval is needed: " + CallLabel(approval->request.tool_name, approval->request.tool_input)
          : "an answer is needed: " + std::get<PendingInput>(question).request.question;
  Warn(VisibleLine(what) + " (`reprise --chat " + chat + "` asks you)");
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

}  // namespace

int RunOneShot(ServerLink& link, Interrupts& interrupts, const ChatId& chat, const std::string& typed, bool json) {
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
      if (json) Print(DumpJson(heard->data) + "\n");
    }
    const auto& ended = run.ended();
    if (run.is_complete() || (ended && *ended)) {
      TellAll(state, chat.str(), cancelled, json);
      const bool is_told = run.is_complete() || state.cancelled || !state.failure.message.empty();
      if (!is_told) Warn("the server is stopping");
      return state.status == InteractionStatus::kCompleted ? kExitOk : kExitFailure;
    }
    if (ended) return TellRefusal(ended->error(), chat.str(), message.size());
    if (!state.open.empty()) return FlushOutput(), TellQuestion(state.open.front(), chat.str());
    if (interrupted && !run.interaction().empty() && !std::exchange(cancelled, true)) {
      if (auto done = server.Call("POST", run.path() + "/cancel"); !done) return Complain(done.error());
    }
  }
}

}  // namespace reprise
