#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

inline constexpr std::size_t kGcmIvBytes = 12;
inline constexpr std::size_t kGcmTagBytes = 16;
inline constexpr std::size_t kWrappedKeyBytes = SecretKey::kBytes + 8;

// AES-256-GCM. The caller may use a pair of key and IV once only. Failures: kInternal (libcrypto refused),
// kTooLarge (2^31 bytes and more).
struct GcmSealed {
  std::string iv, ciphertext, tag;
};
Result<GcmSealed> GcmSeal(const SecretKey& key, std::string_view associated_data, std::string_view plaintext);
// Appends ciphertext and tag to `out`; with this IV rather than a random one, for keys whose messages are counted.
// REQUIRES: kGcmIvBytes bytes.
Result<void> GcmSealTo(std::string& out, const SecretKey& key, std::string_view iv, std::string_view associated_data,
                       std::string_view plaintext);
// Decrypts `ciphertext` in its own memory. kCorruption if the tag does not fit; nothing of the text is shown then.
// REQUIRES: iv and tag have their sizes.
Result<std::string> GcmOpen(const SecretKey& key, std::string_view associated_data, std::string_view iv,
                            std::string ciphertext, std::string_view tag);

// AES key wrap (RFC 3394) under a 256-bit key: kWrappedKeyBytes bytes.
Result<std::string> WrapKey(const SecretKey& wrapping_key, const SecretKey& key);
// kCorruption if it was not wrapped by this key. REQUIRES: kWrappedKeyBytes bytes.
Result<SecretKey> UnwrapKey(const SecretKey& wrapping_key, std::string_view wrapped);

}  // namespace reprise
