#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "document/archive.h"
#include "document/readers.h"

// What the readers of Office Open XML (office.cc) and of OpenDocument (open_document.cc) share.
namespace reprise::document {

inline constexpr std::size_t kMaxStyles = 100'000;

// Reads an entry, if it exists, until `done` is true. Of alternatives (mc:AlternateContent) only the first is passed
// on, because the others repeat it for other programs.
void ReadEntryUntil(Archive& archive, std::string_view name, const XmlHandler& handler,
                    const std::function<bool()>& done);
void ReadEntry(Archive& archive, std::string_view name, const XmlHandler& handler, const Output& out);

bool IsBlank(const std::string& text);

// Adds the output of `read` under a heading, unless it is blank or a repetition.
void AddSection(Output& out, const std::string& heading, const std::function<void(Output&)>& read,
                std::set<std::string>& seen);

std::string NameOfColumn(std::size_t column);

// Names the hidden columns of a table, above its rows.
class HiddenColumns {
 public:
  void Add(std::size_t first, std::size_t last) {
    if (told_.size() > 1000) return;
    told_ += (told_.empty() ? "" : ", ") + NameOfColumn(first);
    if (last > first) told_ += " to " + NameOfColumn(last);
  }
  void Tell(Output& out) {
    if (!told_.empty()) out.Add("(hidden columns: " + told_ + ")"), out.EndLine();
    told_.clear();
  }

 private:
  std::string told_;
};

// Writes a line of cells, each in its column.
class Row {
 public:
  explicit Row(Output& out) : out_(out) {}

  // `column` counts from 1.
  void Add(std::size_t column, std::string text) {
    const std::size_t gap = column > at_ ? std::min(column - at_ - (at_ == 0 ? 1 : 0), kMaxGap) : 0;
    out_.Add(std::string(gap, '\t'));
    at_ = column;
    std::ranges::replace(text, '\n', ' ');
    out_.Add(text);
  }
  void End(bool is_hidden = false) {
    if (at_ > 0 && is_hidden) out_.Add("\t(hidden row)");
    if (at_ > 0) out_.EndLine();
    at_ = 0;
  }

 private:
  static constexpr std::size_t kMaxGap = 64;  // empty cells shown between two others
  Output& out_;
  std::size_t at_ = 0;  // the column of the last cell, or 0
};

void ReadOpenDocument(Archive& archive, Output& out);

}  // namespace reprise::document
