#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "crypto/secret_key.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// The keys of a store: a JWK Set (RFC 7517) of 256-bit symmetric keys. The first is the one that seals, all can open.
// Immutable, thread-safe, movable only; its bytes are never logged or printed.
class KeySet {
 public:
  struct Key {
    std::string kid;
    SecretKey secret;
  };

  KeySet(KeySet&&) = default;
  KeySet& operator=(KeySet&&) = default;

  static KeySet Generate();

  // kNotFound if there is no such file, kForbidden (reason "key_file_exposed") if another user may read it, kCorruption
  // (reason "key_file_invalid") if it is not a JWK Set we can use.
  static Result<KeySet> Load(const std::string& path, FileSystem& file_system);
  // Creates the file (0600, in a 0700 directory, durable) if there is none. Of several processes that do this at once,
  // one creates it and the others load what it wrote.
  static Result<KeySet> LoadOrCreate(const std::string& path, FileSystem& file_system);
  static Result<KeySet> Parse(std::string_view jwk_set);

  const Key& current() const { return keys_.front(); }
  // Null if there is no such key.
  const Key* Find(std::string_view kid) const;
  const std::vector<Key>& keys() const { return keys_; }

 private:
  explicit KeySet(std::vector<Key> keys) : keys_(std::move(keys)) {}
  std::vector<Key> keys_;  // never empty
};

// $XDG_CONFIG_HOME/reprise/keys.jwks, else ~/.config/reprise/keys.jwks.
std::string DefaultKeyFile();

}  // namespace reprise
