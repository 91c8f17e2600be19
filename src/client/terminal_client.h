#pragma once

#include <array>
#include <chrono>
#include <deque>
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
#include "client/start_line.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "terminal/key_table.h"
#include "terminal/menu.h"
#include "terminal/run_view.h"
#include "terminal/screen.h"
#include "terminal/terminal_input.h"
#include "terminal/terminal_style.h"

namespace reprise {

// A person's conversation with the agent of a running server, at a terminal. One loop: the person edits a line all the
// time, and the run is drawn above it. Messages typed while a run goes on are queued. A question takes the line for
// itself; the text being typed comes back afterwards. For one thread.
class TerminalClient {
 public:
  struct Parts {
    ServerLink& link;  // REQUIRES: it is reached
    TerminalInput& input;
    Style style;
    ChatId chat;
    std::string opening;         // obeyed as if it was typed first; may be empty
    std::string model;           // empty: the chat's last model, or the server's
    std::string leaving_advice;  // "reprise chat", without the chat's id
    std::string home;            // replaces "~" in the name of a file, if not empty
    TerminalSettings settings;
    std::string settings_file;  // where they are; empty: nowhere
  };
  explicit TerminalClient(Parts parts);

  // Runs until the person leaves.
  void Run();

 private:
  using Came = TerminalInput::Came;
  // A question that waits for an answer.
  struct OpenQuestion {
    PendingQuestion asked;
    bool from_list = false;  // asked by /approvals, so it may be put off
    bool is_edited = false;  // `asked` holds the person's arguments instead of the call's
    std::string typed{};     // those arguments as last typed

    const std::string& id() const { return QuestionId(asked); }
    bool is_approval() const { return std::holds_alternative<PendingApproval>(asked); }
    // REQUIRES: is_approval().
    const event::ApprovalRequired& call() const { return std::get<PendingApproval>(asked).request; }
  };
  // A message of this client that waits for the end of the current run.
  struct QueuedText {
    std::string text;
    std::string id;  // its id in the chat's queue
    std::unique_ptr<RunStream> stream;
    bool is_lost = false;  // with the server, which has not been found again
  };
  enum class Answered { kLine, kWithdrawn, kLeft, kBack };
  // What the person allows in this chat unasked: nothing, changes of files in the workspace, all, or, from the next
  // message on, what the server's modes "auto" and "plan" allow.
  enum class Allows { kNothing, kEdits, kAll, kAuto, kPlan };
  static constexpr std::array kModeNames = {"ask", "edits", "all", "auto", "plan"};

  // --- terminal_client.cc: the loop, and the run that is shown
  void Attach(bool at_start = false);
  Json RunOptions(const std::string& model) const;
  void TellOfInstructions();
  std::string InFolder(const std::string& path) const;
  void ShowTurn(const Json& interaction, std::size_t number);
  void ShowUserMessage(std::string_view text);
  void Follow(const Json& chat);
  void FollowOne(const Json& interaction);
  void FollowAgain();
  static bool IsOrder(const std::string& text);
  static std::string AsTyped(const std::string& message);
  void Enter(const std::string& text);
  void GiveBack(const std::string& message);
  void Obey(const std::string& text);
  void Say(const std::string& text, const std::string& model = {});
  bool WaitForFirst(RunStream& stream);
  void GiveUp(const std::string& typed);
  void Start(const std::string& path, Json body, const std::string& text = {}, const std::string& typed = {});
  enum class Whose { kOwn, kAnothers };
  void Begin(std::unique_ptr<RunStream> stream, Whose whose);
  std::vector<int> Descriptors() const;
  bool Proceed();
  void Receive();
  void Heard(const AgentEvent& event);
  void ShowChanges(const std::string& call);
  void FinishRun();
  bool Cancel();
  int TimeoutMs() const;
  bool running() const { return stream_ != nullptr; }
  // The questions of the shown run; without one, those of a list.
  std::vector<PendingQuestion>& Open() { return running() ? stream_->state().open : waiting_; }
  bool is_asked() { return running() && stream_->is_live() && !Open().empty(); }

