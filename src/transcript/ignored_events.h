#pragma once

#include <string>

#include "reprise/event.h"

namespace reprise {

// Events that say nothing to a reader: they are counted elsewhere, or never stored. For writers to inherit.
struct IgnoredEvents {
  std::string operator()(const event::Usage&) const { return {}; }
  std::string operator()(const event::InteractionStarted&) const { return {}; }
  std::string operator()(const event::ThinkingDelta&) const { return {}; }
  std::string operator()(const event::TextDelta&) const { return {}; }
  std::string operator()(const event::ToolOutputDelta&) const { return {}; }
  std::string operator()(const event::InteractionComplete&) const { return {}; }
};

}  // namespace reprise
