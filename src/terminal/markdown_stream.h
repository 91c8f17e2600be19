#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/markdown_block.h"
#include "terminal/terminal_style.h"

namespace reprise {

// Markdown that comes in pieces, as lines for a terminal (see MarkdownLines). Where the pieces end makes no difference
// to the lines.
//
// A block is drawn once, when its end has come: a paragraph, quote or table at the line after it, an item of a list at
// the next one, a heading at once, code line by line. So every byte is drawn once, and what is held is one block. One
// that grows beyond 64 KiB or 200 lines is not waited for: a paragraph or a table goes out in parts, an item or a quote
// as the lines that it was written in. Links whose addresses come later stay as they are written, and so do the
// addresses.
class MarkdownStream {
 public:
  MarkdownStream(const Style& style, int width) : style_(style) { SetWidth(width); }

  // The lines that are final now.
  std::vector<std::string> Add(std::string_view delta);
  // What follows the final lines, as far as it is known.
  std::vector<std::string> Tail() const;
  // The lines of the rest. Then it is ready for another text.
  std::vector<std::string> End();

  // For what is not final yet.
  void SetWidth(int width) { width_ = std::max(width, kNarrowestMarkdown); }

  // How much has come that is not final, and how much has been drawn for final lines.
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

  // Lines of code, without so many columns of their indent.
  void EmitCode(std::string_view line, std::size_t indent);
  void Emit(std::vector<std::string> lines);
  std::vector<std::string> Drawn(const std::string& markdown) const;

  const Style style_;
  int width_ = kNarrowestMarkdown;
  std::vector<std::string> out_;  // final, not yet handed out
  std::size_t drawn_bytes_ = 0;

  std::string line_;             // as it comes, up to its end
  bool line_has_begun_ = false;  // before line_: the first parts of a very long line have been taken
  Block block_ = Block::kNone;
  std::string held_;  // the lines of the block
  std::size_t held_lines_ = 0;
  bool held_has_fence_ = false;
  bool is_plain_ = false;       // the block is emitted as its lines come
  bool is_first_ = true;        // nothing has been emitted
  bool gap_is_due_ = false;     // before the block
  bool follows_blank_ = false;  // what comes next stands after an empty line
  Block last_block_ = Block::kNone;

  char fence_ = 0;  // the character
  std::size_t fence_length_ = 0, fence_indent_ = 0;
  bool is_diff_ = false;         // what the fence holds
  std::size_t blank_lines_ = 0;  // within an item or indented code; they belong to it if it goes on
  char item_mark_ = 0;           // what makes two items those of one list: the bullet, or what follows the number
  std::optional<unsigned> item_number_;
  std::size_t item_indent_ = 0;  // of what belongs to the item
  std::string table_head_;       // its first two lines
  std::size_t table_columns_ = 0;
  bool repeats_head_ = false;  // held_ begins with a copy of it, and holds nothing else yet
};

}  // namespace reprise
