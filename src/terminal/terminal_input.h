#pragma once

#include <termios.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
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

  enum class Came { kLine, kEnd, kInterrupt, kWithdrawn };
  // What goes on while a person types.
  struct Meanwhile {
    std::function<int()> descriptor;  // is watched; -1: none
    std::function<int()> timeout_ms;  // -1: none
    std::function<bool()>
        proceed;  // is called when it is readable, or the time is over; true: what is typed is withdrawn
  };
  // Blocks for the next message: a line, or on a terminal what a person has made of it (several lines of one paste are
  // one message). `prompt` is shown, and `message` is what is edited, on a terminal only. kInterrupt: Ctrl-C, and
  // `message` is what it cleared; kWithdrawn: and `message` is what was typed so far.
  Came ReadMessage(const std::string& prompt, const Meanwhile& meanwhile, std::string& message);
  // The same for the answer to a question that was shown. It is not remembered. On a terminal all that was typed or
  // pasted before is forgotten, the rest of a paste that is still arriving too. A pipe's lines are answers in their
  // turn.
  Came ReadAnswer(const std::string& prompt, const Meanwhile& meanwhile, std::string& answer);
  // Blocks until `descriptor` is readable, but not longer than `most`. True: Ctrl-C was pressed instead, or as well.
  bool WaitForOrInterrupt(int descriptor, std::optional<std::chrono::milliseconds> most = std::nullopt);

  // Null: nobody is there.
  LineEditor* editor() { return editor_.get(); }
  // Whether a line is shown and edited at this moment.
  bool editing() const { return editing_; }

 private:
  KeySource::Came NextByte(unsigned char& byte) override;
  void PutBack(unsigned char byte) override { read_.insert(read_.begin(), static_cast<char>(byte)); }
  void LeaveTerminal() override;
  void MarkPastes(bool marked) const;
  void ReturnToTerminal() override { HideTyping(); }
  void DropTypedAhead();
  // The first byte of what was read. Notices where pastes begin and end.
  unsigned char TakeByte();
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
  std::string read_;          // behind the last line
  std::string last_bytes_;    // a few, before those
  bool in_paste_ = false;     // a paste has begun and not ended
  bool drops_paste_ = false;  // the rest of it is not wanted
  std::chrono::steady_clock::time_point last_read_{};
  bool is_dumb_ = false;
  bool ended_ = false;
  bool editing_ = false;
  const Meanwhile* meanwhile_ = nullptr;  // of the edit
};

}  // namespace reprise
