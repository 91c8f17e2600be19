#include "terminal/key_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr KeyAction kActions[] = {
    {"send", "enter", nullptr, "sends the message"},
    {"newline", "alt-enter, ctrl-j, shift-enter", L"reprise-newline", "begins another line"},
    {"stop", "esc, ctrl-c", nullptr, "stops the run; Ctrl-C also clears the line, and twice leaves"},
    {"back", "esc esc", nullptr, "goes back to the last message"},
    {"complete", "tab", L"reprise-complete", "completes commands, their arguments and @files"},
    {"earlier", "up, ctrl-p", L"reprise-up", "the line above, or an earlier message of this folder"},
    {"later", "down, ctrl-n", L"reprise-down", "the line below, or a later message"},
    {"search", "ctrl-r", L"reprise-search", "searches the messages of all chats of this folder"},
    {"mode", "shift-tab", L"reprise-mode", "goes on to the next mode"},
    {"unfold", "ctrl-o", L"reprise-unfold", "unfolds what was folded last; pressed again, all"},
    {"transcript", "ctrl-t", L"reprise-transcript", "shows the whole chat in your pager"},
    {"picture", "ctrl-v", L"reprise-picture", "attaches the picture in the clipboard"},
    {"editor", "ctrl-g, ctrl-x ctrl-e", L"reprise-editor", "opens the message in your editor"},
    {"line-begin", "ctrl-a, home", L"ed-move-to-beg", "moves to the beginning"},
    {"line-end", "ctrl-e, end", L"ed-move-to-end", "moves to the end"},
    {"word-left", "alt-b, ctrl-left", L"ed-prev-word", "moves back by a word"},
    {"word-right", "alt-f, ctrl-right", L"em-next-word", "moves on by a word"},
    {"delete-word", "ctrl-w", L"ed-delete-prev-word", "deletes the word before the cursor"},
    {"delete-line", "ctrl-u", L"em-kill-line", "deletes the text"},
    {"delete-rest", "ctrl-k", L"ed-kill-line", "deletes what follows the cursor"},
    {"insert-deleted", "ctrl-y", L"em-yank", "inserts what was deleted last"},
    {"redraw", "ctrl-l", L"reprise-redraw", "draws the screen again"},
    {"keys", "?", nullptr, "at an empty line: shows these keys"},
    {"leave", "ctrl-d", nullptr, "leaves, at an empty line"},
    {"suspend", "ctrl-z", nullptr, "stops this program until `fg`"},
};

std::vector<std::string> KeysIn(std::string_view list) {
  std::vector<std::string> keys;
  while (!list.empty()) {
    const std::string_view key = list.substr(0, list.find(','));
    list.remove_prefix(std::min(key.size() + 1, list.size()));
    keys.emplace_back(Trimmed(key));
  }
  return keys;
}

std::wstring SequenceOfOne(std::string_view key) {
  constexpr std::pair<std::string_view, const wchar_t*> kNamed[] = {{"enter", L"^M"},
                                                                    {"tab", L"^I"},
                                                                    {"shift-tab", L"\\e[Z"},
                                                                    {"up", L"\\e[A"},
                                                                    {"down", L"\\e[B"},
                                                                    {"home", L"\\e[1~"},
                                                                    {"end", L"\\e[4~"},
                                                                    {"ctrl-left", L"\\e[1;5D"},
                                                                    {"ctrl-right", L"\\e[1;5C"},
                                                                    {"alt-enter", L"\\e\\r"},
                                                                    {"shift-enter", L"\\e\\r"}};
  for (const auto& [name, sequence] : kNamed) {
    if (key == name) return sequence;
  }
  const bool has_letter = key.size() == 6 && key.starts_with("ctrl-") && IsAsciiLetter(key[5]);
  if (has_letter) return L"^" + std::wstring(1, static_cast<wchar_t>(key[5] - 'a' + 'A'));
  constexpr std::string_view kWithAlt = "bcdflu";  // the others are Esc and a letter
  const bool has_alt = key.size() == 5 && key.starts_with("alt-") && kWithAlt.find(key[4]) != std::string_view::npos;
  return has_alt ? L"\\e" + std::wstring(1, static_cast<wchar_t>(key[4])) : std::wstring();
}

// Whether a terminal sends the same for both, or one is the beginning of the other.
bool AreOneKey(std::string_view first, std::string_view second) {
  const std::wstring one = KeySequence(first), other = KeySequence(second);
  if (one.empty() || other.empty()) return first == second;
  return one.starts_with(other) || other.starts_with(one);
}

// The keys that stay as they are, because nothing else could stop, send or leave.
bool IsFixed(std::string_view key) {
  return std::ranges::any_of(kActions, [&](const KeyAction& action) {
    return action.function == nullptr &&
           std::ranges::any_of(KeysIn(action.usual), [&](const std::string& fixed) { return AreOneKey(fixed, key); });
  });
}

// "ctrl-x ctrl-e" as people write it: "Ctrl-X Ctrl-E".
std::string ShownKey(std::string key) {
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool begins = i == 0 || key[i - 1] == '-' || key[i - 1] == ' ';
    if (begins && IsAsciiLetter(key[i])) key[i] = static_cast<char>(key[i] & ~0x20);
  }
  return key;
}

