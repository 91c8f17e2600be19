#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "client/run_stream.h"
#include "client/server_client.h"
#include "client/server_link.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "terminal/run_view.h"
#include "terminal/screen.h"
#include "terminal/terminal_input.h"
#include "terminal/terminal_style.h"

namespace reprise {

// A person's conversation with the agent of a running server, at a terminal. One loop: a line is edited all the time,
// and meanwhile what the run shows is drawn above it. What is typed while a run goes on is queued. A question takes the
// line for itself; what was being typed comes back afterwards. For one thread.
class TerminalClient {
 public:
  struct Parts {
    ServerLink& link;  // is reached
    TerminalInput& input;
    Style style;
    ChatId chat;
    std::string model;           // empty: the chat's last one, or the server's
    std::string leaving_advice;  // "reprise chat", as far as the chat's id
    std::string home;            // what "~" stands for in the name of a file; empty: for nothing
    // Prints where `text` stands in the folder's chats; null: the folder is not known here.
    std::function<int(const std::string& text)> search;
  };
  explicit TerminalClient(Parts parts);

  // Returns the exit status when the person leaves: of the last run.
  int Run();

 private:
  using Came = TerminalInput::Came;
  // A question that waits for its answer.
  struct OpenQuestion {
    PendingQuestion asked;
    bool from_list = false;  // asked by /approvals: may be put off
    bool is_edited = false;  // `asked` has the person's arguments in place of the call's
    std::string typed{};     // those as they were typed last

    const std::string& id() const { return QuestionId(asked); }
    bool is_approval() const { return std::holds_alternative<PendingApproval>(asked); }
    // REQUIRES: is_approval().
    const event::ApprovalRequired& call() const { return std::get<PendingApproval>(asked).request; }
  };
  // A message of this client that waits until what runs has ended.
  struct QueuedText {
    std::string text;
    std::string id;  // in the chat's queue
    std::unique_ptr<RunStream> stream;
  };
  enum class Answered { kLine, kWithdrawn, kLeft, kBack };
  // What the person allows in this chat without being asked: nothing, changes of files in the workspace, or all.
  enum class Allows { kNothing, kEdits, kAll };

  // --- terminal_client.cc: the loop, and the run that is shown
  void Attach();
  void TellOfInstructions();
  void ShowTurn(const Json& interaction, std::size_t number);
  void ShowUserMessage(std::string_view text);
  void Follow(const Json& chat);
  void FollowOne(const Json& interaction);
  void FollowAgain();
  void Obey(const std::string& text);
  void Say(const std::string& text);
  bool WaitForFirst(RunStream& stream);
  void GiveUp(const std::string& text);
  void Start(const std::string& path, Json body, const std::string& text);
  enum class Whose { kOwn, kAnothers };
  void Begin(std::unique_ptr<RunStream> stream, Whose whose);
  void Watch();
  void HearOfOthers();
  void ShowNext();
  bool MayBeQueuedHere();
  bool Stop();
  bool TakeBack();
  std::vector<int> Descriptors() const;
  bool Proceed();
  bool StillWaits();
  static void AddOnce(std::vector<std::string>& ids, const std::string& id);
  void Receive();
  void Heard(const AgentEvent& event);
  void ShowChanges(const std::string& call);
  void FinishRun();
  void Cancel();
  int TimeoutMs() const;
  std::chrono::milliseconds StepOfStatus() const;
  void UpdateScreen(bool at_once);
  std::vector<std::string> Below() const;
  bool running() const { return stream_ != nullptr; }
  // The questions of the run that is shown; if there is none, those of a list.
  std::vector<PendingQuestion>& Open() { return running() ? stream_->state().open : waiting_; }
  bool is_asked() { return running() && stream_->is_live() && !Open().empty(); }

  // Two texts, each in lines of its own; either may be empty.
  static std::string Joined(std::string first, const std::string& second);
  // Lines that stay.
  void Tell(const std::string& text);
  void Complain(const std::string& text);
  void Failed(const Error& error);
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body = Json(nullptr)) {
    return link_.Call(method, path, body);
  }

  // --- terminal_questions.cc: what a run asks
  bool Ask(const OpenQuestion& question);
  bool AllowedByMode(const OpenQuestion& question);
  bool AllowByMode(const OpenQuestion& question);
  void AskApproval(const OpenQuestion& question);
  struct Showing {
    bool whole = false, together = false, in_every_chat = false;
  };
  TerminalInput::Question ShowApprovals(const std::vector<OpenQuestion>& shown, const Showing& how);
  Answered EditArguments(OpenQuestion& question);
  void StopRunOf(const OpenQuestion& question);
  bool AskInput(const OpenQuestion& question);
  std::string ReadChoice(const std::string& prompt, const std::string& letters);
  bool AskForm(const OpenQuestion& question, const event::InputRequired& asked);
  static TerminalInput::Question Choice(std::string prompt, std::string letters);
  enum class Besides { kNothing, kCommands, kGoingBack };  // what may be typed beside an answer
  Answered Answer(TerminalInput::Question how, std::string& line, Besides besides = Besides::kNothing);
  bool AskToTrust(const Json& file);
  bool Give(const OpenQuestion& question, const Json& body);
  std::vector<std::string> DescribeQuestion(const OpenQuestion& question, bool whole, bool& cut);
  std::vector<std::string> Painted(Style::Role role, const std::string& text) const;
  void AllowAll(std::vector<OpenQuestion>& shown);
  void ShowQuestion(std::vector<std::string> lines);
  void KeepQuestion(const std::string& answer = {});