  // Joins two texts by a line end; either may be empty.
  static std::string Joined(std::string first, const std::string& second);
  // Shows lines that stay.
  void Tell(const std::string& text);
  void Complain(const std::string& text);
  void Failed(const Error& error);
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body = Json(nullptr)) {
    return link_.Call(method, path, body);
  }

  // --- terminal_others.cc: other clients of the chat
  void Watch();
  void HearOfOthers();
  void LookAgain();
  void HearOfMode(const Json& chat);
  void TakeFolder(const Json* chat);
  void HearOfFolder(const Json& chat);
  void HearOfHead(const Json& turns);
  void TellOfParent(const std::string& parent);
  void HearOfBeginning(const event::InteractionStarted& begun);
  bool may_leave_deleted() const { return deleted_ && stream_ == nullptr && queued_.empty(); }
  void LeaveDeleted();

  // --- terminal_queue.cc: messages that wait
  void ShowNext();
  bool MayBeQueuedHere();
  void ReceiveQueued();
  bool TakesBackLost(QueuedText& waiting);
  void ReturnToLine(const std::string& text, const std::string& why);
  bool Stop();
  bool TakeBack();
  void Leave();

  // --- terminal_drawing.cc: what is below the lines that stay
  std::chrono::milliseconds StepOfStatus() const;
  void UpdateScreen(bool at_once);
  std::vector<std::string> Below();
  void LookAtStatus();
  void TakeMode(const Json& chat);
  void UseModeOfPlan();
  std::string ModeOfMessages() const;
  std::string ShownMode() const;

  // --- terminal_keys.cc: what is done at the terminal itself
  enum class State { kIdle, kRuns, kAsks };
  void Press(LineEditor::Command key);
  void NextMode();
  void ShowTranscript();
  void ShowKeys();
  void RememberOtherChats();
  void GoBack();
  static bool RunsHere(std::string_view text);
  void RunHere(const std::string& line);
  void ShowState();

  // --- terminal_questions.cc: questions of a run
  bool Ask(const OpenQuestion& question);
  bool AllowedByMode(const OpenQuestion& question);
  bool AllowByMode(const OpenQuestion& question);
  void AskApproval(const OpenQuestion& question);
  struct Showing {
    bool whole = false, together = false, in_every_chat = false;
  };
  TerminalInput::Question ShowApprovals(const std::vector<OpenQuestion>& shown, const Showing& how);
  Answered EditArguments(OpenQuestion& question);
  bool AskInput(const OpenQuestion& question);
  std::string ReadChoice(const std::string& prompt, const std::string& letters);
  bool AskForm(const OpenQuestion& question, const event::InputRequired& asked);
  static TerminalInput::Question Choice(std::string prompt, std::string letters);
  enum class Besides { kNothing, kCommands, kGoingBack };  // other input that is taken
  void AnsweredElsewhere(const std::string& id);
  Answered Answer(TerminalInput::Question how, std::string& line, Besides besides = Besides::kNothing);
  bool AskToTrust(const Json& file);
  bool Give(const OpenQuestion& question, const Json& body);
  std::vector<std::string> DescribeQuestion(const OpenQuestion& question, bool whole, bool& cut);
  std::vector<std::string> Painted(Style::Role role, const std::string& text) const;
  void ShowQuestion(std::vector<std::string> lines, const std::string& title);
  void FitQuestion();
  void KeepQuestion(const std::string& answer = {});

  // --- terminal_question_list.cc: those questions as one list
  const PendingQuestion& NextQuestion();
  void Choose(int by);
  std::string OthersThatWait();
  std::vector<std::string> QuestionList();
  std::vector<OpenQuestion> Together(const OpenQuestion& question);
  void AllowAll(std::vector<OpenQuestion>& shown);
  void StopRunsOf(const std::vector<OpenQuestion>& questions);
  void LookAtList();

