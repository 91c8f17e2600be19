#include "tools/text_file.h"

#include <algorithm>

#include "base/utf8.h"

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

}  // namespace reprise
