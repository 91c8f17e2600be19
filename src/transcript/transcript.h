#pragma once

#include <string>

#include "reprise/interaction.h"

namespace reprise {

// An interaction for reading: the messages, the tools with their results, the end. Safe to print on a terminal.
std::string FormatInteraction(const Interaction& interaction, bool superseded);

// A chat's heading.
std::string FormatHeading(const ChatSummary& summary);

// Date and time to the second, in this machine's time zone: 2025-01-15 10:00:00.
std::string FormatForReading(Timestamp time);

}  // namespace reprise
