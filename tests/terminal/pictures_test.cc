#include "terminal/pictures.h"

#include <optional>
#include <string>

#include "support/test.h"
#include "terminal/wrapped_text.h"

namespace reprise::test::pictures_test {
namespace {

// The beginning of a PNG of this size.
std::string Png(unsigned char width, unsigned char height) {
  std::string bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0?\0\0\0?\x08\x02\0\0\0", 29);
  bytes[19] = static_cast<char>(width);
  bytes[23] = static_cast<char>(height);
  return bytes;
}

}  // namespace

TEST_CASE("PictureFormOf: a terminal is believed what it says, and nothing else", "[terminal]") {
  const std::string ok = "\x1b_Gi=31;OK\x1b\\", kitty = "\x1bP>|kitty(0.35.2)\x1b\\", end = "\x1b[?62;c";
  CHECK(PictureFormOf(ok + kitty + end) == PictureForm::kKitty);
  CHECK(PictureFormOf(ok + "\x1bP>|ghostty 1.0.1\x1b\\" + end) == PictureForm::kKitty);
  CHECK(PictureFormOf(kitty + end) == PictureForm::kNone);
  CHECK(PictureFormOf("\x1b_Gi=31;EINVAL\x1b\\" + kitty + end) == PictureForm::kNone);
  CHECK(PictureFormOf(ok + "\x1bP>|Konsole 23.08\x1b\\" + end) == PictureForm::kNone);
  CHECK(PictureFormOf("\x1bP>|iTerm2 3.5.0\x1b\\" + end) == PictureForm::kITerm);
  CHECK(PictureFormOf("\x1bP>|XTerm(390)\x1b\\" + end) == PictureForm::kNone);
  CHECK(PictureFormOf(end) == PictureForm::kNone);
  CHECK(PictureFormOf("") == PictureForm::kNone);
}

TEST_CASE("MayBeAsked: nobody is asked who would print it, or pass it on to nobody", "[terminal]") {
  CHECK(MayBeAsked("xterm-kitty", false));
  CHECK_FALSE(MayBeAsked("xterm-kitty", true));
  for (const char* other : {"", "linux", "screen.xterm-256color", "tmux-256color", "dumb"}) {
    CHECK_FALSE(MayBeAsked(other, false));
  }
}

TEST_CASE("DrawPicture: as large as it is, or as large as fits", "[terminal]") {
  const PictureSpace space{.columns = 20, .rows = 6, .cell_width = 10, .cell_height = 20};
  const auto small = DrawPicture(PictureForm::kKitty, Png(40, 40), 3, space);
  REQUIRE(small);
  CHECK(small->sequence.starts_with("\x1b_Ga=T,U=1,q=2,f=100,i=19,c=4,r=2,m=0;"));
  CHECK(small->sequence.ends_with("\x1b\\"));
  REQUIRE(small->lines.size() == 2);
  for (const std::string& line : small->lines) CHECK(DisplayWidth(line) == 4);
  CHECK(small->lines[1].starts_with("\x1b[38;5;19m\U0010eeee\u030d\u0305\U0010eeee"));

  const auto large = DrawPicture(PictureForm::kKitty, Png(255, 255), 0, space);
  REQUIRE(large);
  CHECK(large->lines.size() == 6);
  CHECK(DisplayWidth(large->lines[0]) == 12);

  const auto drawn_once = DrawPicture(PictureForm::kITerm, Png(40, 40), 0, space);
  REQUIRE(drawn_once);
  CHECK(drawn_once->lines.empty());
  CHECK(drawn_once->sequence.find("width=4;height=2;") != std::string::npos);
}

TEST_CASE("DrawPicture: what is no picture is not drawn", "[terminal]") {
  CHECK_FALSE(DrawPicture(PictureForm::kKitty, "", 0, {}));
  CHECK_FALSE(DrawPicture(PictureForm::kKitty, Png(0, 8), 0, {}));
  CHECK_FALSE(DrawPicture(PictureForm::kKitty, Png(8, 8).substr(0, 20), 0, {}));
  CHECK_FALSE(DrawPicture(PictureForm::kKitty, "\xff\xd8\xff", 0, {}));
  CHECK_FALSE(DrawPicture(PictureForm::kNone, Png(8, 8), 0, {}));
  CHECK(DrawPicture(PictureForm::kKitty, Png(8, 8), 0, {.columns = 0, .rows = 0, .cell_width = 0, .cell_height = 0}));
}

}  // namespace reprise::test::pictures_test
