#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "reprise/result.h"

namespace reprise {

// A public key that checks signatures: RSA for RS256, P-256 for ES256, Ed25519 for EdDSA (RFC 7518, RFC 8037). The key
// alone determines the algorithm, so an attacker cannot choose another one. Immutable, thread-safe.
class PublicKey {
 public:
  // Reads a JWK. kInvalidArgument if it is of another kind, is meant for another purpose (use, key_ops, alg), is not a
  // valid key, or is an RSA key of less than 2048 or more than 8192 bits.
  static Result<PublicKey> FromJwk(const Json& jwk);

  // The Ed25519 key of these 32 bytes; nullopt if they are none.
  static std::optional<PublicKey> FromEd25519(std::string_view bytes);

  // "RS256", "ES256" or "EdDSA".
  std::string_view algorithm() const { return algorithm_; }
  // Whether `signature` (in JWS form) is this key's signature of `message`.
  bool Verifies(std::string_view message, std::string_view signature) const;

 private:
  PublicKey(std::string_view algorithm, std::shared_ptr<void> key) : algorithm_(algorithm), key_(std::move(key)) {}

  std::string_view algorithm_;
  std::shared_ptr<void> key_;  // an EVP_PKEY
};

}  // namespace reprise
