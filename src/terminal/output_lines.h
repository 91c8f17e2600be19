#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "terminal/terminal_style.h"

namespace reprise {

// What a command has printed, as lines for a terminal: its colours and attributes (SGR) are drawn if `style` has
// colour, but for those that could make text invisible; backgrounds are left out, and other colours become the nearest
// of Style's. Of what is written over itself by carriage returns the last state is left. Other sequences that steer a
// terminal are dropped, everything else hidden is spelled out (VisibleLine), and of many blank lines their number is
// told.
std::vector<std::string> OutputLines(std::string_view text, const Style& style);

}  // namespace reprise
