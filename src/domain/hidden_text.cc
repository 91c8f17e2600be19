#include "domain/hidden_text.h"

#include <cstdint>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/utf8.h"

namespace reprise {
namespace {

void AppendUnit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHexDigits[unit >> shift & 0xf];
}

}  // namespace

std::string EscapeHidden(std::string_view json) {
  const std::string text = WithoutGaps(json);
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    const std::uint32_t code = CodePointOf(next);
    if (!IsHidden(code)) {
      out += next;
    } else if (code < 0x10000) {
      AppendUnit(out, code);
    } else {
      AppendUnit(out, 0xd800 + ((code - 0x10000) >> 10));
      AppendUnit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
  return out;
}

}  // namespace reprise
