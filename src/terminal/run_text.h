#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"
#include "terminal/terminal_style.h"

namespace reprise {

// A file of a message or a tool's result, on one line: "[x.png, 12 KB]", and its note.
std::string FileText(const Attachment& file);

// A person's next step after a run has failed with this error code, as a sentence for the client's commands. `model` is
// the run's: "openai/gpt-4o".
std::string NextStep(std::string_view code, std::string_view model);

// A command's output as lines for a terminal. Colours and attributes (SGR) are drawn if `style` has colour, except
// those that could make text invisible; backgrounds are dropped, and other colours become the nearest of Style's. Of
// text overwritten by carriage returns, the last state is shown. Other control sequences are dropped, other hidden
// characters spelled out (VisibleLine), and many blank lines become their number.
std::vector<std::string> OutputLines(std::string_view text, const Style& style);

}  // namespace reprise
