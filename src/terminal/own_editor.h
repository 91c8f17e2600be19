#pragma once

#include <optional>
#include <string>

namespace reprise {

// Lets the person change `text` in their own editor: $VISUAL, else $EDITOR, else Debian's `editor`. The text lies in a
// file that only they can read, in $XDG_RUNTIME_DIR if there is one, and is gone afterwards. Nullopt: the editor could
// not be run, or failed, or left no text that could be read. REQUIRES: the terminal is in its usual mode.
std::optional<std::string> EditInOwnEditor(const std::string& text);

}  // namespace reprise
