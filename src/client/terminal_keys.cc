// What is done at the terminal itself: keys with an effect outside of the line, the person's own commands, and signs
// that reach somebody who looks elsewhere.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/terminal_client.h"
#include "terminal/console.h"
#include "terminal/own_programs.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kLongRun{10};  // somebody may look elsewhere meanwhile
constexpr std::size_t kOtherChats = 30;       // whose messages are in the history: the last of each,
constexpr std::size_t kOfOtherChat = 50, kOfOtherChats = 500;
constexpr std::size_t kMostOutput = 16 << 20, kMostTold = 16 << 10;

// The last bytes of an output, in whole lines.
std::string EndOf(std::string output) {
  if (output.size() <= kMostTold) return output;
  const std::size_t from = output.find('\n', output.size() - kMostTold);
  return "...\n" + output.substr(from == std::string::npos ? output.size() - kMostTold : from + 1);
}

}  // namespace

// Esc twice goes back to the last message: it is in the line again, to be said in other words.
void TerminalClient::GoBack() {
  constexpr std::chrono::seconds kTogether{1};
  const auto now = std::chrono::steady_clock::now();
  const bool is_second = now - std::exchange(escaped_, draft_.empty() ? now : decltype(now)()) <= kTogether;
  if (!is_second || !draft_.empty()) return;
  escaped_ = {};
  Edit({});
}

void TerminalClient::Press(LineEditor::Command key) {
  switch (key) {
    case LineEditor::Command::kUnfold:
      if (!view_.Unfold()) Tell("(nothing is folded)");
      break;
    case LineEditor::Command::kTranscript:
      return ShowTranscript();  // the editor draws the line again
    case LineEditor::Command::kSearch:
      if (screen_.is_plain()) return Complain("this terminal shows no search: Up goes through earlier messages");
      RememberOtherChats();
      searches_ = at_prompt_;
      return;  // the editor opens the menu
    case LineEditor::Command::kPicture:
      AttachPicture();
      break;
    case LineEditor::Command::kOlder:
      return RememberOtherChats();
    case LineEditor::Command::kShowKeys:
      ShowKeys();
      break;
    case LineEditor::Command::kNextMode:
      if (asking_.empty()) NextMode();
      break;
  }
  UpdateScreen(/*at_once=*/true);
}

void TerminalClient::ShowKeys() {
  screen_.Add(keys_.Lines(screen_.columns(), style_));
  if (!settings_file_.empty()) Tell("(" + settings_file_ + " changes them: " + "{\"keys\": {\"editor\": \"ctrl-e\"}})");
}

// Adds the messages of the folder's other chats to the history, before those of this chat. Only when they are wanted,
// because each chat is a request.
void TerminalClient::RememberOtherChats() {
  if (std::exchange(knows_other_chats_, true)) return;
  const auto list = server_.Call("GET", "/chats?limit=500");
  std::vector<std::string> texts;  // newest first
  std::size_t chats = 0;
  for (const Json& chat : list ? ListedIn(*list, "chats") : Json::array()) {
    const std::string id = TextMember(chat, "id");
    if (id == chat_ || chat.contains("error") || !link_.WorksHere(chat)) continue;
    if (++chats > kOtherChats || texts.size() >= kOfOtherChats) break;
    const std::string last = "?state=none&limit=" + std::to_string(kOfOtherChat);
    const auto known = server_.Call("GET", "/chats/" + id + last);
    const Json turns = known ? ListedIn(*known, "interactions") : Json::array();
    for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
      if (std::string text = TextMember(*turn, "user_message"); !text.empty()) texts.push_back(std::move(text));
    }
  }
  std::ranges::reverse(texts);
  input_.editor()->RememberOlder(texts);
}

// What allows everything is not reached by a key that may be pressed once too often.
void TerminalClient::NextMode() {
  constexpr std::array kOrder = {Allows::kNothing, Allows::kPlan, Allows::kEdits, Allows::kAuto};
  constexpr std::array kNames = {"ask", "plan", "edits", "auto"};
  const auto now = static_cast<std::size_t>(std::ranges::find(kOrder, allows_) - kOrder.begin());
  Mode(kNames[(now + 1) % kNames.size()]);
}

// All of the chat in the person's pager.
void TerminalClient::ShowTranscript() {
  const auto text = server_.Text(path_ + "/export?format=markdown");
  if (!text) return Failed(text.error());
  if (const auto shown = ShowInPager(VisibleText(*text, "")); !shown) Failed(shown.error());
}

// "!make" runs a command here, as in a shell of the person's own. "!!make" also puts what it prints into the line, for
// the model. A text that only happens to begin with an exclamation mark is a message.
bool TerminalClient::RunsHere(std::string_view text) {
  const std::size_t from = text.starts_with("!!") ? 2 : text.starts_with('!') ? 1 : text.size();
  return from < text.size() && std::string_view(" =!?.,").find(text[from]) == std::string_view::npos &&
         text.find('\n') == std::string_view::npos;
}

void TerminalClient::RunHere(const std::string& line) {
  const bool tells = line.starts_with("!!");
  const std::string command(Trimmed(std::string_view(line).substr(tells ? 2 : 1), " \n"));
  if (folder_.empty()) return Complain("the folder is not on this machine, so the command cannot run in it");
  screen_.Add(style_.Paint(Style::kBold, VisibleLine("! " + command)));
  const auto output = tells ? std::optional(LentFile::Make("")) : std::nullopt;
  if (tells && !*output) return Failed(output->error());
  int status = 0;
  screen_.Lend([&] {
    // The output goes to the terminal (3) and into the file, the status of the command through 4 to the last one.
    const std::string both = "exec 3>&1; { { (" + command +
                             "\n) 2>&1 3>&- 4>&-; echo $? >&4; } | tee \"$1\" >&3; } 4>&1 | "
                             "{ read status; exit \"$status\"; }";
    status = tells ? RunAtTerminal(both, (*output)->path(), folder_) : RunAtTerminal(command, "", folder_);
  });
  if (status < 0) return Complain("the command could not be run");
  about_.branch = VisibleLine(GitBranch(folder_));  // which the command may have changed
  if (WIFSIGNALED(status)) Tell("(ended by signal " + std::to_string(WTERMSIG(status)) + ")");
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) Tell("(exit status " + std::to_string(WEXITSTATUS(status)) + ")");
  if (!tells) return;
  const auto printed = (*output)->Read(kMostOutput);
  if (!printed) return Complain("the output is too long for a message: write it to a file, and name that");
  draft_ = "$ " + command + "\n" + EndOf(VisibleText(*printed, "")) + "\n";
}

// The window's title shows the state; what waits for the person, and the end of a long run, is announced.
void TerminalClient::ShowState() {
  using Clock = std::chrono::steady_clock;
  const State now = !asking_.empty() ? State::kAsks : running() ? State::kRuns : State::kIdle;
  if (now == state_) return;
  const std::string folder = link_.folder().substr(link_.folder().rfind('/') + 1),
                    name = folder.empty() ? "reprise" : folder;
  std::string notice;
  if (now == State::kAsks) notice = "Reprise waits for you in " + name;
  if (now == State::kIdle && state_ == State::kRuns && Clock::now() - ran_from_ >= kLongRun) {
    notice = "Reprise has answered in " + name;
  }
  if (state_ == State::kIdle) ran_from_ = Clock::now();
  state_ = now;
  screen_.Announce((now == State::kAsks ? "? " : now == State::kRuns ? "● " : "") + name, notice);
}

}  // namespace reprise
