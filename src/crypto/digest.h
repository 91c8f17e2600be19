#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// "sha256:" and the hex digest of the concatenated parts.
std::string Sha256Digest(std::initializer_list<std::string_view> parts);

// The same for a regular file of any size. kNotFound, kInvalidArgument (not a regular file), kIo; the message names the
// file for the person at the terminal.
Result<std::string> Sha256OfFile(const std::string& path);

// "hmac-sha256:" and the hex MAC of the concatenated parts under the key.
std::string HmacSha256(const SecretKey& key, std::initializer_list<std::string_view> parts);

}  // namespace reprise
