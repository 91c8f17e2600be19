#include "terminal/markdown_stream.h"

#include <charconv>
#include <iterator>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostHeldBytes = 64 * 1024;
constexpr std::size_t kMostHeldLines = 200;
constexpr std::size_t kLongestRepeatedHead = 4 * 1024;

// These functions read lines as CommonMark does, as far as needed to find the ends of the document's own blocks. md4c
// reads the inside of blocks.

struct IndentedLine {
  std::size_t columns;
  std::string_view text;  // the rest of the line
};

IndentedLine IndentOf(std::string_view line) {
  std::size_t columns = 0;
  std::size_t at = 0;
  for (; at < line.size() && (line[at] == ' ' || line[at] == '\t'); ++at) {
    columns += line[at] == '\t' ? 4 - columns % 4 : 1;
  }
  return {columns, line.substr(at)};
}

// Removes up to `columns` columns of its indent.
std::string WithoutIndent(std::string_view line, std::size_t columns) {
  const auto [indent, text] = IndentOf(line);
  return std::string(indent > columns ? indent - columns : 0, ' ') + std::string(text);
}

bool IsBlankLine(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

std::size_t CountOf(std::string_view text, char c) { return std::min(text.find_first_not_of(c), text.size()); }

bool IsHeading(std::string_view text) {
  const std::size_t level = CountOf(text, '#');
  return level >= 1 && level <= 6 && (text.size() == level || text[level] == ' ' || text[level] == '\t');
}

bool IsRule(std::string_view text) {
  if (text.empty() || std::string_view("*-_").find(text[0]) == std::string_view::npos) return false;
  const char marks[] = {text[0], ' ', '\t', '\0'};
  return text.find_first_not_of(marks) == std::string_view::npos && std::ranges::count(text, text[0]) >= 3;
}

bool IsUnderline(std::string_view text) {  // of a heading
  return (text.starts_with('=') || text.starts_with('-')) && IsBlankLine(text.substr(CountOf(text, text[0])));
}

bool IsFence(std::string_view text) {
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return false;
  const std::size_t length = CountOf(text, text[0]);
  return length >= 3 && (text[0] == '~' || text.find('`', length) == std::string_view::npos);
}

struct ItemMark {
  char kind;  // '-', '+', '*', '.' or ')'
  std::optional<unsigned> number;
  std::size_t width;         // without the space after it
  std::string_view content;  // with that space
};

std::optional<ItemMark> ItemMarkOf(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 9 || digits == text.size()) return std::nullopt;
  const std::string_view content = text.substr(digits + 1);
  if (!content.empty() && content[0] != ' ' && content[0] != '\t') return std::nullopt;
  if (std::string_view(digits == 0 ? "-+*" : ".)").find(text[digits]) == std::string_view::npos) return std::nullopt;
  ItemMark mark{text[digits], std::nullopt, digits + 1, content};
  if (digits > 0) std::from_chars(text.data(), text.data() + digits, mark.number.emplace());
  return mark;
}

// Whether a block begins here even where a paragraph could continue.
bool BeginsBlock(std::string_view line) {
  const auto [indent, text] = IndentOf(line);
  return indent < 4 && (IsHeading(text) || IsRule(text) || IsFence(text) || text.starts_with('>') || ItemMarkOf(text));
}

// A list that begins with a number other than 1, or with an empty item, is text of the paragraph.
bool InterruptsParagraph(std::string_view line) {
  if (!BeginsBlock(line)) return false;
  const std::string_view text = IndentOf(line).text;
  const auto mark = IsRule(text) ? std::nullopt : ItemMarkOf(text);
  return !mark || (mark->number.value_or(1) == 1 && !IsBlankLine(mark->content));
}

// The separators of a table row: each `|` that is not in code.
std::vector<std::size_t> SeparatorsOf(std::string_view row) {
  const std::size_t end = row.find_last_not_of(" \t|\n") + 1;
  std::vector<std::size_t> separators;
  std::size_t at = row.find_first_not_of(" \t");
  if (at < end && row[at] == '|') ++at;
  while (at < end) {
    if (row[at] == '`') {
      const std::string_view ticks = row.substr(at, CountOf(row.substr(at), '`'));
      at += ticks.size();
      for (std::size_t close = at; (close = row.find(ticks, close)) < end;) {
        const std::size_t length = CountOf(row.substr(close), '`');
        close += length;
        if (length != ticks.size()) continue;
        at = close;
        break;
      }
      continue;
    }
    if (row[at] == '|') separators.push_back(at);
    at += row[at] == '\\' ? 2 : 1;
  }
  return separators;
}

std::size_t ColumnsOf(std::string_view row) { return SeparatorsOf(row).size() + 1; }

