#include "terminal/terminal_table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "terminal/wrapped_text.h"

namespace reprise {
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
  int limit = *std::max_element(widths.begin(), widths.end());
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
