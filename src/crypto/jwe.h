#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "crypto/key_set.h"
#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

inline constexpr std::size_t kGcmIvBytes = 12;
inline constexpr std::size_t kGcmTagBytes = 16;
inline constexpr std::size_t kWrappedKeyBytes = SecretKey::kBytes + 8;

// AES-256-GCM. The caller may use each pair of key and IV only once. Failures: kInternal (libcrypto refused),
// kTooLarge (2^31 bytes and more).
struct GcmSealed {
  std::string iv, ciphertext, tag;
};
Result<GcmSealed> GcmSeal(const SecretKey& key, std::string_view associated_data, std::string_view plaintext);
// Appends ciphertext and tag to `out`, using `iv` rather than a random one, for keys whose messages are counted.
// REQUIRES: kGcmIvBytes bytes.
Result<void> GcmSealTo(std::string& out, const SecretKey& key, std::string_view iv, std::string_view associated_data,
                       std::string_view plaintext);
// Decrypts `ciphertext` in place. kCorruption, without any of the text, if the tag does not match. REQUIRES: iv and tag
// have their sizes.
Result<std::string> GcmOpen(const SecretKey& key, std::string_view associated_data, std::string_view iv,
                            std::string ciphertext, std::string_view tag);

// AES key wrap (RFC 3394) under a 256-bit key: kWrappedKeyBytes bytes.
Result<std::string> WrapKey(const SecretKey& wrapping_key, const SecretKey& key);
// kCorruption if `wrapped` was not wrapped by this key. REQUIRES: kWrappedKeyBytes bytes.
Result<SecretKey> UnwrapKey(const SecretKey& wrapping_key, std::string_view wrapped);

// Sealed records: JWE in the flattened JSON serialization (RFC 7516), only alg A256KW and enc A256GCM. Any JOSE tool
// that has the key can open them.

// Seals under the set's current key, with a fresh content key and IV. `protected_members` (an object without alg and
// enc) go into the protected header, which is readable and authenticated; so does "tenant" if the keys are bound to
// one.
Result<std::string> SealJwe(const Json& protected_members, std::string_view plaintext, const KeySet& keys);
// The same with the object as compact text, which spares a tree for each turn.
Result<std::string> SealJweUnder(std::string_view members, std::string_view plaintext, const KeySet& keys);

struct OpenedJwe {
  std::string protected_header;  // JSON object text, authenticated
  std::string plaintext;
  std::string kid;
};
// kCorruption with reason "integrity_auth" unless `text` is exactly such a JWE sealed by one of the keys; with reason
// "integrity_swap" if it was sealed for another tenant than the keys are bound to. Strict: each member once, no other
// members, canonical base64url, exact sizes, no "crit", no "zip".
Result<OpenedJwe> OpenJwe(std::string_view text, const KeySet& keys);

// Rewraps a record of any tenant for the set's current key. Only "header" and "encrypted_key" change, so the content
// and RecordDigest stay. Returns the same text if it has the current key. Fails as OpenJwe does.
Result<std::string> RewrapJwe(std::string_view text, const KeySet& keys);

// The protected header, unauthenticated: anyone could have written it. kCorruption if `text` is not one of our JWEs.
Result<Json> ReadJweHeader(std::string_view text);

// The keys bound to the tenant that `text` names, if any. Unauthenticated: anyone could have written that.
KeySet KeysOfRecord(std::string_view text, const KeySet& keys);

// The key id that `text` names. Unauthenticated: anyone could have written it. nullopt if it is not one of our JWEs.
std::optional<std::string> KeyIdOf(std::string_view text);

// True if `text` has the members of a flattened JWE, with any values.
bool LooksLikeJwe(std::string_view text);

// "sha256:" + hex over protected '.' iv '.' ciphertext '.' tag. Identifies the content and its binding, and survives
// RewrapJwe. kCorruption if `text` is not a JWE.
Result<std::string> RecordDigest(std::string_view text);

}  // namespace reprise
