#pragma once

#include <string>

#include "reprise/interaction.h"

namespace reprise {

// An interaction for reading: who said what, which tools ran with what result, how it ended. Safe to print on a
// terminal.
std::string FormatInteraction(const Interaction& interaction, bool superseded);

// A chat's heading.
std::string FormatHeading(const ChatSummary& summary);

// Date and time to the second, as the clock of this machine shows it: 2025-01-15 10:00:00.
std::string FormatForReading(Timestamp time);

}  // namespace reprise
