#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "terminal/line_editor.h"

namespace reprise {

// On request the terminal marks the beginning and the end of a paste with these.
constexpr std::string_view kPasteBegin = "\x1b[200~", kPasteEnd = "\x1b[201~";

// The arrow keys, as in Key::bytes.
inline constexpr std::string_view kUpKey = "\x1b[A", kDownKey = "\x1b[B";

// A key, from the bytes of a terminal.
struct Key {
  enum class Kind {
    kEdits,   // `bytes` are for the editor: a character in UTF-8, a control character, or a sequence that it knows
    kEscape,  // the Esc key alone
    kNothing  // a key without a meaning here
  };
  Kind kind = Kind::kNothing;
  std::string bytes;
  std::size_t length = 0;  // of the terminal's bytes for it
};

// The first key of `bytes`, which must not be empty. Within a paste each character is a key, and so is its end mark.
// The codes by which terminals tell keys apart on request (kitty's protocol, modifyOtherKeys) become the traditional
// ones. nullopt if the key is incomplete; with `no_more`, because no more bytes follow, the present ones count.
std::optional<Key> FirstKey(std::string_view bytes, bool in_paste, bool no_more);

// Input typed by a person, or from a pipe, with Ctrl-C as an event. On a terminal lines are edited (LineEditor), and
// text typed between edits is kept, invisible, for the next message. Construct it before any thread starts, because it
// blocks SIGINT, and at a terminal SIGTSTP and SIGWINCH. One at a time.
class TerminalInput final : private KeySource {
 public:
  TerminalInput();
  ~TerminalInput() override;
  TerminalInput(const TerminalInput&) = delete;  // the signal mask and the terminal's mode are the process's
  TerminalInput& operator=(const TerminalInput&) = delete;

  // Whether input comes from a person.
  bool is_terminal() const { return editor_ != nullptr; }
  // Whether the terminal can move its cursor (TERM).
  bool can_move_cursor() const { return editor_ != nullptr && !is_dumb_; }

  enum class Came {
    kLine,
    kEnd,
    kInterrupt,  // Ctrl-C
    kEscape,     // the Esc key
    kWithdrawn,
    kKey,    // a key that is an answer by itself
    kEarly,  // Enter, on a text that does not count as an answer
  };
  // Other events during an edit.
  struct Meanwhile {
    std::function<std::vector<int>()> descriptors;  // to watch
    std::function<int()> timeout_ms;                // -1: none
    std::function<bool()> proceed;    // called when one is readable or the time is over; true withdraws the edit
    std::function<void()> resized{};  // draws the screen again; null if there is only the line
  };
  // Blocks for the next message: a line, or on a terminal an edited text (a paste of several lines is one message).
  // `prompt` and the initial `message` are for terminals only. Afterwards `message` is the text typed so far, whatever
  // ended the edit.
  Came ReadMessage(const std::string& prompt, const Meanwhile& meanwhile, std::string& message);

  struct Question {
    std::string prompt;
    // Whether a key is an answer by itself; null: none is. Called for a key that comes alone (not in a paste or with
    // others) while the line is empty.
    std::function<bool(const std::string& key)> takes_key{};
    std::chrono::milliseconds quiet{0};  // keys pressed so soon after the question appeared are no answer
    bool holds_draft = false;            // the line begins with the text that was being typed
    bool chooses = false;                // kUpKey and kDownKey are answers too, however quickly they come
  };
  // The same for the answer to a question on the screen, but kept out of the history. Text that was typed or pasted
  // earlier or too soon does not count on a terminal: Enter returns kEarly until the line was empty once. Lines of a
  // pipe are answers in their order.
  Came ReadAnswer(const Question& question, const Meanwhile& meanwhile, std::string& answer);
  // Blocks until `descriptor` is readable, at most for `most`. True if Ctrl-C was pressed.
  bool WaitForOrInterrupt(int descriptor, std::optional<std::chrono::milliseconds> most = std::nullopt);

  // Sends a request that ends with one for the terminal's attributes (DA1), which every terminal answers, and returns
  // its answers: control strings and the attributes. Keys that come meanwhile stay keys. Empty after a second without
  // an answer; nullopt if none can be told apart now, within a paste. REQUIRES: can_move_cursor().
  std::optional<std::string> AskTerminal(std::string_view request);

  // Lends the terminal, in its usual mode, to another program that `use` runs. Ctrl-C goes to that program alone.
  void Lend(const std::function<void()>& use);

  // Null for a pipe.
  LineEditor* editor() { return editor_.get(); }
  // Whether a line is being edited now.
  bool editing() const { return editing_; }

 private:
  KeySource::Came NextKey(std::string& key) override;
  bool HasKey() const override;
  KeySource::Came GiveUp(Came why);
  void Resized() override;
  void LeaveTerminal() override;
  void ReturnToTerminal() override;
  void AskForKeys(bool wanted) const;
  // The first key of the bytes read, if it is complete or its rest will not come.
  std::optional<Key> WholeKey();
  // Whether no more bytes arrive within `moment`.
  bool StaysAlone(std::chrono::milliseconds moment);
  bool TakeInterrupt();
  Came ReadPipe(const Meanwhile& meanwhile, std::string& line);
  Came Edit(const std::string& prompt, const Meanwhile& meanwhile, std::string& text);
  // Waits until the terminal's size has stopped changing.
  void AwaitSize();
  // The next signal's number; 0 if none.
  int TakeSignal();
  bool ReadMore();
  void HideTyping() const;
  void Suspend();

  UniqueFd signals_;
  std::unique_ptr<LineEditor> editor_;  // null: a pipe
  termios before_{};
  std::string read_;                                                  // after the last line
  bool in_paste_ = false;                                             // a paste has begun and not ended
  std::chrono::steady_clock::time_point first_read_{}, last_read_{};  // when the first and the last bytes of read_ came
  bool is_dumb_ = false;
  bool ended_ = false;
  bool editing_ = false;
  // --- for the present edit
  const Meanwhile* meanwhile_ = nullptr;
  const Question* question_ = nullptr;  // null for a message
  std::chrono::steady_clock::time_point answers_from_{};
  bool is_early_ = false;  // the text does not count as an answer
  Came why_ = Came::kEnd;  // the reason for kGivenUp
  std::string answer_key_;
};

}  // namespace reprise
