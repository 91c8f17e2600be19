#pragma once

#include <string>
#include <string_view>

namespace reprise {

enum class EscapesDelete { kNo, kYes };  // U+007F, which JSON does not ask for

// Appends `text` as it stands inside a JSON string (RFC 8259, section 7). REQUIRES: it is UTF-8.
void AppendEscaped(std::string& out, std::string_view text, EscapesDelete how);

}  // namespace reprise
