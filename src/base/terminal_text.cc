#include "base/terminal_text.h"

#include <algorithm>
#include <cstdint>

#include "base/hidden_characters.h"
#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMostBlankLines = 3;  // one after the other, that are shown

enum class Shown { kAllHidden, kProse };

std::string Visible(std::string_view text, std::string_view line_end, Shown shown) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  const std::string valid = ToValidUtf8(text);
  std::string out;
  out.reserve(valid.size());
  for (std::string_view rest = valid; !rest.empty();) {
    // Most of what is shown, quickly.
    const auto plain_end = std::find_if_not(rest.begin(), rest.end(), is_plain);
    out.append(rest.begin(), plain_end);
    rest.remove_prefix(static_cast<std::size_t>(plain_end - rest.begin()));
    if (rest.empty()) break;
    if (rest.starts_with("\r\n")) {
      rest.remove_prefix(1);  // the line end as Windows writes it
      continue;
    }
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    const std::uint32_t code = CodePointOf(next);
    if (code == '\n') {
      out += line_end;
    } else if (code == '\r' || (shown == Shown::kProse ? IsHiddenInProse(code) : IsHidden(code))) {
      out += SpelledOut(code);
    } else {
      out += next;
    }
  }
  return out;
}

}  // namespace

std::string VisibleLine(std::string_view text) { return Visible(text, " ", Shown::kAllHidden); }

std::string VisibleText(std::string_view text, std::string_view indent) {
  return Visible(WithBlankLinesCounted(text), "\n" + std::string(indent), Shown::kAllHidden);
}

std::string WithBlankLinesCounted(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t blank_end = text.find_first_not_of(" \t\r\n");
    const std::size_t last_end = blank_end == 0 ? std::string_view::npos : text.substr(0, blank_end).rfind('\n');
    const auto blank = text.substr(0, last_end == std::string_view::npos ? 0 : last_end + 1);
    const auto count = static_cast<std::size_t>(std::count(blank.begin(), blank.end(), '\n'));
    if (count > kMostBlankLines) {
      out += "<" + Counted(count, "blank line") + ">\n";
    } else {
      out += blank;
    }
    text.remove_prefix(blank.size());
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    out += line;
    text.remove_prefix(line.size());
  }
  return out;
}

std::string Indented(std::string_view text, std::string_view indent) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return Visible(text, "\n" + std::string(indent), Shown::kProse);
}

std::string StreamedText::Add(std::string_view delta) {
  held_ += delta;
  const bool waits = held_.ends_with('\r');  // perhaps for its line feed
  std::string shown = Visible(std::string_view(held_).substr(0, held_.size() - (waits ? 1 : 0)), "\n", Shown::kProse);
  held_ = waits ? "\r" : "";
  return shown;
}

std::string StreamedText::End() {
  std::string shown = Visible(held_, "\n", Shown::kProse);
  held_.clear();
  return shown;
}

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string Shortened(std::string_view text, std::size_t max_characters) {
  const std::string valid = ToValidUtf8(text);
  const std::string_view prefix = Utf8Prefix(valid, max_characters);
  return prefix.size() == valid.size() ? valid : std::string(prefix) + "...";
}

std::size_t ControlSequenceLength(std::string_view text) {
  if (text.size() < 3) return 0;
  if (text[1] == '(' || text[1] == ')') return 3;
  if (text[1] != '[') return 0;
  const auto is_in = [](char c, char first, char last) { return c >= first && c <= last; };
  std::size_t end = 2;
  while (end < text.size() && is_in(text[end], '0', '?')) ++end;
  while (end < text.size() && is_in(text[end], ' ', '/')) ++end;
  return end < text.size() && is_in(text[end], '@', '~') ? end + 1 : 0;
}

std::string Counted(std::uint64_t number, std::string_view thing) {
  return Grouped(number) + " " + std::string(thing) + (number == 1 ? "" : "s");
}

std::string Grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace reprise
