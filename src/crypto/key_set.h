#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_write.h"
#include "crypto/secret_key.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// The keys of a store: a JWK Set (RFC 7517) of 256-bit symmetric keys. The first is the one that seals, all can open.
// Immutable, thread-safe, movable only; its bytes are never logged or printed. A KeyFile keeps it on disk.
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

// The file that holds a KeySet: a JWK Set, or that under a passphrase (crypto/passphrase_key.h). Mode 0600, replaced
// as a whole and durably.

// Where the passphrase comes from; called only if the file has one. Empty: nowhere.
using PassphraseSource = std::function<Result<SecretText>()>;

// kNotFound if there is no such file, kForbidden with reason "key_file_exposed" if another user may read it,
// "key_file_foreign" if it is another's (root's is not),
// "passphrase_needed" if it has a passphrase and there is no source, "passphrase_wrong"; kCorruption (reason
// "key_file_invalid") if it is not a key set we can use; what the source fails with.
Result<KeySet> LoadKeyFile(const std::string& path, FileSystem& file_system, const PassphraseSource& passphrase = {});
// Creates the file (in a 0700 directory), without a passphrase, if there is none. Of several processes that do this at
// once, one creates it and the others load what it wrote.
Result<KeySet> LoadOrCreateKeyFile(const std::string& path, FileSystem& file_system,
                                   const PassphraseSource& passphrase = {});

// The key file while it is being changed: nobody else changes it as long as the object lives; of two that did, or that
// create it, the second would replace the first one's key, and with it the only key of what was sealed in between.
// After a failed change the file holds the old keys or the new ones, and in either case all that were there. Not
// thread-safe.
class KeyFile {
 public:
  // Waits for others who change it. Fails as LoadKeyFile does, and with kIo. `file_system` must outlive the object.
  static Result<KeyFile> Open(const std::string& path, FileSystem& file_system,
                              const PassphraseSource& passphrase = {});

  const KeySet& keys() const { return keys_; }
  bool has_passphrase() const { return passphrase_key_.has_value(); }

  // The old keys stay. A new one, which seals from now on; under the same passphrase, if there is one.
  Result<void> AddKey();
  // Whatever was sealed by them can never be read again.
  Result<void> RemoveOldKeys();
  Result<void> SetPassphrase(const SecretText& passphrase);
  Result<void> RemovePassphrase();

 private:
  KeyFile(std::string path, FileSystem& file_system, FolderLock lock, KeySet keys,
          std::optional<PassphraseKey> passphrase_key);
  // What `sealed_by` is null for is written in the clear.
  Result<void> Write(const KeySet& keys, const PassphraseKey* sealed_by) const;
  Result<void> ChangeKeys(KeySet keys);

  std::string path_;
  FileSystem* file_system_;
  FolderLock lock_;
  KeySet keys_;
  std::optional<PassphraseKey> passphrase_key_;
};

// Whether another user may put a file in the place of this one: its folder is theirs, or they may write to it.
bool OthersMayReplace(const std::string& path);

// Keeps the keys out of the swap space from now on, as far as the system allows it. REQUIRES: they stay where they are.
void KeepInMemory(const KeySet& keys);

// $XDG_CONFIG_HOME/reprise/keys.jwks, else ~/.config/reprise/keys.jwks.
std::string DefaultKeyFile();

}  // namespace reprise
