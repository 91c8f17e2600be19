#pragma once

#include <termios.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "terminal/keys.h"
#include "terminal/line_editor.h"

namespace reprise {

// What a person types, or a pipe brings, and Ctrl-C as an event. On a terminal lines are edited (LineEditor), and what
// is typed between them is kept, unseen, for the next message. Construct before any thread starts: SIGINT is blocked
// from then on, and at a terminal SIGTSTP and SIGWINCH. One at a time.
class TerminalInput final : private KeySource {
 public:
  TerminalInput();
  ~TerminalInput() override;
  TerminalInput(const TerminalInput&) = delete;  // the signal mask and the terminal's mode are the process's
  TerminalInput& operator=(const TerminalInput&) = delete;

  // Whether a person is there.
  bool is_terminal() const { return editor_ != nullptr; }
  // Whether it is a terminal that can do more than print one line after the other (TERM).
  bool can_move_cursor() const { return editor_ != nullptr && !is_dumb_; }

  enum class Came {
    kLine,
    kEnd,
    kInterrupt,  // Ctrl-C
    kEscape,     // the Esc key, where it is taken
    kWithdrawn,
    kKey,    // a key that answers, alone
    kEarly,  // Enter, on a text that is no answer
  };
  // What goes on while a person types.
  struct Meanwhile {
    std::function<std::vector<int>()> descriptors;  // are watched
    std::function<int()> timeout_ms;                // -1: none
    std::function<bool()>
        proceed;  // is called when one is readable, or the time is over; true: what is typed is withdrawn
    std::function<bool()> takes_escape{};  // whether Esc ends the edit now; null: never
    std::function<void()> resized{};       // draws the screen again; null: nothing but the line is on it
  };
  // Blocks for the next message: a line, or on a terminal what a person has made of it (several lines of one paste are
  // one message). `prompt` is shown, and `message` is what is edited, on a terminal only. In the end `message` is what
  // was typed so far, however the edit ended.
  Came ReadMessage(const std::string& prompt, const Meanwhile& meanwhile, std::string& message);

  struct Question {
    std::string prompt;
    // Whether a key answers by itself; null: none does. It is asked about a key that comes alone (not in a paste nor
    // with others) while the line is empty.
    std::function<bool(const std::string& key)> takes_key{};
    std::chrono::milliseconds quiet{0};  // what comes so soon after it was drawn is no answer
    bool holds_draft = false;            // the line begins with what was being typed before
  };
  // The same for the answer to a question that was shown. It is not remembered. On a terminal what was typed or pasted
  // before, or too soon, is a text that Enter does not make an answer of (kEarly), until the line is empty again. A
  // pipe's lines are answers in their turn.
  Came ReadAnswer(const Question& question, const Meanwhile& meanwhile, std::string& answer);
  // Blocks until `descriptor` is readable, but not longer than `most`. True: Ctrl-C was pressed instead, or as well.
  bool WaitForOrInterrupt(int descriptor, std::optional<std::chrono::milliseconds> most = std::nullopt);

  // Null: nobody is there.
  LineEditor* editor() { return editor_.get(); }
  // Whether a line is shown and edited at this moment.
  bool editing() const { return editing_; }

 private:
  KeySource::Came NextKey(std::string& key) override;
  KeySource::Came GiveUp(Came why);
  void Resized() override;
  void LeaveTerminal() override;
  void ReturnToTerminal() override { HideTyping(); }
  void AskForKeys(bool wanted) const;
  // The first key of what was read, if it is whole, or nothing more of it is going to come.
  std::optional<Key> WholeKey();
  // Whether a moment passes without anything behind what was read.
  bool StaysAlone(std::chrono::milliseconds moment);
  bool TakeInterrupt();
  Came ReadPipe(const Meanwhile& meanwhile, std::string& line);
  Came Edit(const std::string& prompt, const Meanwhile& meanwhile, std::string& text);
  // The number of the next signal; 0: none.
  int TakeSignal();
  bool ReadMore();
  void HideTyping() const;
  void Suspend();

  UniqueFd signals_;
  std::unique_ptr<LineEditor> editor_;  // null: a pipe
  termios before_{};
  std::string read_;                                                  // behind the last line
  bool in_paste_ = false;                                             // a paste has begun and not ended
  std::chrono::steady_clock::time_point first_read_{}, last_read_{};  // the first and the last bytes of read_
  bool is_dumb_ = false;
  bool ended_ = false;
  bool editing_ = false;
  // --- of the edit
  const Meanwhile* meanwhile_ = nullptr;
  const Question* question_ = nullptr;  // null: a message
  std::chrono::steady_clock::time_point answers_from_{};
  bool is_early_ = false;  // the text is no answer
  Came why_ = Came::kEnd;  // it was given up
  std::string answer_key_;
};

}  // namespace reprise
