#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// "sha256:" and the hex digest of the parts, one after the other.
std::string Sha256Digest(std::initializer_list<std::string_view> parts);

// The same of what a regular file holds, however large. kNotFound, kInvalidArgument (no regular file), kIo; the message
// names the file, as it is for the person at the terminal.
Result<std::string> Sha256OfFile(const std::string& path);

// "hmac-sha256:" and the hex MAC of the parts, one after the other, under the key.
std::string HmacSha256(const SecretKey& key, std::initializer_list<std::string_view> parts);

}  // namespace reprise
