#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "terminal/key_table.h"
#include "terminal/menu.h"

namespace reprise {

// The source of a LineEditor's keys.
class KeySource {
 public:
  enum class Came {
    kKey,
    kGivenUp,  // the edit is over, for a reason that the source knows
    kSuspend,
    kResized,
  };

  virtual ~KeySource() = default;
  // Blocks for the next key (Key::Kind::kEdits, see keys.h), or for another event of the person or the program.
  virtual Came NextKey(std::string& key) = 0;
  // Whether a key, or a part of one, has arrived already.
  virtual bool HasKey() const = 0;
  // The editor knows the terminal's new size; the source must draw the screen again.
  virtual void Resized() = 0;
  // Restores the terminal's mode for another program, and takes it back.
  virtual void LeaveTerminal() = 0;
  virtual void ReturnToTerminal() = 0;
};

// Edits a text on the terminal: cursor keys, history, wide characters, and pastes with all their line ends and control
// characters. For one thread. Outside of Edit the terminal is in its former mode.
class LineEditor {
 public:
  // Null if standard input is no terminal, if neither stdout nor stderr is one, or if the library (libedit) is missing.
  // `keys` must outlive it. Call it before any thread starts, because it sets the process's locale for characters.
  static std::unique_ptr<LineEditor> Open(KeySource& keys, bool can_move_cursor);
  virtual ~LineEditor() = default;

  enum class Came {
    kLine,
    kEnd,      // Ctrl-D on an empty line
    kGivenUp,  // by the source; `text` is the present text
  };
  // Shows `prompt` (without line ends) and edits `text` until Enter. After kGivenUp, the next Edit continues with the
  // cursor at its place.
  virtual Came Edit(const std::string& prompt, std::string& text) = 0;
  // Whether the text is empty. REQUIRES: an Edit runs.
  virtual bool IsEmpty() const = 0;
  // Adds a text to the history, which cursor-up in the first line brings back.
  virtual void Remember(const std::string& text) = 0;
  // Adds texts, oldest first, before all others of the history.
  virtual void RememberOlder(const std::vector<std::string>& texts) = 0;
  // Clears the history.
  virtual void ForgetAll() = 0;
  // The history, oldest first.
  virtual std::vector<std::string> Remembered() const = 0;
  // Uses these keys from the next Edit on.
  virtual void SetKeys(const KeyTable& keys, bool is_vi) = 0;

  // Offers completions of the line, and takes its keys while it is open: the arrows, Tab and Enter. It must outlive the
  // editor.
  virtual void SetMenu(Menu& menu) = 0;
  // Whether a menu was open.
  virtual bool CloseMenu() = 0;
  // Whether the Esc key is the editor's own, as in vi.
  virtual bool TakesEscape() const = 0;
  // Keys with an effect outside of the line. kOlder: older texts of the history are wanted.
  enum class Command { kUnfold, kTranscript, kNextMode, kSearch, kShowKeys, kOlder, kPicture };
  struct Hooks {
    // Gets kTranscript while the terminal is in its former mode, for a program of its own.
    std::function<void(Command)> run{};
    // Tells the person what failed; the screen is drawn again afterwards.
    std::function<void(const std::string&)> complain{};
    // Returns what a paste behind the text `before` stands for.
    std::function<std::string(const std::string& before, const std::string& pasted)> read_paste{};
  };
  virtual void SetHooks(Hooks hooks) = 0;

  // --- for drawing above the edited line
  // Draws the whole screen, with Redraw, because the number of rows of prompt and text has changed.
  virtual void SetDrawAll(std::function<void()> draw) = 0;
  // The rows of prompt and text above the cursor, as last drawn, and the rows that Redraw draws: a long text is seen
  // through a window of half the terminal's height.
  virtual int RowsAboveCursor() const = 0;
  virtual int Rows() const = 0;
  // Draws prompt and text again. REQUIRES: the cursor is at the beginning of an empty line.
  virtual void Redraw() = 0;
};

}  // namespace reprise
