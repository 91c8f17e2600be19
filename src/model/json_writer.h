#pragma once

#include <string>
#include <string_view>

namespace reprise {

// Appends `text` as a JSON string literal. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace reprise
