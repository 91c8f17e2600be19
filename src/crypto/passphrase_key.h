#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
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

// What a passphrase makes of a key set: an encrypted JWK Set (RFC 7517, section 7), that is a JWE like those of
// crypto/jwe.h whose key is derived by scrypt. How, stands in its protected header (schemas/FILES.md). Immutable,
// movable only.
class PassphraseKey {
 public:
  // With a new salt. Takes ScryptKey's time and memory, as does Recover.
  static Result<PassphraseKey> Derive(std::string_view passphrase);
  // As `text` says it was sealed. kCorruption (reason "key_file_invalid") if it does not say so, or names parameters
  // that are weaker than ours or would take more than 1 GiB.
  static Result<PassphraseKey> Recover(std::string_view text, std::string_view passphrase);

  Result<std::string> Seal(const KeySet& keys) const;
  // kForbidden (reason "passphrase_wrong") if `text` was sealed by another passphrase or changed since: which of the
  // two cannot be told.
  Result<KeySet> Open(std::string_view text) const;

 private:
  PassphraseKey(SecretKey key, ScryptParameters parameters);

  KeySet key_;
  ScryptParameters parameters_;
};

}  // namespace reprise
