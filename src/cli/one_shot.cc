#include "cli/one_shot.h"

#include <poll.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/question_text.h"
#include "cli/terminal_text.h"

namespace reprise {

int RunOneShot(ServerClient& server, const ChatId& chat, const std::string& model, const std::string& message,
               bool json) {
  // Whoever asks in a script may be gone before the answer: what was begun is finished, and an open question kept.
  Json body = {{"user_message", message}, {"on_disconnect", "continue"}};
  if (!model.empty()) body["model"] = model;
  const auto stream = server.Stream("POST", "/chats/" + chat.str() + "/interactions", body);
  int status = kExitFailure;
  bool complete = false, told = false;
  while (!complete) {
    pollfd ready{stream->descriptor(), POLLIN, 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) break;
    stream->Receive();
    while (const auto event = stream->Next()) {
      const auto& [name, data] = *event;
      if (json) Print(DumpJson(data) + "\n");
      if (name == "answer" && !json) {
        const std::string text = TextMember(data, "content");
        Print(Indented(text, "") + "\n");
        if (data.contains("truncated")) Warn("the answer was cut off: " + VisibleLine(TextMember(data, "reason")));
      } else if (name == "error") {
        Warn(VisibleLine(TextMember(data, "message")));
        told = true;
      } else if (name == "cancelled") {
        Warn("the run was cancelled: " + VisibleLine(TextMember(data, "reason")));
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
      if (!*ended) return Complain(ended->error());
      break;
    }
  }
  if (!complete && !told) Warn("the server is stopping");
  return status;
}

}  // namespace reprise
