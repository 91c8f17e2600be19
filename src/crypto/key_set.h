#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// The keys of a store: a JWK Set (RFC 7517) of 256-bit symmetric keys. The first is the one that seals, all can open.
// Immutable, thread-safe, movable only; its bytes are never logged or printed. crypto/key_file.h keeps it on disk.
class KeySet {
 public:
  struct Key {
    std::string kid;
    SecretKey secret;
  };

  KeySet(KeySet&&) = default;
  KeySet& operator=(KeySet&&) = default;

  // A set of one new key.
  static KeySet Generate();
  static KeySet Of(Key key);
  // kCorruption (reason "key_file_invalid") if it is not a JWK Set we can use. Leaves no copy of a key in freed memory.
  static Result<KeySet> Parse(std::string_view jwk_set);

  // What Parse reads.
  SecretText ToJwkSet() const;

  // The same keys for one tenant's records: what they seal says so in its protected header, and they open nothing else.
  KeySet BoundTo(std::string tenant) const;
  const std::string& tenant() const { return tenant_; }  // empty: of no tenant

  // These keys, and `others` behind them.
  KeySet Before(const KeySet& others) const;
  // The same keys behind a new one.
  KeySet WithNewKey() const;
  // The current key alone.
  KeySet WithoutOldKeys() const;

  const Key& current() const { return keys_.front(); }
  // Null if there is no such key.
  const Key* Find(std::string_view kid) const;
  const std::vector<Key>& keys() const { return keys_; }

 private:
  explicit KeySet(std::vector<Key> keys) : keys_(std::move(keys)) {}
  std::vector<Key> keys_;  // never empty
  std::string tenant_{};
};

}  // namespace reprise
