#pragma once

#include <optional>
#include <string>

namespace reprise {

// Lets the person change `text` in their own editor: $VISUAL, else $EDITOR, else Debian's `editor`. The text is in a
// private temporary file, in $XDG_RUNTIME_DIR if set. nullopt if the editor cannot be run, fails, or leaves no readable
// text. REQUIRES: the terminal is in its usual mode.
std::optional<std::string> EditInOwnEditor(const std::string& text);

}  // namespace reprise
