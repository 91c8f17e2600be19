#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "crypto/secret_key.h"

namespace reprise {

// "hmac-sha256:" and the hex MAC of the parts, one after the other, under the key.
std::string HmacSha256(const SecretKey& key, std::initializer_list<std::string_view> parts);

}  // namespace reprise
