#include "terminal/wrapped_text.h"

#include <wchar.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {
namespace {

bool IsPlain(char c) { return c >= ' ' && c < 0x7f; }

// A part of a text: one character, or one sequence of Style, which has no width.
struct TextPart {
  std::string_view text;
  int width;
  bool is_paint;
};

TextPart NextTextPart(std::string_view text) {
  if (IsPlain(text[0])) return {text.substr(0, 1), 1, false};
  if (const std::size_t paint = PaintSequence(text); paint > 0) return {text.substr(0, paint), 0, true};
  const std::string_view character = Utf8Prefix(text, 1);
  const int width = ::wcwidth(static_cast<wchar_t>(CodePointOf(character)));
  return {character, width < 0 ? 1 : width, false};  // libc may be older than the character
}

// The ASCII letters at the beginning of the text, as one part.
TextPart PlainPart(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, [](char c) { return IsPlain(c) && c != ' '; });
  const auto length = static_cast<std::size_t>(end - text.begin());
  return {text.substr(0, length), static_cast<int>(length), false};
}

// Fits words into lines.
class Wrapper {
 public:
  Wrapper(int width, std::string_view first_indent, std::string_view hanging_indent)
      : width_(width), hanging_indent_(hanging_indent), line_(first_indent), used_(DisplayWidth(first_indent)) {}

  void Add(TextPart part) {
    if (part.text == "\n") {
      EndWord();
      EndLine();
    } else if (part.text == " " || part.text == "\t") {
      EndWord();
      ++spaces_;
    } else {
      word_ += part.text;
      word_width_ += part.width;
      word_has_paint_ |= part.is_paint;
      if (!part.is_paint) word_has_text_ = true;
    }
  }

  // Adds a whole line of plain letters. False if it has other characters or does not fit: then add its parts.
  bool AddLine(std::string_view line) {
    if (has_text_ || word_has_text_ || spaces_ != 0 || line.empty() || line.front() == ' ' || line.back() == ' ')
      return false;
    if (used_ + static_cast<int>(std::min(line.size(), static_cast<std::size_t>(width_) + 1)) > width_) return false;
    if (!std::ranges::all_of(line, IsPlain)) return false;
    Append({line, static_cast<int>(line.size()), false});
    return true;
  }

  // Adds a part in its place, spaces too.
  void AddUnbroken(TextPart part) {
    if (used_ + part.width > width_) EndLine();
    Append(part);
  }

  std::vector<std::string> Finish() {
    EndWord();
    lines_.push_back(Closed());
    return std::move(lines_);
  }

 private:
  void EndWord() {
    if (word_has_text_) {
      if (used_ + spaces_ + word_width_ <= width_) {
        line_.append(static_cast<std::size_t>(spaces_), ' ');
        used_ += spaces_;
      } else if (has_text_) {
        EndLine();
      }
      spaces_ = 0;
    }
    if (used_ + word_width_ <= width_ && !word_has_paint_) {
      if (word_has_text_) Append({word_, word_width_, false});
    } else {
      for (std::string_view rest = word_; !rest.empty();) {
        const TextPart part = NextTextPart(rest);
        rest.remove_prefix(part.text.size());
        if (used_ + part.width > width_) EndLine();
        Append(part);
      }
    }
    word_.clear();
    word_width_ = 0;
    word_has_text_ = word_has_paint_ = false;
  }

  void Append(TextPart part) {
    line_ += part.text;
    used_ += part.width;
    if (!part.is_paint) {
      has_text_ = true;
    } else if (part.text == kPaintReset) {
      open_paint_.clear();
    } else {
      open_paint_ += part.text;
    }
  }

  std::string Closed() { return line_ + std::string(open_paint_.empty() ? "" : kPaintReset); }

  void EndLine() {
    lines_.push_back(Closed());
    line_ = hanging_indent_ + open_paint_;
    used_ = DisplayWidth(hanging_indent_);
    has_text_ = false;
    spaces_ = 0;
  }

  const int width_;
  const std::string hanging_indent_;
  std::vector<std::string> lines_;
  std::string line_;
  int used_;               // columns of line_
  bool has_text_ = false;  // whether line_ has text after its indent
  std::string open_paint_;
  int spaces_ = 0;  // before the word
  std::string word_;
  int word_width_ = 0;
  bool word_has_text_ = false, word_has_paint_ = false;
};

}  // namespace

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    TextPart part = PlainPart(text);
    if (part.width == 0) part = NextTextPart(text);
    text.remove_prefix(part.text.size());
    width += part.width;
  }
  return width;
}

