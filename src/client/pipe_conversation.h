#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/terminal_text.h"
#include "client/server_client.h"
#include "reprise/ids.h"
#include "terminal/exit_status.h"
#include "terminal/terminal_input.h"

namespace reprise {

// A conversation with the agent of a running server, line by line: for a pipe, for --json, and for a terminal that
// cannot move its cursor. One line is read, and what becomes of it is printed to its end before the next one is. A
// question of the run takes the next line for its answer. A person at a terminal has TerminalClient. For one thread.
class PipeConversation {
 public:
  // `server` and `input` must outlive this. With `json`, standard output has events as lines of JSON, and questions go
  // to standard error. `model`: what every message is for; empty: as the chat and the server have it.
  PipeConversation(ServerClient& server, TerminalInput& input, const ChatId& chat, std::string model, bool json)
      : server_(server), input_(input), path_("/chats/" + chat.str()), model_(std::move(model)), json_(json) {}

  // Returns the exit status when the input ends, or a person leaves.
  int Run();

 private:
  // A question that waits for its answer.
  struct OpenQuestion {
    bool is_approval;
    std::string id;  // of the approval, or of the request
    Json asked;
  };
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
  // `live`: nothing of it is a recording, whose questions may have been answered.
  void Follow(ArrivingEvents& stream, bool live);
  void Cancel();
  void Heard(const std::string& name, const Json& data);
  void Write(const std::string& text);
  void EndText();
  void Tell(const std::string& name, const Json& data);
  void Label(const std::string& call, const Json& data);

  // --- questions
  // Asks the question that has been open longest. `stream` may be null: nobody else's answer is noticed.
  void AskFirst(ArrivingEvents* stream);
  // The next line, as the answer to `prompt`.
  Answered Answer(const std::string& prompt, std::string& line);
  std::string RunPath() const;
  // These three: true if the question is settled, false if it is to be asked again.
  bool Give(const std::string& route, const Json& body);
  bool Approve(const Json& asked);
  bool Respond(const Json& asked);
  // The object that a form wants, member by member. nullopt: the question is settled, or left open.
  std::optional<Json> FillIn(const std::string& schema);
  // Of a pipe that has ended: nobody is going to answer.
  std::optional<Json> Unanswered();

  ServerClient& server_;
  TerminalInput& input_;
  const std::string path_;
  const std::string model_;
  const bool json_;
  int status_ = kExitOk;
  bool leaving_ = false;
  std::string aside_;  // what was typed before a question was shown

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

}  // namespace reprise