  // --- terminal_commands.cc: what begins with a slash
  struct Command {
    std::string_view name, arguments, help;
    void (TerminalClient::*run)(const std::string& arguments);
  };
  static const std::vector<Command>& Commands();
  void RunCommand(const std::string& word, const std::string& arguments);
  void Help(const std::string& arguments);
  void ListChats(const std::string& arguments);
  void NewChat(const std::string& arguments);
  void Resume(const std::string& arguments);
  void History(const std::string& arguments);
  void Edit(const std::string& arguments);
  std::optional<Json> FilesOfEdit(const Json& preview);
  void ShowDiff(const std::string& arguments);
  std::optional<Json> FilesChoice(const std::string& arguments);
  bool TellsOfConflicts(const Error& error);
  // Lists the files that a move of the head puts back; nullopt: told why not.
  std::optional<Json> FilesToPutBack(const std::string& route, Json body);
  void GoForward(const std::string& head, Json files);
  bool AgreesToImported(const Json& files, Json& choice);
  void ShowLines(std::vector<std::string> lines, const std::string& rest);
  void TellOfEach(const Json& preview, const std::string& how);
  void TellOfFiles(const std::optional<Json>& files);
  // The chat that `text` names: its id, a unique beginning of it or its title; nullopt: told.
  std::optional<std::string> FindChat(const std::string& text);
  void Undo(const std::string& arguments);
  void Redo(const std::string& arguments);
  void Branches(const std::string& arguments);
  void Fork(const std::string& arguments);
  void Regenerate(const std::string& arguments);
  void GoOn(const std::string& arguments);
  void Model(const std::string& arguments);
  void Mode(const std::string& arguments);
  void Approvals(const std::string& arguments);
  void Grants(const std::string& arguments);
  void ListGrants();
  void Tasks(const std::string& arguments);
  void Usage(const std::string& arguments);
  void Compact(const std::string& arguments);
  void Instructions(const std::string& arguments);
  void Attach(const std::string& path);
  void Detach(const std::string& arguments);
  std::string WithHome(const std::string& path) const;
  void Export(const std::string& arguments);
  void Search(const std::string& arguments);
  void Queue(const std::string& arguments);
  void Decline(const std::string& arguments);
  void Quit(const std::string& arguments);
  // The id that the file has in this chat; nullopt: told.
  std::optional<std::string> Upload(const std::string& path);
  void SwitchTo(const std::string& chat);
  // Turns of the head's branch that have a message, oldest first; nullopt: told.
  std::optional<std::vector<Json>> Turns(std::string_view nothing_yet);
  std::vector<std::string> Complete(const std::string& line);
  Json Options() const;

  ServerLink& link_;
  ServerClient& server_;
  TerminalInput& input_;
  const Style style_;
  Screen screen_;
  RunView view_;
  const std::string advice_, home_;
  const std::function<int(const std::string&)> search_;
  const TerminalInput::Meanwhile meanwhile_;

  std::string chat_, path_;
  std::string model_;                             // chosen; empty: the server's
  Allows allows_ = Allows::kNothing;              // until another chat is opened
  std::map<std::string, std::uint64_t> windows_;  // context windows of models that are known
  std::vector<std::string> attachments_;          // ids, for the next message
  // Those of it that the server has: (name, digest) -> id. A message that was not taken does not bring them again.
  std::map<std::pair<std::string, std::string>, std::string> uploaded_;
  std::set<std::string> told_of_;    // files of instructions, with their digests
  bool compact_ = false;             // the next message asks for a summary of all before it
  std::vector<std::string> listed_;  // ids of the chats that were listed last
  std::vector<std::string> grants_;  // paths of the grants that were listed last
  std::vector<std::string> undone_;  // heads to go forward to
  // The chat whose first message was taken back by going to this one, and what could be done again there.
  std::optional<std::pair<std::string, std::vector<std::string>>> undone_chat_;
  std::string draft_;  // what was being typed, for the next line
  std::string aside_;  // what comes back into the line when nothing is asked
  int status_ = 0;
  bool leaving_ = false, warned_ = false;

  // --- of the run that is shown
  std::unique_ptr<RunStream> stream_;
  Whose whose_ = Whose::kOwn;
  bool lost_ = false;  // the server has gone during one, which has not been looked after since
  std::deque<QueuedText> queued_;

  // --- of what others do in the chat
  std::unique_ptr<ArrivingEvents> changes_;               // GET /events
  std::chrono::steady_clock::time_point watched_from_{};  // when it is asked for again
  std::chrono::seconds between_watches_{};
  bool catches_up_ = false;          // something may have been missed
  std::deque<std::string> started_;  // interactions, which may have been shown
  std::set<std::string> shown_;      // interactions of this chat

  std::chrono::steady_clock::time_point drawn_{};
  bool stale_ = false;      // there is something new to draw
  bool at_prompt_ = false;  // a message is typed, and nothing that could be left by Esc

  // --- of the question that is asked
  std::string asking_;                              // its id; empty: none
  bool asks_from_list_ = false;                     // it is of any chat,
  std::vector<PendingQuestion> waiting_;            // and stands here
  std::chrono::steady_clock::time_point looked_{};  // at whether it still waits, then
  bool answered_elsewhere_ = false;
  std::string changed_by_{};                    // a call of whose changes the stream tells
  std::string filled_in_;                       // the form that was filled in last
  std::map<std::string, std::string> entered_;  // what was typed into its fields
  std::vector<std::string> question_text_;      // below, until it is answered
  std::vector<std::string> drawn_question_;     // there, or among the lines that stay
};

}  // namespace reprise
