#pragma once

#include <concepts>
#include <string>

#include "reprise/event.h"

namespace reprise {

// A visitor of events: a function for each handled type, and `Ignoring` for the others. A missing type does not
// compile, so whoever adds an event decides how each viewer shows it.
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

// Skips events without text for readers: they are counted elsewhere or never stored.
using IgnoredEvents = Skipping<std::string, event::Usage, event::InteractionStarted, event::ThinkingDelta,
                               event::TextDelta, event::SoundDelta, event::ToolOutputDelta, event::InteractionComplete>;

}  // namespace reprise
