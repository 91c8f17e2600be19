#include "terminal/terminal_style.h"

#include <cstddef>

namespace reprise {
namespace {

// In the order of the roles.
struct Sequences {
  Style::Role role;
  std::string_view terminal, dark, light;
};

constexpr Sequences kSequences[] = {
    {Style::kPlain, "", "", ""},
    {Style::kBold, "\x1b[1m", "\x1b[1m", "\x1b[1m"},
    {Style::kDim, "\x1b[2m", "\x1b[38;5;245m", "\x1b[38;5;242m"},
    {Style::kItalic, "\x1b[3m", "\x1b[3m", "\x1b[3m"},
    {Style::kUnderlined, "\x1b[4m", "\x1b[4m", "\x1b[4m"},
    {Style::kCode, "\x1b[35m", "\x1b[38;5;180m", "\x1b[38;5;94m"},
    {Style::kHeading, "\x1b[1m", "\x1b[1;38;5;117m", "\x1b[1;38;5;25m"},
    {Style::kLink, "\x1b[4;36m", "\x1b[4;38;5;75m", "\x1b[4;38;5;25m"},
    {Style::kStruck, "\x1b[9m", "\x1b[9m", "\x1b[9m"},
    {Style::kAdded, "\x1b[32m", "\x1b[38;5;114m", "\x1b[38;5;28m"},
    {Style::kRemoved, "\x1b[31m", "\x1b[38;5;210m", "\x1b[38;5;124m"},
    {Style::kWarning, "\x1b[33m", "\x1b[38;5;215m", "\x1b[38;5;130m"},
    {Style::kError, "\x1b[1;31m", "\x1b[1;38;5;203m", "\x1b[1;38;5;160m"},
    {Style::kAccent, "\x1b[36m", "\x1b[38;5;80m", "\x1b[38;5;30m"},
    {Style::kKeyword, "\x1b[35m", "\x1b[38;5;141m", "\x1b[38;5;90m"},
    {Style::kString, "\x1b[32m", "\x1b[38;5;150m", "\x1b[38;5;22m"},
    {Style::kNumber, "\x1b[33m", "\x1b[38;5;216m", "\x1b[38;5;130m"},
    {Style::kComment, "\x1b[2m", "\x1b[38;5;245m", "\x1b[38;5;242m"},
    {Style::kAddedLine, "\x1b[32m", "\x1b[48;5;22m", "\x1b[48;5;194m"},
    {Style::kRemovedLine, "\x1b[31m", "\x1b[48;5;52m", "\x1b[48;5;224m"},
    {Style::kAddedPart, "\x1b[4m", "\x1b[48;5;28m", "\x1b[48;5;157m"},
    {Style::kRemovedPart, "\x1b[4m", "\x1b[48;5;88m", "\x1b[48;5;217m"},
};
static_assert([] {
  std::size_t at = 0;
  for (const Sequences& each : kSequences) {
    if (static_cast<std::size_t>(each.role) != at++) return false;
  }
  return true;
}());

}  // namespace

Colour DecideColour(std::string_view flag, const Environment& environment, bool is_terminal) {
  if (flag == "always") return Colour::kAlways;
  if (flag == "never" || environment("NO_COLOR")) return Colour::kNever;
  if (environment("CLICOLOR_FORCE").value_or("0") != "0") return Colour::kAlways;
  return is_terminal && environment("TERM") != "dumb" ? Colour::kAlways : Colour::kNever;
}

std::optional<Theme> ThemeNamed(std::string_view name) {
  if (name == "terminal") return Theme::kTerminal;
  if (name == "dark") return Theme::kDark;
  return name == "light" ? std::optional(Theme::kLight) : std::nullopt;
}

std::string_view Style::Sequence(Role role) const {
  if (!has_colour()) return {};
  const Sequences& sequences = kSequences[static_cast<std::size_t>(role)];
  return theme_ == Theme::kTerminal ? sequences.terminal : theme_ == Theme::kDark ? sequences.dark : sequences.light;
}

std::size_t PaintSequence(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string Style::Paint(Role role, std::string_view text) const {
  if (colour_ == Colour::kNever || role == kPlain || text.empty()) return std::string(text);
  std::string out;
  bool open = false;
  const auto close = [&] {
    if (open) out += kPaintReset;
    open = false;
  };
  while (!text.empty()) {
    if (text.starts_with(kPaintReset)) {  // ends this role too, not only the inner ones
      close();
      text.remove_prefix(kPaintReset.size());
    } else if (text[0] == '\n') {
      close();
      out += '\n';
      text.remove_prefix(1);
    } else {
      if (!open) out += Sequence(role);
      open = true;
      const std::string_view piece = text.substr(0, text.find_first_of("\x1b\n", 1));
      out += piece;
      text.remove_prefix(piece.size());
    }
  }
  close();
  return out;
}

}  // namespace reprise
