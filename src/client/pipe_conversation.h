#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/terminal_text.h"
#include "client/run_stream.h"
#include "client/server_link.h"
#include "reprise/ids.h"
#include "terminal/console.h"
#include "terminal/terminal_input.h"

namespace reprise {

// A conversation with the agent of a running server, line by line: for a pipe, for --json, and for a terminal that
// cannot move its cursor. One line is read, and what becomes of it is printed to its end before the next one is. A
// question of the run takes the next line for its answer. A person at a terminal has TerminalClient. For one thread.
class PipeConversation {
 public:
  // `link`, which is reached, and `input` must outlive this. With `json`, standard output has events as lines of JSON,
  // and questions go to standard error. `model`: what every message is for; empty: as the chat and the server have it.
  PipeConversation(ServerLink& link, TerminalInput& input, const ChatId& chat, std::string model, bool json)
      : link_(link),
        input_(input),
        chat_(chat.str()),
        path_("/chats/" + chat_),
        model_(std::move(model)),
        json_(json) {}

  // Returns the exit status when the input ends, or a person leaves.
  int Run();

 private:
  enum class Answered { kLine, kNone, kWithdrawn, kCancelled };

  void Show(std::string_view text);
  // A question is not part of what --json prints.
  void Ask(const std::string& text);
  void Failed(const Error& error);

  // --- what was typed
  void Obey(const std::string& line);
  void Say(const std::string& message);
  void Undo(const Json& files);
  void Edit(const std::string& text);
  void History();
  void Approvals();
  // Shows an interaction of this chat that has not ended, to its end. False: there is none.
  bool ShowWhatRuns(bool at_start);

  // --- a run, from its first event to its last
  void Exchange(const std::string& path, Json body);
  void Follow(RunStream& run);
  void Cancel(RunStream& run);
  void Heard(const RunStream::Heard& heard);
  void Write(const std::string& text);
  void EndText();
  void Tell(const AgentEvent& event);
  void TellAnswer(const std::string& content, const std::string& cut_off);
  void TellResult(const event::ToolResult& result);
  // A line of its own.
  void Note(const std::string& text);

  // --- questions
  // `run` may be null: nobody else's answer is noticed. True: the question is settled; false: it is to be asked again.
  bool AskPerson(const PendingQuestion& question, RunStream* run);
  // The next line, as the answer to `prompt`.
  Answered Answer(const std::string& prompt, std::string& line);
  // These three: as AskPerson.
  bool Give(const Json& body);
  bool Approve(const event::ApprovalRequired& asked);
  bool Respond(const event::InputRequired& asked);

  ServerLink& link_;
  TerminalInput& input_;
  const std::string chat_, path_;
  const std::string model_;
  const bool json_;
  int status_ = kExitOk;
  bool leaving_ = false;
  std::string aside_;  // what was typed before a question was shown

  // --- of the run that is shown
  std::map<std::string, std::string> labels_;  // call id -> what it is, of the calls of this round
  StreamedText streamed_;
  bool at_line_start_ = true;  // of the terminal, where text of the model ends
  bool said_ = false;          // the answer has been shown piece by piece

  // --- of the question that is asked
  RunStream* run_ = nullptr;
  const PendingQuestion* asked_ = nullptr;
  bool may_skip_ = false;
};

}  // namespace reprise
