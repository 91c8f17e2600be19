#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"

namespace reprise {

enum class Colour { kNever, kAlways };

// `flag` is what --color says: "auto", "always" or "never". With "auto" the environment decides (NO_COLOR, then
// CLICOLOR_FORCE, then TERM=dumb), and then whether the output is a terminal.
Colour DecideColour(std::string_view flag, const Environment& environment, bool is_terminal);

// How text stands out at a terminal: attributes and the 16 standard colours, which are those of the user's theme, light
// or dark. No backgrounds, and no black, white or grey, which are invisible in one of the two.
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

  // `text` in that role; it may hold painted text. Ends with a reset. What is painted ends at each line end and begins
  // again after it. Without colour, and for no text, it is the text itself.
  std::string Paint(Role role, std::string_view text) const;

 private:
  Colour colour_;
};

// How long the sequence is that `text` begins with, if it is one that Style writes, or 0.
std::size_t PaintSequence(std::string_view text);
// What ends everything that is painted.
inline constexpr std::string_view kPaintReset = "\x1b[0m";

}  // namespace reprise
