#include "tools/line_picker.h"

#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxShownBytes = 256 * 1024;

}  // namespace

bool LinePicker::Add(std::string_view chunk) {
  while (!chunk.empty()) {
    if (line_ - first_ >= count_ && line_ >= first_) return Stop();
    const std::size_t newline = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, newline == std::string_view::npos ? chunk.size() : newline + 1);
    if (line_ >= first_ && !Keep(piece)) return Stop();
    in_line_ = newline == std::string_view::npos;
    if (!in_line_) ++line_;
    chunk.remove_prefix(piece.size());
  }
  return true;
}

bool LinePicker::Keep(std::string_view piece) {
  if (text_.size() + piece.size() <= kMaxShownBytes) {
    text_ += piece;
    return true;
  }
  // Whole lines, unless not even one fits.
  const std::size_t line_start = text_.rfind('\n') == std::string::npos ? 0 : text_.rfind('\n') + 1;
  if (line_start > 0) {
    text_.resize(line_start);
  } else {
    text_ += piece.substr(0, kMaxShownBytes - text_.size());
    cut_in_line_ = true;
  }
  return false;
}

Result<std::string> LinePicker::Shown() const {
  if (!stopped_ && lines() == 0) return std::string("(the file is empty)");
  if (!stopped_ && first_ > lines()) {
    return Fail(ErrorCode::kInvalidArgument, "it has only " + std::to_string(lines()) + " lines");
  }
  std::string text = ToValidUtf8(text_);
  if (!stopped_) return text;
  if (!text.empty() && text.back() != '\n') text += '\n';
  if (cut_in_line_) return text + "(cut: line " + std::to_string(line_) + " is longer than can be shown)";
  return text + "(cut: lines " + std::to_string(first_) + " to " + std::to_string(line_ - 1) + "; go on with offset " +
         std::to_string(line_) + ")";
}

}  // namespace reprise
