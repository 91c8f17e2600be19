#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Pictures at the terminals that can show them.
namespace reprise {

enum class PictureForm {
  kNone,
  kKitty,  // kitty's graphics protocol with Unicode placeholders: a picture is text, which can scroll and be redrawn.
           // PNG
  kITerm,  // OSC 1337: drawn once, over the rows that are left free for it
};

// Asks a terminal what it can show: a trial picture of kitty's protocol, its name (XTVERSION), and what every terminal
// answers (DA1), so that the end of the answers is known.
inline constexpr std::string_view kAskForPictures = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[>q\x1b[c";

// Whether a terminal with this $TERM (and, within tmux or screen, $TMUX or $STY) may be asked. Those within others pass
// nothing on, and the Linux console prints what it does not know.
bool MayBeAsked(std::string_view terminal, bool is_within_another);
PictureForm PictureFormOf(std::string_view answers);

struct PictureSpace {
  int columns = 80, rows = 12;            // at most
  int cell_width = 10, cell_height = 20;  // in pixels
};
struct Picture {
  std::string sequence;            // written once
  std::vector<std::string> lines;  // below it; they may be written again
};
// `number` tells pictures apart. nullopt if this form cannot show these bytes.
std::optional<Picture> DrawPicture(PictureForm form, std::string_view bytes, unsigned number, const PictureSpace& most);

}  // namespace reprise
