#include "base/json_writer.h"

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

std::string& JsonObjectWriter::Name(std::string_view name) {
  if (!empty_) out_ += ',';
  empty_ = false;
  AppendJsonString(out_, name);
  out_ += ':';
  return out_;
}

void JsonObjectWriter::Member::WriteStrings(const std::vector<std::string>& strings) {
  out_ += '[';
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i != 0) out_ += ',';
    AppendJsonString(out_, strings[i]);
  }
  out_ += ']';
}

}  // namespace reprise