// Joins cells beyond the last column to that one, because md4c would not show them.
std::string WithinColumns(std::string row, std::size_t columns) {
  const std::vector<std::size_t> separators = SeparatorsOf(row);
  for (std::size_t n = separators.size(); n >= columns && n > 0; --n) row.insert(separators[n - 1], "\\");
  return row;
}

// Gives each column at least three dashes, because md4c takes no fewer.
std::string WithLongDashes(std::string_view delimiter_row) {
  std::string out;
  while (!delimiter_row.empty()) {
    const std::size_t dashes = CountOf(delimiter_row, '-');
    out += dashes > 0 ? std::string(std::max<std::size_t>(dashes, 3), '-') : std::string(1, delimiter_row[0]);
    delimiter_row.remove_prefix(std::max<std::size_t>(dashes, 1));
  }
  return out;
}

bool IsDelimiterRow(std::string_view line) {
  return line.find('|') != std::string_view::npos && line.find('-') != std::string_view::npos &&
         line.find_first_not_of("|-: \t") == std::string_view::npos;
}

// "[name]: address" defines a link, and md4c would hide it, so a backslash makes it text. A `[` that does not end on
// its line may begin one, too.
std::string WithDefinitionAsText(std::string line) {
  std::string_view rest = line;
  for (bool deeper = true; deeper;) {
    rest = IndentOf(rest).text;
    deeper = false;
    if (rest.starts_with('>')) {
      rest.remove_prefix(1);
      deeper = true;
    } else if (const auto mark = ItemMarkOf(rest)) {
      rest = mark->content;
      deeper = true;
    }
  }
  if (!rest.starts_with('[')) return line;
  std::size_t end = 1;
  while (end < rest.size() && rest[end] != ']') end += rest[end] == '\\' ? 2 : 1;
  const bool is_other = end < rest.size() && !rest.substr(end + 1).starts_with(':');
  if (!is_other) line.insert(line.size() - rest.size(), "\\");
  return line;
}

}  // namespace

std::vector<std::string> MarkdownStream::Add(std::string_view delta) {
  TakeBytes(delta);
  return std::exchange(out_, {});
}

std::vector<std::string> MarkdownStream::End() {
  if (line_has_begun_ || !line_.empty()) {
    std::string rest = Indented(std::exchange(line_, {}), "");
    line_has_begun_ ? TakePartOfLine(std::move(rest)) : TakeLine(std::move(rest));
  }
  EndBlock();
  line_has_begun_ = follows_blank_ = gap_is_due_ = false;
  is_first_ = true;
  last_block_ = Block::kNone;
  return std::exchange(out_, {});
}

std::vector<std::string> MarkdownStream::Tail() const {
  std::string_view whole_characters = line_;
  whole_characters.remove_suffix(IncompleteUtf8Tail(line_));
  if (whole_characters.ends_with('\r')) whole_characters.remove_suffix(1);  // its line feed may follow
  const std::string line = Indented(whole_characters, "");

  std::vector<std::string> lines;
  if (is_plain_ || line_has_begun_) {
    lines = PlainLines(line, width_);
  } else if (block_ == Block::kFence) {
    const bool may_be_end = CountOf(line, fence_) == line.size();
    CodeColours colours = colours_;  // the line is not final
    if (!may_be_end) lines = CodeLine(WithoutIndent(line, fence_indent_), colours, style_, width_);
  } else if (!repeats_head_ || !line.empty()) {
    const std::string blank(std::min<std::size_t>(blank_lines_, 1), '\n');
    lines = Drawn(held_ + (line.empty() ? "" : blank + WithDefinitionAsText(line)));
  }
  const bool gap = block_ == Block::kNone ? !is_first_ : gap_is_due_;
  if (gap && !lines.empty()) lines.insert(lines.begin(), "");
  return lines;
}

// Takes text by bytes alone, so that the lines do not depend on the pieces.
void MarkdownStream::TakeBytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t room = kMostHeldBytes - line_.size();
    const std::size_t end = bytes.substr(0, room).find('\n');
    line_ += bytes.substr(0, std::min(end, room));
    bytes.remove_prefix(std::min({end, room, bytes.size()}));
    if (end != std::string_view::npos) {
      bytes.remove_prefix(1);
      if (line_.ends_with('\r')) line_.pop_back();
      std::string line = Indented(std::exchange(line_, {}), "");
      std::exchange(line_has_begun_, false) ? TakePartOfLine(std::move(line)) : TakeLine(std::move(line));
    } else if (line_.size() == kMostHeldBytes) {
      const std::size_t incomplete = IncompleteUtf8Tail(line_);
      std::string rest = line_.substr(line_.size() - incomplete);
      line_.resize(line_.size() - incomplete);
      std::string part = Indented(std::exchange(line_, std::move(rest)), "");
      if (!std::exchange(line_has_begun_, true)) {
        TakeLine(std::move(part));
      } else {
        TakePartOfLine(std::move(part));
      }
    }
  }
}

