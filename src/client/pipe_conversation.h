#pragma once

#include <map>
#include <nlohmann/json.hpp>
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

// A conversation with the agent of a running server, line by line: for a pipe, and for --json. It reads one line and
// prints all that follows from it before it reads the next. A question of the run takes the next line as its answer. At
// a terminal there is TerminalClient. For one thread.
class PipeConversation {
 public:
  // `link` and `input` must outlive this. With `json`, standard output gets events as lines of JSON, and questions go
  // to standard error. An empty `model` is the chat's or the server's. REQUIRES: `link` is reached.
  PipeConversation(ServerLink& link, TerminalInput& input, const ChatId& chat, std::string model, bool json)
      : link_(link),
        input_(input),
        chat_(chat.str()),
        path_("/chats/" + chat_),
        model_(std::move(model)),
        json_(json) {}

  // Runs until the input ends or the person leaves. Begins with the line `opening`, if it is not empty. Returns the
  // exit status.
  int Run(const std::string& opening = {});

 private:
  enum class Answered { kLine, kNone, kWithdrawn, kCancelled };

  void Show(std::string_view text);
  // With --json this goes to standard error, because standard output has only events.
  void Ask(const std::string& text);
  void Failed(const Error& error);

  // --- typed lines
  void Obey(const std::string& line);
  void Say(const std::string& message, Json body = Json::object());
  void Undo(const Json& files);
  void Edit(const std::string& text);
  void History();
  void Approvals();
  // Shows this chat's unfinished interaction to its end. False if there is none.
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
  void TellSources(const std::string& heading, const std::string& lines);
  void TellResult(const event::ToolResult& result);
  // Shows the text on a line of its own.
  void Note(const std::string& text);

  // --- questions
  // If `run` is null, answers given elsewhere go unnoticed. True if the question is done with; false to ask it again.
  bool AskPerson(const PendingQuestion& question, RunStream* run);
  // Reads the next line as the answer to `prompt`.
  Answered Answer(const std::string& prompt, std::string& line);
  // These three return the same as AskPerson.
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
  std::string aside_;  // typed before a question was shown

  // --- of the run that is shown
  std::map<std::string, std::string> labels_;  // of this round's calls: call id -> the call in a few words
  StreamedText streamed_;
  bool at_line_start_ = true;  // whether the shown text ends with a line end
  bool said_ = false;          // the answer was shown as it arrived

  // --- of the question that is asked
  RunStream* run_ = nullptr;
  const PendingQuestion* asked_ = nullptr;
  bool may_skip_ = false;
};

}  // namespace reprise
