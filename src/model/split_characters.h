#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Joins the characters that a provider splits: the first half of an escaped surrogate pair ends the text of one event
// ("\ud83d"), the second begins the same text of the next event of the same item. Parsers take neither alone, so the
// events are held back from the first half on, until the next event of its item. Not thread-safe.
class SplitCharacters {
 public:
  struct Event {
    std::string data, type;
  };

  // Whether the event must go through Take. A cheap test; most need not.
  bool Wants(std::string_view data) const;
  // The events that may be parsed now, in their order.
  std::vector<Event> Take(Event event);
  // The events held back.
  std::vector<Event> Rest();

 private:
  std::vector<Event> held_;  // the first one has the first half
};

}  // namespace reprise
