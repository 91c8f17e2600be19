#pragma once

#include <string>
#include <string_view>

#include "base/system.h"

namespace reprise {

enum class Colour { kNever, kAlways };

// `flag` is the value of --color: "auto", "always" or "never". With "auto", first the environment decides (NO_COLOR,
// then CLICOLOR_FORCE, then TERM=dumb), and then whether the output is a terminal.
Colour DecideColour(std::string_view flag, const Environment& environment, bool is_terminal);

// Emphasis of text at a terminal: attributes and the 16 standard colours, which follow the user's theme, light or dark.
// No backgrounds, and no black, white or grey, which are invisible in one of the two.
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
    kAccent
  };
  using enum Role;

  explicit Style(Colour colour) : colour_(colour) {}

  bool has_colour() const { return colour_ == Colour::kAlways; }

  // `text` in that role; it may hold painted text. Ends with a reset. Painting stops at each line end and begins again
  // after it. Without colour, or for an empty text, returns the text itself.
  std::string Paint(Role role, std::string_view text) const;

 private:
  Colour colour_;
};

// The length of the Style sequence that `text` begins with, or 0.
std::size_t PaintSequence(std::string_view text);
// Ends all painting.
inline constexpr std::string_view kPaintReset = "\x1b[0m";

}  // namespace reprise