Error Wrong(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

// The number of the line that holds a member's name.
std::string LineOf(std::string_view text, const std::string& name) {
  const std::size_t at = text.find("\"" + name + "\"");
  return "line " + std::to_string(std::ranges::count(text.substr(0, std::min(at, text.size())), '\n') + 1);
}

Result<void> SetKeys(const Json& given, std::string_view text, KeyTable& keys) {
  if (!given.is_object())
    return Fail(Wrong(LineOf(text, "keys") + ": keys must be an object of actions and their keys"));
  for (const auto& [action, chosen] : given.items()) {
    if (const auto set = keys.Set(action, chosen); !set) {
      return Fail(Wrong(LineOf(text, action) + ": " + VisibleLine(action) + " " + set.error().message));
    }
  }
  const auto clash = keys.TakeFromOthers();
  if (!clash) return {};
  return Fail(
      Wrong(LineOf(text, clash->action) + ": " + clash->key + " has two actions, one of them " + clash->action));
}

}  // namespace

std::wstring KeySequence(std::string_view key) {
  std::wstring whole;
  while (!key.empty()) {
    const std::string_view one = key.substr(0, key.find(' '));
    key.remove_prefix(std::min(one.size() + 1, key.size()));
    const std::wstring sequence = SequenceOfOne(one);
    if (sequence.empty()) return {};
    whole += sequence;
  }
  return whole;
}

KeyTable::KeyTable() {
  for (const KeyAction& action : kActions) rows_.push_back({&action, KeysIn(action.usual)});
}

Result<void> KeyTable::Set(const std::string& action, const Json& keys) {
  const auto row = std::ranges::find_if(rows_, [&](const Row& each) { return each.action->name == action; });
  if (row == rows_.end() || row->action->function == nullptr) {
    std::vector<std::string> known;
    for (const Row& each : rows_) {
      if (each.action->function != nullptr) known.emplace_back(each.action->name);
    }
    if (row != rows_.end()) return Fail(Wrong("cannot have other keys"));
    return Fail(Wrong("is no action" + DidYouMean(action, known) + " (\"?\" lists them)"));
  }
  std::vector<std::string> chosen;
  for (const Json& key : keys.is_array() ? keys : Json::array({keys})) {
    if (!key.is_string()) return Fail(Wrong("must be a key or an array of keys, such as \"ctrl-g\""));
    const std::string name = LowerCase(key.get<std::string>());
    if (IsFixed(name)) return Fail(Wrong("cannot have " + name + ", which always does the same"));
    if (KeySequence(name).empty()) {
      return Fail(
          Wrong("cannot have " + VisibleLine(name) +
                ": keys are ctrl- and a letter, alt- and one of b, c, d, f, "
                "l, u, and tab, shift-tab, up, down, home, end, ctrl-left, ctrl-right, alt-enter, shift-enter"));
    }
    chosen.push_back(name);
  }
  row->keys = std::move(chosen);
  row->is_chosen = true;
  return {};
}

std::optional<KeyTable::Clash> KeyTable::TakeFromOthers() {
  for (const Row& chosen : rows_) {
    if (!chosen.is_chosen) continue;
    for (const std::string& key : chosen.keys) {
      for (Row& other : rows_) {
        if (&other == &chosen) continue;
        const auto is_same = [&](const std::string& each) { return AreOneKey(each, key); };
        const bool has_key = std::ranges::any_of(other.keys, is_same);
        if (has_key && other.is_chosen) return Clash{std::string(other.action->name), key};
        if (has_key) std::erase_if(other.keys, is_same);
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> KeyTable::Lines(int width, const Style& style) const {
  std::vector<std::string> lines;
  constexpr int kColumn = 32, kNarrowest = 60;
  for (const Row& row : rows_) {
    std::string keys;
    for (const std::string& key : row.keys) keys += (keys.empty() ? "" : ", ") + ShownKey(key);
    const bool is_narrow = width < kNarrowest;
    if (!is_narrow) keys = Padded(keys, kColumn);
    const std::string name = style.Paint(Style::kBold, keys) + (is_narrow ? ": " : " ");
    for (std::string& line : Wrap(row.action->help, width, name, is_narrow ? "  " : std::string(kColumn + 1, ' '))) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

Result<TerminalSettings> ParseTerminalSettings(std::string_view text) {
  const auto parsed = ParseJsonWithComments(text);
  if (!parsed) return Fail(Wrong(parsed.error().message));
  if (!parsed->is_object()) return Fail(Wrong("must be an object"));
  TerminalSettings settings;
  static const std::vector<std::string> known = {"theme", "editing", "keys"};
  for (const auto& [name, value] : parsed->items()) {
    const std::string given = value.is_string() ? value.get<std::string>() : "";
    const std::string where = LineOf(text, name) + ": ";
    if (name == "theme" && given == "none") {
      settings.colour = Colour::kNever;
    } else if (name == "theme") {
      const auto theme = ThemeNamed(given);
      if (!theme) return Fail(Wrong(where + "theme must be terminal, dark, light or none"));
      settings.theme = *theme;
    } else if (name == "editing") {
      if (given != "emacs" && given != "vi") return Fail(Wrong(where + "editing must be emacs or vi"));
      settings.is_vi = given == "vi";
    } else if (name == "keys") {
      TRY(SetKeys(value, text, settings.keys));
    } else {
      return Fail(Wrong(where + VisibleLine(name) + " is not a setting of the terminal" + DidYouMean(name, known) +
                        " (theme, editing, keys)"));
    }
  }
  return settings;
}

}  // namespace reprise