std::vector<std::string> Wrap(std::string_view text, int width, std::string_view first_indent,
                              std::string_view hanging_indent) {
  Wrapper wrapper(width, first_indent, hanging_indent);
  bool begins_line = true;
  while (!text.empty()) {
    if (std::exchange(begins_line, false)) {
      const std::string_view line = text.substr(0, text.find('\n'));
      if (wrapper.AddLine(line)) text.remove_prefix(line.size());
      if (text.empty()) break;
    }
    TextPart part = PlainPart(text);
    if (part.width == 0) part = NextTextPart(text);
    text.remove_prefix(part.text.size());
    wrapper.Add(part);
    begins_line = part.text == "\n";
  }
  return wrapper.Finish();
}

std::vector<std::string> HardWrap(std::string_view line, int width, std::string_view first_indent,
                                  std::string_view hanging_indent) {
  Wrapper wrapper(width, first_indent, hanging_indent);
  while (!line.empty()) {
    const TextPart part = NextTextPart(line);
    line.remove_prefix(part.text.size());
    wrapper.AddUnbroken(part);
  }
  return wrapper.Finish();
}

std::string WithoutTabs(std::string_view line, std::string_view mark) {
  if (line.find('\t') == std::string_view::npos) return std::string(line);
  std::string out;
  int column = 0;
  while (!line.empty()) {
    const TextPart part = NextTextPart(line);
    line.remove_prefix(part.text.size());
    if (part.text != "\t") {
      out += part.text;
      column += part.width;
      continue;
    }
    const int columns = 4 - column % 4;
    out += mark;
    out.append(static_cast<std::size_t>(columns - (mark.empty() ? 0 : 1)), ' ');
    column += columns;
  }
  return out;
}

std::string CutToWidth(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::string out;
  bool painted = false;
  int used = 0;
  while (!text.empty()) {
    const TextPart part = NextTextPart(text);
    if (used + part.width > width - 1) break;
    text.remove_prefix(part.text.size());
    out += part.text;
    used += part.width;
    if (part.is_paint) painted = part.text != kPaintReset;
  }
  return out + "…" + std::string(painted ? kPaintReset : "");
}

namespace {

// A character with the marks on it, and what paints it.
struct Cell {
  std::string text, paint;
  int width = 0;
  bool operator==(const Cell&) const = default;
};

std::vector<Cell> CellsOf(std::string_view line) {
  std::vector<Cell> cells;
  std::string paint;
  while (!line.empty()) {
    const TextPart part = NextTextPart(line);
    line.remove_prefix(part.text.size());
    if (part.is_paint) {
      paint = part.text == kPaintReset ? std::string() : paint + std::string(part.text);
    } else if (part.width == 0 && !cells.empty()) {
      cells.back().text += part.text;
    } else {
      cells.push_back({std::string(part.text), paint, part.width});
    }
  }
  return cells;
}

int WidthOf(std::span<const Cell> cells) {
  int width = 0;
  for (const Cell& cell : cells) width += cell.width;
  return width;
}

std::string PaintedText(std::span<const Cell> cells) {
  std::string text, paint;
  for (const Cell& cell : cells) {
    if (cell.paint != paint) text += std::string(paint.empty() ? "" : kPaintReset) + cell.paint;
    paint = cell.paint;
    text += cell.text;
  }
  return text + std::string(paint.empty() ? "" : kPaintReset);
}

}  // namespace

std::vector<std::string_view> CharactersOf(std::string_view text) {
  std::vector<std::string_view> characters;
  while (!text.empty()) {
    const TextPart part = NextTextPart(text);
    if (part.width == 0 && !characters.empty()) {
      const std::string_view last = characters.back();
      characters.back() = {last.data(), last.size() + part.text.size()};
    } else {
      characters.push_back(part.text);
    }
    text.remove_prefix(part.text.size());
  }
  return characters;
}

std::string WithPaintOn(std::string_view line, TextSpan part, std::string_view paint) {
  std::vector<Cell> cells = CellsOf(line);
  for (std::size_t i = part.begin; i < std::min(part.end, cells.size()); ++i) cells[i].paint += paint;
  return PaintedText(cells);
}