void MarkdownStream::TakeLine(std::string line) {
  if (block_ == Block::kFence) return TakeFenceLine(line);
  if (IsBlankLine(line)) {
    if (block_ == Block::kItem || block_ == Block::kIndentedCode) {
      ++blank_lines_;
    } else {
      EndBlock();
      follows_blank_ = true;
    }
    return;
  }
  if (block_ != Block::kNone && GoesOn(line)) return;
  Begin(line);
}

// Takes the second and later parts of a very long line, as text of the open block.
void MarkdownStream::TakePartOfLine(std::string part) {
  if (block_ == Block::kFence || block_ == Block::kIndentedCode) return EmitCode(part, 0);
  if (block_ == Block::kNone) {
    block_ = Block::kParagraph;  // or a heading, for example
    gap_is_due_ = false;
  }
  if (!is_plain_) {
    DrawHeld();
    is_plain_ = true;
  }
  drawn_bytes_ += part.size();
  Emit(PlainLines(part, width_));
}

// Whether `line`, which is not blank, belongs to the open block. If not, that block has ended.
bool MarkdownStream::GoesOn(std::string_view line) {
  bool goes_on = false;
  switch (block_) {
    case Block::kNone:
    case Block::kFence:
      break;
    case Block::kParagraph:
      return ParagraphGoesOn(line);
    case Block::kItem:
      return ItemGoesOn(line);
    case Block::kTable:
      goes_on = !BeginsBlock(line);
      break;
    case Block::kQuote: {
      const auto [indent, text] = IndentOf(line);
      goes_on = (indent < 4 && text.starts_with('>')) || !BeginsBlock(line);
      break;
    }
    case Block::kIndentedCode:
      if (IndentOf(line).columns < 4) break;
      for (; blank_lines_ > 0; --blank_lines_) Emit({""});
      EmitCode(line, 4);
      return true;
  }
  goes_on ? Hold(std::string(line)) : EndBlock();
  return goes_on;
}

bool MarkdownStream::ParagraphGoesOn(std::string_view line) {
  const auto [indent, text] = IndentOf(line);
  if (indent < 4 && IsUnderline(text) && !is_plain_) {
    Hold(std::string(line));
    EndBlock();
    last_block_ = Block::kNone;  // a heading
    return true;
  }
  if (InterruptsParagraph(line)) {
    EndBlock();
    return false;
  }
  std::string text_line(line);
  if (IsDelimiterRow(line) && !is_plain_) {
    const bool begins_table = BeginTable(line);
    // To md4c it would be a table with fewer or more columns than its head.
    begins_table ? void(text_line = WithLongDashes(line)) : void(text_line.insert(line.find('|'), "\\"));
  }
  Hold(std::move(text_line));
  return true;
}

// Whether the paragraph's last line is the head of a table. The earlier lines then become a paragraph, which md4c would
// not recognize.
bool MarkdownStream::BeginTable(std::string_view delimiter_row) {
  if (held_lines_ == 0) return false;
  const std::size_t before = held_.rfind('\n', held_.size() - 2);
  const std::string head = held_.substr(before == std::string::npos ? 0 : before + 1);
  if (head.find('|') == std::string::npos || ColumnsOf(head) != ColumnsOf(delimiter_row)) return false;
  if (before != std::string::npos) {
    held_.resize(before + 1);
    EndBlock();
    gap_is_due_ = !is_first_;
    held_ = head;
    held_lines_ = 1;
  }
  block_ = Block::kTable;
  table_columns_ = ColumnsOf(head);
  table_head_ = head + WithLongDashes(delimiter_row) + '\n';
  return true;
}

bool MarkdownStream::ItemGoesOn(std::string_view line) {
  const auto [indent, text] = IndentOf(line);
  if (indent >= item_indent_ || (blank_lines_ == 0 && !BeginsBlock(line))) {
    for (; blank_lines_ > 0; --blank_lines_) Hold("");
    Hold(std::string(line));
    return true;
  }
  const auto mark = indent < 4 && !IsRule(text) ? ItemMarkOf(text) : std::nullopt;
  const bool is_next = mark && mark->kind == item_mark_;
  const auto number = item_number_;
  const bool loose = blank_lines_ > 0;
  EndBlock();
  if (!is_next) {
    follows_blank_ = loose;
    return false;
  }
  BeginItem(std::string(line));
  if (number) item_number_ = *number + 1;
  gap_is_due_ = loose;
  return true;
}

