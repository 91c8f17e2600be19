#pragma once

#include <concepts>

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

template <typename... Events>
struct Ignoring {
  template <typename Event>
  requires(std::same_as<Event, Events> || ...) void operator()(const Event&) const {}
};

}  // namespace reprise