  // --- terminal_commands.cc: lines that begin with a slash
  struct Command {
    std::string_view name, arguments, help;
    void (TerminalClient::*run)(const std::string& arguments);
  };
  static const std::vector<Command>& Commands();
  void RunCommand(const std::string& word, const std::string& arguments);
  void RunFolderCommand(const std::string& word, const std::string& arguments);
  // Commands and skills of the folder that are in use, as in GET /instructions, and the built-in ones (without a kind).
  std::vector<Json> FolderCommands();
  static bool IsOwnCommand(std::string_view word);
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
  // Lists the files that a move of the head puts back; nullopt if it puts none back or is refused.
  std::optional<Json> FilesToPutBack(const std::string& route, Json body);
  void GoForward(const std::string& head, Json files);
  bool AgreesToImported(const Json& files, Json& choice);
  void ShowLines(std::vector<std::string> lines, const std::string& rest);
  void TellOfEach(const Json& preview, const std::string& how);
  void TellOfEnd(const std::string& more = {});
  void TellOfFiles(const std::optional<Json>& files);
  void Undo(const std::string& arguments);
  void Redo(const std::string& arguments);
  void Branches(const std::string& arguments);
  void Fork(const std::string& arguments);
  void Regenerate(const std::string& arguments);
  void GoOn(const std::string& arguments);
  void Model(const std::string& arguments);
  bool SetChatsMode();
  void Mode(const std::string& arguments);
  void Approvals(const std::string& id);
  void Grants(const std::string& arguments);
  void ListGrants();
  void Tasks(const std::string& arguments);
  void Jobs(const std::string& arguments);
  void Usage(const std::string& arguments);
  void Compact(const std::string& arguments);
  void Instructions(const std::string& arguments);
  void Attach(const std::string& path);
  void Detach(const std::string& arguments);
  void Export(const std::string& arguments);
  void Search(const std::string& arguments);
  void UseTheme(const std::string& arguments);
  void Queue(const std::string& arguments);
  void Decline(const std::string& arguments);
  void Quit(const std::string& arguments);
  void SwitchTo(const std::string& chat);
  // Turns of the head's branch that have a message, oldest first; nullopt: the person is told.
  std::optional<std::vector<Json>> Turns(std::string_view nothing_yet);
  // The last interactions of all branches, in order; "is_head" marks the chat's. nullopt: the person is told.
  std::optional<std::vector<Json>> BranchEnds();

  // --- terminal_files.cc: files that go with a message
  std::vector<std::string> FilesIn(const std::string& text);
  std::optional<std::vector<std::string>> Attachments(const std::vector<std::string>& files);
  static std::vector<std::string> KeptAttachments(const Json& turn, const std::string& text,
                                                  const std::vector<std::string>& files);
  void ShowPicture(const Attachment& file);
  // Returns the file's id in this chat; nullopt: the person is told.
  std::optional<std::string> Upload(const std::string& path);
  std::optional<std::string> Upload(const std::string& name, std::string bytes);
  void AttachPicture();
  std::string WithHome(const std::string& path) const;
  static void AddOnce(std::vector<std::string>& ids, const std::string& id);

  // --- terminal_menus.cc: what the edited line can become
  void OpenMenu(const std::string& command);
  std::optional<MenuPlace> PlaceOfMenu(const std::string& line) const;
  std::vector<MenuItem> MenuItems(const std::string& line);
  std::vector<MenuItem> CommandItems();
  std::vector<MenuItem> ChatItems();
  std::vector<MenuItem> BranchItems();
  std::vector<MenuItem> ModelItems();
  static std::vector<MenuItem> ModeItems();
  static std::vector<MenuItem> ThemeItems();
  std::vector<MenuItem> HistoryItems() const;
  // Of the file's name in a line: where it begins, with what marks it, and what is typed of it.
  struct NamedFile {
    std::size_t begin = 0;
    bool is_marked = false;  // by an @
    std::string path{};
  };
  static std::optional<NamedFile> FileIn(const std::string& line);
  std::vector<MenuItem> FileItems(const std::string& line) const;

  ServerLink& link_;
  ServerClient& server_;
  TerminalInput& input_;
  Style style_;
  const bool has_colour_;
  Screen screen_;
  RunView view_;
  Menu menu_;
  const std::string opening_, advice_, home_, settings_file_;
  const KeyTable keys_;
  const TerminalInput::Meanwhile meanwhile_;

