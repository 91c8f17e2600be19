#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/system.h"

namespace reprise {

enum class Colour { kNever, kAlways };

// `flag` is the value of --color: "auto", "always" or "never". With "auto", first the environment decides (NO_COLOR,
// then CLICOLOR_FORCE, then TERM=dumb), and then whether the output is a terminal.
Colour DecideColour(std::string_view flag, const Environment& environment, bool is_terminal);

// kTerminal: attributes and the 16 standard colours, which follow the terminal's own theme, light or dark. No
// backgrounds, and no black, white or grey, which are invisible in one of the two. The others have colours of their
// own, among 256.
enum class Theme { kTerminal, kDark, kLight };
// "terminal", "dark" or "light".
std::optional<Theme> ThemeNamed(std::string_view name);

// Emphasis of text at a terminal.
class Style {
 public:
  enum class Role {
    kPlain,
    kBold,
    kDim,
    kItalic,
    kUnderlined,
    kCode,
    kHeading,
    kLink,
    kStruck,
    kAdded,
    kRemoved,
    kWarning,
    kError,
    kAccent,
    // of programs
    kKeyword,
    kString,
    kNumber,
    kComment,
    // of lines of a diff, and what has changed in them
    kAddedLine,
    kRemovedLine,
    kAddedPart,
    kRemovedPart
  };
  using enum Role;

  explicit Style(Colour colour, Theme theme = Theme::kTerminal) : colour_(colour), theme_(theme) {}

  bool has_colour() const { return colour_ == Colour::kAlways; }
  // Whether lines of a diff have a background, on which code can have its colours.
  bool has_backgrounds() const { return has_colour() && theme_ != Theme::kTerminal; }
  // What begins the role; empty without colour.
  std::string_view Sequence(Role role) const;

  // `text` in that role; it may hold painted text. Ends with a reset. Painting stops at each line end and begins again
  // after it. Without colour, or for an empty text, returns the text itself.
  std::string Paint(Role role, std::string_view text) const;

 private:
  Colour colour_;
  Theme theme_;
};

// The length of the Style sequence that `text` begins with, or 0.
std::size_t PaintSequence(std::string_view text);
// Ends all painting.
inline constexpr std::string_view kPaintReset = "\x1b[0m";

}  // namespace reprise
