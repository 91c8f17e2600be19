#include "client/one_shot.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/terminal_text.h"
#include "terminal/console.h"
#include "terminal/next_step.h"
#include "terminal/question_text.h"

namespace reprise {

int RunOneShot(ServerClient& server, Interrupts& interrupts, const ChatId& chat, const std::string& model,
               const std::string& message, bool json) {
  // Whoever asks in a script may be gone before the answer: what was begun is finished, and an open question kept.
  Json body = {{"user_message", message}, {"on_disconnect", "continue"}};
  if (!model.empty()) body["model"] = model;
  const auto stream = server.Stream("POST", "/chats/" + chat.str() + "/interactions", body);
  int status = kExitFailure;
  bool complete = false, told = false, interrupted = false, cancelled = false;
  std::string run, used_model;  // its path, and the model
  while (!complete) {
    std::array<pollfd, 2> ready = {pollfd{stream->descriptor(), POLLIN, 0}, pollfd{interrupts.descriptor(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) break;
    if (interrupts.Take() && std::exchange(interrupted, true)) return kExitFailure;  // twice: who does not want to wait
    if (interrupted && !run.empty() && !std::exchange(cancelled, true)) {
      if (auto done = server.Call("POST", run + "/cancel"); !done) return Complain(done.error());
    }
    stream->Receive();
    while (const auto event = stream->Next()) {
      const auto& [name, data] = *event;
      if (json) Print(DumpJson(data) + "\n");
      if (name == "interaction_started") {
        used_model = TextMember(data, "model");
        run = "/chats/" + chat.str() + "/interactions/" + TextMember(data, "interaction_id");
        if (interrupted) break;  // it is cancelled first
      } else if (name == "answer" && !json) {
        const std::string text = TextMember(data, "content");
        Print(Indented(text, "") + "\n");
        if (text.find_first_not_of(" \t\r\n") == std::string::npos) Warn("the answer is empty");
        if (data.contains("truncated")) Warn("the answer was cut off: " + VisibleLine(TextMember(data, "reason")));
      } else if (name == "error") {
        Warn(VisibleLine(TextMember(data, "message")) + " (" + NextStep(TextMember(data, "code"), used_model) +
             ", in `reprise --chat " + chat.str() + "`)");
        told = true;
      } else if (name == "cancelled") {
        Warn(cancelled ? "cancelled" : "the run was cancelled: " + VisibleLine(TextMember(data, "reason")));
        told = true;
      } else if (name == "approval_required" || name == "input_required") {
        const std::string what =
            name == "input_required"
                ? "an answer is needed: " + TextMember(data, "question")
                : "an approval is needed: " + CallLabel(TextMember(data, "tool_name"), TextMember(data, "tool_input"));
        FlushOutput();
        Warn(VisibleLine(what) + " (`reprise --chat " + chat.str() + "` asks you)");
        return kExitFailure;
      } else if (name == "interaction_complete") {
        complete = true;
        if (TextMember(data, "status") == "COMPLETED") status = kExitOk;
      }
    }
    if (const auto& ended = stream->ended(); ended && !complete) {
      if (!*ended && ended->error().reason == "busy") {
        Warn("chat " + chat.str() + " is running, or waits for you: `reprise --chat " + chat.str() + "` shows it");
        return kExitFailure;
      }
      if (!*ended && ended->error().reason == "too_large") {
        Warn("the message has " + Grouped(message.size()) + " bytes: " + ended->error().message +
             "; write it to a file in the workspace, and name the file in the message");
        return kExitFailure;
      }
      if (!*ended) return Complain(ended->error());
      break;
    }
  }
  if (!complete && !told) Warn("the server is stopping");
  return status;
}

}  // namespace reprise
