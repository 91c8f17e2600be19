#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/terminal_style.h"

namespace reprise {

// What the text before the cursor may become.
struct MenuItem {
  std::string name;      // filters, and is shown
  std::string details;   // shown after it
  std::string line;      // the text that takes its place
  bool is_whole = true;  // Enter also sends the line
};

// The part of a line that a menu completes.
struct MenuPlace {
  std::string id;     // while it stays the same, the menu keeps its items, and stays closed if it was closed
  std::string words;  // the part typed so far, which filters the items
  // Letters of a name may be left out between those that were typed.
  bool takes_gaps = true;
  // The words mean something as they are, whatever the items are.
  bool is_complete = false;
};

// One line for each item, at most `most` of them: those around the chosen one, which is marked. At most `columns` wide.
std::vector<std::string> ItemLines(const std::vector<const MenuItem*>& items, std::size_t chosen, std::size_t most,
                                   int columns, const Style& style);

// How well `name` matches: the less, the better. nullopt if it does not. Letters may differ in case.
std::optional<std::size_t> MatchRank(const MenuPlace& place, std::string_view name);

// A list of what the edited line may become, which filters as the person types. For one thread.
class Menu {
 public:
  struct Source {
    std::function<std::optional<MenuPlace>(const std::string& before_cursor)> place;
    std::function<std::vector<MenuItem>(const std::string& before_cursor)> items;  // called once per place
    std::function<void()> changed;                                                 // the lines must be drawn again
  };
  explicit Menu(Source source) : source_(std::move(source)) {}

  // The text before the cursor is this. `opens`: the person typed it, or asks for the menu. Otherwise a closed menu
  // stays closed, because a text from the history is not being completed.
  void Update(const std::string& before_cursor, bool opens);
  // Opens it even if it was closed.
  void Open(const std::string& before_cursor);
  bool is_open() const { return is_open_; }
  // Stays closed until another part of a line can be completed.
  void Close();
  // The lines were drawn before another key came. Called after Update or Open.
  void MarkSeen() { is_seen_ = true; }
  // The line is over.
  void Forget();
  // Chooses the item above or below.
  void Move(int by);
  // Null if the menu is closed.
  const MenuItem* Chosen() const;
  // What Enter takes. Null also if nobody has seen the choice: the text is not the one that the menu was drawn for, or
  // the key came earlier. Unless the person has moved to an item, null also if what was typed means something in full,
  // or matches only by letters left out.
  const MenuItem* EnteredFor(const std::string& before_cursor) const;
  // All matches, best first; also if the menu is closed.
  std::vector<const MenuItem*> Matches() const;
  // What the lines of all matches begin with.
  std::string CommonLine() const;

  // At most `most` lines of at most `columns` columns.
  std::vector<std::string> Lines(int columns, std::size_t most, const Style& style) const;

 private:
  void Filter();
  // Unless nobody has seen it.
  bool EnterTakes() const;

  const Source source_;
  std::optional<MenuPlace> place_;
  std::string before_;           // the text of the last update
  std::vector<MenuItem> items_;  // of place_
  std::vector<std::size_t> matches_;
  std::size_t chosen_ = 0;       // in matches_
  bool has_moved_ = false;       // the person has chosen that one
  bool is_first_loose_ = false;  // the first match leaves out letters
  bool is_open_ = false, is_closed_by_person_ = false;
  bool is_seen_ = false;
};

}  // namespace reprise
