#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// base64url without padding (RFC 4648, section 5).
void AppendBase64Url(std::string& out, std::string_view bytes);
std::string EncodeBase64Url(std::string_view bytes);

// base64 with padding (RFC 4648, section 4), as providers take it.
void AppendBase64(std::string& out, std::string_view bytes);

// nullopt unless `text` is exactly what EncodeBase64Url prints for some bytes: no padding, no white space, no stray
// bits in the last character.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace reprise
