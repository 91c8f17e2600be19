#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "crypto/secret_key.h"

namespace reprise {

// A person's key for proofs: Ed25519 (RFC 8032). Its secret part cannot be read out. Immutable, thread-safe.
class SigningKey {
 public:
  // `seed` is the private key.
  explicit SigningKey(const SecretKey& seed);

  const std::string& public_key() const { return public_key_; }  // 32 bytes
  std::string Sign(std::string_view message) const;              // 64 bytes

 private:
  std::shared_ptr<void> key_;  // an EVP_PKEY
  std::string public_key_;
};

// The short name of a public key, for people to compare: "sha256:" and hexadecimal digits.
std::string FingerprintOf(std::string_view public_key);

}  // namespace reprise