LineChange ChangeOfLine(std::string_view before, std::string_view after) {
  const std::vector<Cell> old = CellsOf(before), now = CellsOf(after);
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(old, now).in1 - old.begin());
  std::span<const Cell> old_rest = std::span(old).subspan(same), rest = std::span(now).subspan(same);
  const int column = WidthOf(std::span(now).first(same));
  if (WidthOf(old_rest) != WidthOf(rest)) return {column, PaintedText(rest) + "\x1b[K"};
  while (!rest.empty() && !old_rest.empty() && rest.back() == old_rest.back()) {
    rest = rest.first(rest.size() - 1);
    old_rest = old_rest.first(old_rest.size() - 1);
  }
  return {column, PaintedText(rest)};
}

namespace {

constexpr int kSeparatorWidth = 3;   // " │ "
constexpr int kNarrowestColumn = 8;  // of a wrapped column

std::string Repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::vector<int> NaturalWidths(const TerminalTable& table) {
  std::vector<int> widths;
  for (const std::string& cell : table.header) widths.push_back(DisplayWidth(cell));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  return widths;
}

int Sum(const std::vector<int>& widths) { return std::accumulate(widths.begin(), widths.end(), 0); }

std::vector<int> AtMost(std::vector<int> widths, int limit) {
  for (int& width : widths) width = std::min(width, limit);
  return widths;
}

// Reduces `widths` to `room`, the widest first. Empty if that leaves less than kNarrowestColumn.
std::vector<int> Fitted(const std::vector<int>& widths, int room) {
  if (Sum(widths) <= room) return widths;
  int limit = *std::ranges::max_element(widths);
  while (limit >= kNarrowestColumn && Sum(AtMost(widths, limit)) > room) --limit;
  if (limit < kNarrowestColumn) return {};
  std::vector<int> fitted = AtMost(widths, limit);
  int left = room - Sum(fitted);
  for (std::size_t i = 0; i < fitted.size() && left > 0; ++i) {
    if (fitted[i] < widths[i]) ++fitted[i], --left;
  }
  return fitted;
}

std::string Aligned(const std::string& text, int width, TerminalTable::Alignment alignment) {
  const int room = std::max(0, width - DisplayWidth(text));
  const int before = alignment == TerminalTable::Alignment::kRight    ? room
                     : alignment == TerminalTable::Alignment::kCentre ? room / 2
                                                                      : 0;
  return Repeated(" ", before) + text + Repeated(" ", room - before);
}

void AppendRow(std::vector<std::string>& lines, const TerminalTable& table, const std::vector<std::string>& row,
               const std::vector<int>& widths, const Style& style) {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells.push_back(Wrap(row[i], std::max(2, widths[i])));
    height = std::max(height, cells[i].size());
  }
  for (std::size_t n = 0; n < height; ++n) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string text = n < cells[i].size() ? cells[i][n] : "";
      const bool ends_here = i + 1 == cells.size() && text.empty();
      if (i > 0) line += style.Paint(Style::kDim, ends_here ? " │" : " │ ");
      line += Aligned(text, widths[i], table.alignments[i]);
    }
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(std::move(line));
  }
}

std::vector<std::string> InColumns(const TerminalTable& table, const std::vector<int>& widths, const Style& style) {
  std::vector<std::string> lines;
  AppendRow(lines, table, table.header, widths, style);
  std::string rule;
  for (std::size_t i = 0; i < widths.size(); ++i) rule += (i > 0 ? "─┼─" : "") + Repeated("─", widths[i]);
  lines.push_back(style.Paint(Style::kDim, rule));
  for (const auto& row : table.rows) AppendRow(lines, table, row, widths, style);
  return lines;
}

std::vector<std::string> OneCellALine(const TerminalTable& table, const Style& style, int width) {
  std::vector<std::string> lines;
  const auto append = [&](const std::string& text) {
    const auto wrapped = Wrap(text, width, "", "  ");
    lines.insert(lines.end(), wrapped.begin(), wrapped.end());
  };
  if (table.rows.empty()) {
    for (const std::string& name : table.header) append(name);
  }
  for (const auto& row : table.rows) {
    if (!lines.empty()) lines.push_back(style.Paint(Style::kDim, "──"));
    for (std::size_t i = 0; i < row.size(); ++i) {
      append(table.header[i].empty() ? row[i] : table.header[i] + ": " + row[i]);
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> TableLines(const TerminalTable& table, const Style& style, int width) {
  if (table.header.empty()) return {};
  const int separators = kSeparatorWidth * (static_cast<int>(table.header.size()) - 1);
  const std::vector<int> widths = Fitted(NaturalWidths(table), width - separators);
  return widths.empty() ? OneCellALine(table, style, width) : InColumns(table, widths, style);
}

}  // namespace reprise