void MarkdownStream::TakeFenceLine(std::string_view line) {
  const auto [indent, text] = IndentOf(line);
  const std::size_t length = CountOf(text, fence_);
  if (indent < 4 && length >= fence_length_ && IsBlankLine(text.substr(length))) {
    EndBlock();
  } else {
    EmitCode(line, fence_indent_);
  }
}

void MarkdownStream::Begin(const std::string& line) {
  const auto [indent, text] = IndentOf(line);
  const auto mark = indent < 4 && !IsRule(text) ? ItemMarkOf(text) : std::nullopt;
  // A list directly below its introduction stays there.
  const bool is_close = mark && !follows_blank_ && (last_block_ == Block::kParagraph || last_block_ == Block::kItem);
  gap_is_due_ = !is_first_ && !is_close;
  follows_blank_ = false;
  if (indent >= 4) {
    block_ = Block::kIndentedCode;
    colours_ = CodeColours("", style_);
    EmitCode(line, 4);
  } else if (mark) {
    BeginItem(line);
  } else if (IsHeading(text) || IsRule(text)) {
    held_ = line;
    EndBlock();
  } else if (IsFence(text)) {
    block_ = Block::kFence;
    fence_ = text[0];
    fence_length_ = CountOf(text, fence_);
    fence_indent_ = indent;
    const std::string_view info = IndentOf(text.substr(fence_length_)).text;
    colours_ = CodeColours(info, style_);
    Emit(CodeTitle(info.substr(0, info.find_last_not_of(" \t") + 1), style_, width_));
  } else {
    block_ = text.starts_with('>') ? Block::kQuote : Block::kParagraph;
    Hold(line);
  }
}

void MarkdownStream::BeginItem(const std::string& line) {
  const auto [indent, text] = IndentOf(line);
  const ItemMark mark = *ItemMarkOf(text);
  const std::size_t spaces = IndentOf(mark.content).columns;
  block_ = Block::kItem;
  item_mark_ = mark.kind;
  item_number_ = mark.number;
  // Five spaces are one space, and then code.
  item_indent_ = indent + mark.width + (IsBlankLine(mark.content) || spaces > 4 ? 1 : spaces);
  Hold(line);
}

void MarkdownStream::Hold(std::string line) {
  if (is_plain_) {
    drawn_bytes_ += line.size();
    Emit(line.empty() ? std::vector<std::string>{""} : PlainLines(line, width_));
    return;
  }
  if (block_ == Block::kTable) line = WithinColumns(std::move(line), table_columns_);
  held_has_fence_ |= line.find("```") != std::string::npos || line.find("~~~") != std::string::npos;
  const bool may_define = !held_has_fence_ && (block_ != Block::kParagraph || held_.empty());
  held_ += may_define ? WithDefinitionAsText(std::move(line)) : line;
  held_ += '\n';
  ++held_lines_;
  repeats_head_ = false;
  if (held_.size() > kMostHeldBytes || held_lines_ >= kMostHeldLines) GiveUpWaiting();
}

void MarkdownStream::GiveUpWaiting() {
  if (block_ == Block::kItem || block_ == Block::kQuote) {
    drawn_bytes_ += held_.size();
    Emit(PlainLines(std::exchange(held_, {}), width_));
    is_plain_ = true;
  } else if (block_ == Block::kTable && table_head_.size() * 8 < held_.size()) {
    // Repeats the head, as on the next page of a book.
    DrawHeld();
    held_ = table_head_;
    held_lines_ = 2;
    repeats_head_ = true;
    gap_is_due_ = true;
  } else {
    DrawHeld();
    if (block_ == Block::kTable) is_plain_ = true;
  }
}

void MarkdownStream::DrawHeld() {
  if (!repeats_head_) {
    drawn_bytes_ += held_.size();
    Emit(Drawn(held_));
  }
  held_.clear();
  held_lines_ = 0;
  held_has_fence_ = repeats_head_ = false;
}

void MarkdownStream::EndBlock() {
  DrawHeld();
  last_block_ = std::exchange(block_, Block::kNone);
  is_plain_ = false;
  blank_lines_ = 0;
}

void MarkdownStream::EmitCode(std::string_view line, std::size_t indent) {
  drawn_bytes_ += line.size();
  Emit(CodeLine(WithoutIndent(line, indent), colours_, style_, width_));
}

void MarkdownStream::Emit(std::vector<std::string> lines) {
  if (lines.empty()) return;
  if (std::exchange(gap_is_due_, false)) out_.emplace_back();
  is_first_ = false;
  std::move(lines.begin(), lines.end(), std::back_inserter(out_));
}

std::vector<std::string> MarkdownStream::Drawn(const std::string& markdown) const {
  return MarkdownLines(markdown, style_, width_, block_ == Block::kItem ? item_number_ : std::nullopt);
}

}  // namespace reprise
