#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/result.h"
#include "terminal/terminal_style.h"

namespace reprise {

// What a key does at the prompt.
struct KeyAction {
  std::string_view name;
  std::string_view usual;   // its keys, between commas
  const wchar_t* function;  // of libedit; null: the key cannot be changed
  std::string_view help;
};

// Every key of the terminal client, in the order in which "?" shows them: which keys do what.
class KeyTable {
 public:
  // The usual keys.
  KeyTable();

  struct Row {
    const KeyAction* action;
    std::vector<std::string> keys;  // "ctrl-x ctrl-e", "shift-tab"
    bool is_chosen = false;         // by Set
  };
  std::span<const Row> rows() const { return rows_; }
  // The rows as lines of at most `width` columns.
  std::vector<std::string> Lines(int width, const Style& style) const;

  // Gives an action other keys: a text, or an array of them; an empty array for none. kInvalidArgument with a message
  // that names what is wrong, as a predicate of the action.
  Result<void> Set(const std::string& action, const Json& keys);
  struct Clash {
    std::string action, key;
  };
  // Takes the keys that were set from the actions that usually have them. Returns a key that was set for two actions,
  // and one of these. Called once, when all are set.
  std::optional<Clash> TakeFromOthers();

 private:
  std::vector<Row> rows_;
};

// The key as libedit's bind command takes it; empty: there is no such key, or it cannot be given to an action.
std::wstring KeySequence(std::string_view key);

// The Esc key, as the editor gets it if it takes it.
inline constexpr std::string_view kEscapeKey = "\x1b";

// What a person has chosen for their terminal.
struct TerminalSettings {
  Colour colour = Colour::kAlways;  // kNever: the theme "none"
  Theme theme = Theme::kTerminal;
  bool is_vi = false;  // the line is edited by vi's keys
  KeyTable keys;
};

// Reads terminal.json, whose text is given. kInvalidArgument: the message names the line and the key that is wrong.
Result<TerminalSettings> ParseTerminalSettings(std::string_view text);

}  // namespace reprise
