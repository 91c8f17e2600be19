#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// What a key was derived with. The defaults are for a passphrase that guards a file: 128 MiB and about half a second
// for each guess.
struct ScryptParameters {
  std::string salt;  // random bytes
  std::uint64_t n = 1 << 17;
  std::uint64_t r = 8, p = 1;
};

// The first 32 bytes that scrypt (RFC 7914) makes of a passphrase. Needs 128 * r * n bytes of memory; gives them back
// wiped. kInternal if there is not so much, or n is not a power of two.
Result<SecretKey> ScryptKey(std::string_view passphrase, const ScryptParameters& parameters);

}  // namespace reprise
