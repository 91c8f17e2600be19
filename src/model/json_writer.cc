#include "model/json_writer.h"

#include "base/json.h"
#include "base/utf8.h"

namespace reprise {

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  if (IsUtf8(text)) {
    AppendJsonEscaped(out, text);
  } else {
    AppendJsonEscaped(out, ToValidUtf8(text));
  }
  out += '"';
}

}  // namespace reprise
