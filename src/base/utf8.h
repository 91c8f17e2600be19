#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

bool IsUtf8(std::string_view bytes);
// A character in UTF-8; U+FFFD for a surrogate or a code beyond U+10FFFF.
std::string Utf8Of(char32_t code);
// Replaces each maximal invalid sequence by U+FFFD (Unicode 15, section 3.9, "substitution of maximal subparts").
std::string ToValidUtf8(std::string_view bytes);
// The number of bytes (0 to 3) at the end of `bytes` that begin an incomplete character. A reader of a byte stream
// holds them back until the rest arrives.
std::size_t IncompleteUtf8Tail(std::string_view bytes);
// The bytes without the tail of a cut character at the beginning.
std::string_view FromUtf8Start(std::string_view bytes);
// At most `max_characters` code points from the start. REQUIRES: `text` is UTF-8.
std::string_view Utf8Prefix(std::string_view text, std::size_t max_characters);
// The number of code points. REQUIRES: `text` is UTF-8.
std::int64_t CharactersIn(std::string_view text);

}  // namespace reprise
