#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/code_colours.h"
#include "terminal/terminal_style.h"

namespace reprise {

// Narrower terminals get lines of this many columns.
inline constexpr int kNarrowestMarkdown = 16;

// A whole piece of Markdown (GitHub's) as lines for a terminal, at most `width` columns wide. HTML is shown as text.
// Line ends within a paragraph stay, because authors of chat messages mean them. The address of a link follows its
// text. If given, `first_number` replaces a list's first number. Nothing in `markdown` controls the terminal
// (terminal_text.h).
std::vector<std::string> MarkdownLines(std::string_view markdown, const Style& style, int width,
                                       std::optional<unsigned> first_number = std::nullopt);

// The same lines without Markdown, only wrapped.
std::vector<std::string> PlainLines(std::string_view text, int width);

// The line above a block of code, mostly its language.
std::vector<std::string> CodeTitle(std::string_view info, const Style& style, int width);
// One line of code, indented by two columns, in its colours. Too wide lines continue in further lines, which begin with
// a mark.
std::vector<std::string> CodeLine(std::string_view line, CodeColours& colours, const Style& style, int width);

// Turns Markdown that arrives in pieces into lines for a terminal (see MarkdownLines). The lines do not depend on how
// the text is cut into pieces.
//
// Draws a block once, at its end: a paragraph, quote or table at the line after it, a list item at the next item, a
// heading at once, code line by line. So it draws every byte once and holds one block. It does not wait for the end of
// a block beyond 64 KiB or 200 lines: paragraphs and tables are drawn in parts, items and quotes as the lines that were
// written. A link whose address comes later stays as it is written, and so does the address.
class MarkdownStream {
 public:
  MarkdownStream(const Style& style, int width) : style_(style) { SetWidth(width); }

  // Returns the lines that are final now.
  std::vector<std::string> Add(std::string_view delta);
  // The unfinished text after the final lines.
  std::vector<std::string> Tail() const;
  // Returns the remaining lines; ready for another text afterwards.
  std::vector<std::string> End();

  // For text that is not final yet.
  void SetWidth(int width) { width_ = std::max(width, kNarrowestMarkdown); }

  // The bytes that are not final, and the bytes drawn for final lines.
  std::size_t held_bytes() const { return line_.size() + held_.size(); }
  std::size_t drawn_bytes() const { return drawn_bytes_; }

 private:
  enum class Block { kNone, kParagraph, kTable, kQuote, kItem, kFence, kIndentedCode };

  void TakeBytes(std::string_view bytes);
  void TakeLine(std::string line);
  void TakePartOfLine(std::string part);
  bool GoesOn(std::string_view line);
  bool ItemGoesOn(std::string_view line);
  bool ParagraphGoesOn(std::string_view line);
  void TakeFenceLine(std::string_view line);
  void Begin(const std::string& line);
  void BeginItem(const std::string& line);
  bool BeginTable(std::string_view delimiter_row);
  void Hold(std::string line);
  void GiveUpWaiting();
  void DrawHeld();
  void EndBlock();

  // Emits lines of code, without `indent` columns of their indent.
  void EmitCode(std::string_view line, std::size_t indent);
  void Emit(std::vector<std::string> lines);
  std::vector<std::string> Drawn(const std::string& markdown) const;

  const Style style_;
  int width_ = kNarrowestMarkdown;
  std::vector<std::string> out_;  // final, not yet handed out
  std::size_t drawn_bytes_ = 0;

  std::string line_;             // incomplete so far
  bool line_has_begun_ = false;  // the first parts of a very long line were taken before line_
  Block block_ = Block::kNone;
  std::string held_;  // the lines of the block
  std::size_t held_lines_ = 0;
  bool held_has_fence_ = false;
  bool is_plain_ = false;       // the block is emitted line by line
  bool is_first_ = true;        // nothing has been emitted
  bool gap_is_due_ = false;     // before the block
  bool follows_blank_ = false;  // the next text follows an empty line
  Block last_block_ = Block::kNone;

  char fence_ = 0;  // the character
  std::size_t fence_length_ = 0, fence_indent_ = 0;
  CodeColours colours_{"", style_};  // of the fence's content
  std::size_t blank_lines_ = 0;      // within an item or indented code; they belong to it if it goes on
  char item_mark_ = 0;               // equal in all items of a list: the bullet, or the character after the number
  std::optional<unsigned> item_number_;
  std::size_t item_indent_ = 0;  // of the item's content
  std::string table_head_;       // its first two lines
  std::size_t table_columns_ = 0;
  bool repeats_head_ = false;  // held_ is only a copy of table_head_ so far
};

}  // namespace reprise
