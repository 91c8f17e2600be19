#include "terminal/pictures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n", kKittyBegins = "\x1b_G", kStringEnds = "\x1b\\";
constexpr std::size_t kChunk = 4096;  // of base64, the most that kitty takes at once
constexpr char32_t kPlaceholder = 0x10eeee;
// Of a placeholder: the number of its row or column (kitty's rowcolumn-diacritics.txt, from 0 on).
constexpr std::array<char32_t, 20> kNumberMarks = {0x305, 0x30d, 0x30e, 0x310, 0x312, 0x33d, 0x33e,
                                                   0x33f, 0x346, 0x34a, 0x34b, 0x34c, 0x350, 0x351,
                                                   0x352, 0x357, 0x35b, 0x363, 0x364, 0x365};
constexpr unsigned kFirstNumber = 16, kNumbers = 240;  // of the 256 colours that can say which picture is meant

struct Size {
  std::uint32_t width = 0, height = 0;
};

std::uint32_t BigEndian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4)) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// Of a PNG, in pixels.
std::optional<Size> SizeOf(std::string_view bytes) {
  constexpr std::size_t kWidthAt = 16, kHeightAt = 20, kEnd = 24;
  if (!bytes.starts_with(kPng) || bytes.size() < kEnd) return std::nullopt;
  const Size size{BigEndian(bytes.substr(kWidthAt)), BigEndian(bytes.substr(kHeightAt))};
  return size.width == 0 || size.height == 0 ? std::nullopt : std::optional(size);
}

// In cells: as large as it is, or as large as fits.
Size CellsOf(const Size& pixels, const PictureSpace& most) {
  const double width = static_cast<double>(pixels.width) / most.cell_width;
  const double height = static_cast<double>(pixels.height) / most.cell_height;
  const double scale = std::min({1.0, most.columns / width, most.rows / height});
  const auto whole = [](double cells) { return static_cast<std::uint32_t>(std::max(1.0, cells + 0.5)); };
  return {whole(width * scale), whole(height * scale)};
}

std::string KittySequence(std::string_view bytes, unsigned id, const Size& cells) {
  std::string base64, sequence;
  AppendBase64(base64, bytes);
  for (std::size_t at = 0; at < base64.size(); at += kChunk) {
    const bool is_last = at + kChunk >= base64.size();
    sequence += kKittyBegins;
    if (at == 0) {
      sequence += "a=T,U=1,q=2,f=100,i=" + std::to_string(id) + ",c=" + std::to_string(cells.width) +
                  ",r=" + std::to_string(cells.height) + ",";
    }
    sequence += std::string(is_last ? "m=0;" : "m=1;") + base64.substr(at, kChunk) + std::string(kStringEnds);
  }
  return sequence;
}

// Each cell follows the one to its left, so only the first says where it is.
std::vector<std::string> KittyLines(unsigned id, const Size& cells) {
  std::vector<std::string> lines;
  for (std::uint32_t row = 0; row < cells.height; ++row) {
    std::string line = "\x1b[38;5;" + std::to_string(id) + "m" + Utf8Of(kPlaceholder) + Utf8Of(kNumberMarks[row]) +
                       Utf8Of(kNumberMarks[0]);
    for (std::uint32_t column = 1; column < cells.width; ++column) line += Utf8Of(kPlaceholder);
    lines.push_back(line + "\x1b[0m");
  }
  return lines;
}

// The cursor returns to where it was, below the rows that are made free first.
std::string ITermSequence(std::string_view bytes, const Size& cells) {
  const std::string rows = std::to_string(cells.height);
  std::string sequence = std::string(cells.height, '\n') + "\x1b[" + rows + "A\0337";
  sequence += "\x1b]1337;File=inline=1;preserveAspectRatio=1;width=" + std::to_string(cells.width) + ";height=" + rows +
              ";size=" + std::to_string(bytes.size()) + ":";
  AppendBase64(sequence, bytes);
  return sequence + "\a\0338\x1b[" + rows + "B\r";
}

}  // namespace

bool MayBeAsked(std::string_view terminal, bool is_within_another) {
  return !is_within_another && !terminal.empty() &&
         std::ranges::none_of(std::array{"screen", "tmux", "linux", "dumb"},
                              [&](std::string_view other) { return terminal.starts_with(other); });
}

PictureForm PictureFormOf(std::string_view answers) {
  constexpr std::string_view kNamed = "\x1bP>|";
  const std::size_t name = answers.find(kNamed);
  if (name == std::string_view::npos) return PictureForm::kNone;
  const auto is_any_of = [&](auto names) {
    return std::ranges::any_of(
        names, [&](std::string_view each) { return answers.substr(name + kNamed.size()).starts_with(each); });
  };
  // Others show kitty's pictures, but not where placeholders stand.
  const bool shows = answers.find("\x1b_Gi=31;OK") != std::string_view::npos;
  if (shows && is_any_of(std::array{"kitty", "ghostty"})) return PictureForm::kKitty;
  return is_any_of(std::array{"iTerm2", "WezTerm", "mintty"}) ? PictureForm::kITerm : PictureForm::kNone;
}

std::optional<Picture> DrawPicture(PictureForm form, std::string_view bytes, unsigned number,
                                   const PictureSpace& most) {
  const auto pixels = SizeOf(bytes);
  PictureSpace space = most;
  space.rows = std::clamp(most.rows, 1, static_cast<int>(kNumberMarks.size()));
  space.columns = std::max(most.columns, 1);
  if (space.cell_width <= 0 || space.cell_height <= 0) space.cell_width = 10, space.cell_height = 20;
  if (!pixels || form == PictureForm::kNone) return std::nullopt;
  const Size cells = CellsOf(*pixels, space);
  if (form == PictureForm::kITerm) return Picture{.sequence = ITermSequence(bytes, cells), .lines = {}};
  const unsigned id = kFirstNumber + number % kNumbers;
  return Picture{.sequence = KittySequence(bytes, id, cells), .lines = KittyLines(id, cells)};
}

}  // namespace reprise
