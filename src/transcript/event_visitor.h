#pragma once

#include <concepts>
#include <string>

#include "reprise/event.h"

namespace reprise {

// A visitor of events: a function for each type, and `Ignoring` for those that it says nothing of. A type that none of
// them takes does not compile. So whoever adds a type of event decides what each of those makes of it that show events.
template <typename... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overload(Functions...) -> Overload<Functions...>;

template <typename Result, typename... Events>
struct Skipping {
  template <typename Event>
  requires(std::same_as<Event, Events> || ...) Result operator()(const Event&) const { return Result(); }
};
template <typename... Events>
using Ignoring = Skipping<void, Events...>;

// Skips the events that a reader of text does not need, because they are counted elsewhere or never stored.
using IgnoredEvents = Skipping<std::string, event::Usage, event::InteractionStarted, event::ThinkingDelta,
                               event::TextDelta, event::ToolOutputDelta, event::InteractionComplete>;

}  // namespace reprise
