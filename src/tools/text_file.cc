#include "tools/text_file.h"

#include <algorithm>

#include "base/text.h"

namespace reprise {

bool LooksLikeText(std::string_view content) {
  constexpr std::size_t kInspected = 8 * 1024;
  return content.substr(0, kInspected).find('\0') == std::string_view::npos;
}

std::string OneLine(std::string_view text) {
  std::string line = ToValidUtf8(text);
  const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; };
  std::replace_if(line.begin(), line.end(), is_control, '?');
  return line;
}

std::string QuotedPath(std::string_view path) {
  constexpr std::size_t kMaxShown = 300;
  return "\"" + OneLine(path.substr(0, kMaxShown)) + "\"";
}

namespace {

constexpr std::size_t kMaxShownBytes = 256 * 1024;

// How many U+FFFD there are.
std::size_t Replacements(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(kReplacement, at)) != std::string_view::npos; at += kReplacement.size()) {
    ++count;
  }
  return count;
}

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
  const std::string number = numbered_ && !in_line_ ? std::to_string(line_) + "\t" : "";
  if (text_.size() + number.size() + piece.size() <= kMaxShownBytes) {
    text_.append(number).append(piece);
    return true;
  }
  // Show whole lines, unless not even one fits.
  const std::size_t line_start = text_.rfind('\n') == std::string::npos ? 0 : text_.rfind('\n') + 1;
  if (line_start > 0) {
    text_.resize(line_start);
  } else {
    text_ += number;
    text_ += piece.substr(0, kMaxShownBytes - std::min(kMaxShownBytes, text_.size()));
    cut_in_line_ = true;
  }
  return false;
}

Result<std::string> LinePicker::Shown() const {
  if (!stopped_ && lines() == 0) return std::string("(the file is empty)");
  if (!stopped_ && first_ > lines()) {
    return Fail(ErrorCode::kInvalidArgument, "it has only " + CountOf(lines(), "line"));
  }
  // What is cut within a line may end within a character.
  const std::string_view whole(text_.data(), text_.size() - (cut_in_line_ ? IncompleteUtf8Tail(text_) : 0));
  std::string text = ToValidUtf8(whole);
  if (const std::size_t places = Replacements(text) - Replacements(whole); places > 0) {
    if (!text.ends_with('\n')) text += '\n';
    text += "(not UTF-8: other bytes are shown as U+FFFD in " + std::to_string(places) +
            (places == 1 ? " place)" : " places)");
    if (stopped_) text += '\n';
  }
  if (!stopped_) return text;
  if (!text.empty() && text.back() != '\n') text += '\n';
  if (cut_in_line_) return text + "(cut: line " + std::to_string(line_) + " is longer than can be shown)";
  return text + "(cut: lines " + std::to_string(first_) + " to " + std::to_string(line_ - 1) + "; go on with offset " +
         std::to_string(line_) + ")";
}

}  // namespace reprise
