#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "crypto/secret_key.h"

namespace reprise {

// A key pair on P-256, which agrees on secrets (ECDH) and signs (ES256). Immutable, thread-safe.
class P256KeyPair {
 public:
  static P256KeyPair Random();
  // nullopt if these 32 bytes are no private key of the curve.
  static std::optional<P256KeyPair> FromSecret(const SecretKey& secret);

  std::string_view secret() const { return secret_->bytes(); }
  const std::string& public_key() const { return public_key_; }  // the point, uncompressed: 65 bytes
  // The signature in JWS form (RFC 7518, 3.4): 64 bytes.
  std::string Sign(std::string_view message) const;
  // The secret that is shared with the holder of `public_key`; nullopt if that is no point of the curve.
  std::optional<std::string> Agree(std::string_view public_key) const;

 private:
  P256KeyPair(std::shared_ptr<const SecretKey> secret, std::shared_ptr<void> key, std::string public_key)
      : secret_(std::move(secret)), key_(std::move(key)), public_key_(std::move(public_key)) {}

  std::shared_ptr<const SecretKey> secret_;
  std::shared_ptr<void> key_;  // an EVP_PKEY
  std::string public_key_;
};

// What a browser tells of itself so that messages can be sealed for it (RFC 8291).
struct PushRecipient {
  static constexpr std::size_t kAuthBytes = 16;
  std::string public_key;  // 65 bytes, a point of P-256
  std::string auth;        // kAuthBytes secret bytes

  // Reads `p256dh` and `auth` in base64url. nullopt if they are not a point of the curve and kAuthBytes bytes.
  static std::optional<PushRecipient> Parse(std::string_view p256dh, std::string_view auth);
};

// Seals a message that this recipient alone can read (RFC 8291 with aes128gcm, RFC 8188): the body of a request to its
// push service. `padded_to`: the sealed text gets at least this size, so that its length tells nothing. nullopt if the
// message is too large for one record.
std::optional<std::string> SealPush(const PushRecipient& recipient, std::string_view message, std::size_t padded_to);
// The same with a given key and salt of 16 bytes, each of which may be used only once.
std::optional<std::string> SealPush(const PushRecipient& recipient, std::string_view message, std::size_t padded_to,
                                    const P256KeyPair& sender, std::string_view salt);

}  // namespace reprise
