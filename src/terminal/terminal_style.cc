#include "terminal/terminal_style.h"

namespace reprise {
namespace {

std::string_view SequenceOf(Style::Role role) {
  switch (role) {
    case Style::kPlain:
      return "";
    case Style::kStruck:
      return "\x1b[9m";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kItalic:
      return "\x1b[3m";
    case Style::kUnderlined:
      return "\x1b[4m";
    case Style::kCode:
      return "\x1b[35m";
    case Style::kHeading:
      return "\x1b[1m";
    case Style::kLink:
      return "\x1b[4;36m";
    case Style::kAdded:
      return "\x1b[32m";
    case Style::kRemoved:
      return "\x1b[31m";
    case Style::kWarning:
      return "\x1b[33m";
    case Style::kError:
      return "\x1b[1;31m";
    case Style::kAccent:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

Colour DecideColour(std::string_view flag, const Environment& environment, bool is_terminal) {
  if (flag == "always") return Colour::kAlways;
  if (flag == "never" || environment("NO_COLOR")) return Colour::kNever;
  if (environment("CLICOLOR_FORCE").value_or("0") != "0") return Colour::kAlways;
  return is_terminal && environment("TERM") != "dumb" ? Colour::kAlways : Colour::kNever;
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
      if (!open) out += SequenceOf(role);
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