  std::string chat_, path_;
  Status about_;                                  // for the line above the input
  std::string model_;                             // chosen model; empty: the server's
  bool may_have_cost_ = true;                     // false: a model of the chat has no price
  std::string chats_mode_;                        // its own, which holds before that of the messages; may be empty
  Allows allows_ = Allows::kNothing;              // until another chat is opened
  bool is_mode_chosen_ = false;                   // by /mode; likewise
  std::map<std::string, std::uint64_t> windows_;  // known context windows by model
  std::vector<std::string> attachments_;          // file ids, for the next message
  // Uploaded files of the next message: (name, digest) -> id. If it is refused, they are not uploaded again.
  std::map<std::pair<std::string, std::string>, std::string> uploaded_;
  std::set<std::string> told_of_;    // paths and digests of announced instruction files
  bool compact_ = false;             // the next message asks for a summary of earlier messages
  std::vector<std::string> listed_;  // ids of the chats listed last
  std::vector<std::string> grants_;  // paths of the grants listed last
  std::vector<std::string> undone_;  // heads for /redo
  // The chat that /undo of its first message left for this one, and its undone_.
  std::optional<std::pair<std::string, std::vector<std::string>>> undone_chat_;
  bool searches_ = false;           // the menu shows earlier messages
  bool knows_other_chats_ = false;  // their messages are in the history
  std::string draft_;               // unfinished text for the next line
  std::string given_back_;          // what /undo has put there
  std::string aside_;               // text that returns to the line when nothing is asked
  bool leaving_ = false, warned_ = false;

  // --- the shown run
  std::unique_ptr<RunStream> stream_;
  Whose whose_ = Whose::kOwn;
  bool elsewhere_ = false;    // the chat works in another folder than this client
  std::string folder_;        // where the chat works; empty: not on this machine
  std::string named_folder_;  // the same as the server names it
  bool lost_ = false;         // the server was lost during a run and not found again since
  std::deque<QueuedText> queued_;

  // --- other clients' runs in the chat
  std::unique_ptr<ArrivingEvents> changes_;               // GET /events
  std::chrono::steady_clock::time_point watched_from_{};  // time of the next request
  std::chrono::seconds between_watches_{};
  bool catches_up_ = false;          // events may have been missed
  std::deque<std::string> started_;  // interactions, perhaps already shown
  std::set<std::string> shown_;      // interactions of this chat
  std::set<std::string> own_;        // those that this client began
  std::string head_;                 // the last turn on the screen; empty: none
  bool follows_ = false;             // the run that begins is to follow it
  bool deleted_ = false;             // the chat, by another client

  std::chrono::steady_clock::time_point drawn_{};
  bool stale_ = false;                               // there are changes to draw
  bool hides_prompt_ = false;                        // on a plain terminal, while a run writes there
  bool at_prompt_ = false;                           // a message is being edited, not an answer that Esc leaves
  std::chrono::steady_clock::time_point escaped_{};  // when Esc was pressed with nothing to stop
  State state_ = State::kIdle;                       // shown in the window's title
  std::chrono::steady_clock::time_point ran_from_{};

  // --- the question that is asked
  std::string asking_;                                            // its id; empty if there is none
  std::string chosen_;                                            // the one that the person went on to; empty: none
  std::map<std::string, OpenQuestion> left_;                      // those left with edited arguments, by id
  bool asks_from_list_ = false;                                   // it may be of any chat,
  std::vector<PendingQuestion> waiting_;                          // and is held here, with others
  static constexpr std::chrono::milliseconds kBetweenLooks{500};  // whether they still wait
  std::chrono::steady_clock::time_point looked_{};
  bool answered_elsewhere_ = false;
  std::string changed_by_{};                    // the call whose changes of files are arriving
  std::string filled_in_;                       // the form filled in last
  std::map<std::string, std::string> entered_;  // text typed into its fields
  std::vector<std::string> question_text_;      // the question below, until it is answered
  std::string question_title_;
  std::vector<std::string> drawn_question_;  // the question as last drawn, below or among the lines that stay
};

}  // namespace reprise
