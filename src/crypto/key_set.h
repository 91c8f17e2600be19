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

// The keys of a store: a JWK Set (RFC 7517) of 256-bit symmetric keys. The first key seals, every key opens. Immutable,
// thread-safe, movable only; never logged or printed. A KeyFile keeps it on disk.
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

  // The text that Parse reads.
  SecretText ToJwkSet() const;

  // The same keys for one tenant's records: they name the tenant in the protected headers they seal, and open no other
  // records.
  KeySet BoundTo(std::string tenant) const;
  const std::string& tenant() const { return tenant_; }  // empty if not bound

  // These keys followed by `others`.
  KeySet Before(const KeySet& others) const;
  // A new key followed by these.
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

// How a key was derived. The defaults suit a passphrase that guards a file: each guess costs 128 MiB and about half a
// second.
struct ScryptParameters {
  std::string salt;  // random bytes
  std::uint64_t n = 1 << 17;
  std::uint64_t r = 8, p = 1;
};

// The first 32 bytes that scrypt (RFC 7914) derives from a passphrase. Needs 128 * r * n bytes of memory and wipes
// them. kInternal if there is less, or if n is not a power of two.
Result<SecretKey> ScryptKey(std::string_view passphrase, const ScryptParameters& parameters);

// Encrypts a key set under a passphrase: an encrypted JWK Set (RFC 7517, section 7), a JWE like those of crypto/jwe.h
// with a key from scrypt. The protected header has the parameters (schemas/FILES.md). Immutable, movable only.
class PassphraseKey {
 public:
  // With a new salt. Like Recover, takes ScryptKey's time and memory.
  static Result<PassphraseKey> Derive(std::string_view passphrase);
  // With the parameters that `text` was sealed with. kCorruption (reason "key_file_invalid") if they are missing,
  // weaker than ours or would take more than 1 GiB.
  static Result<PassphraseKey> Recover(std::string_view text, std::string_view passphrase);

  Result<std::string> Seal(const KeySet& keys) const;
  // kForbidden (reason "passphrase_wrong") if `text` was sealed by another passphrase or was changed; the two cannot be
  // told apart.
  Result<KeySet> Open(std::string_view text) const;

 private:
  PassphraseKey(SecretKey key, ScryptParameters parameters);

  KeySet key_;
  ScryptParameters parameters_;
};

// The file that holds a KeySet: a JWK Set, perhaps encrypted (PassphraseKey). Mode 0600, replaced as a whole and
// durably.

// Gets the passphrase; called only if the file has one. Empty if there is no way to get it.
using PassphraseSource = std::function<Result<SecretText>()>;

// kNotFound if there is no such file; kForbidden with reason "key_file_exposed" if another user may read it,
// "key_file_foreign" if it belongs to another user (but root), "passphrase_needed" if it has a passphrase and there is
// no source, "passphrase_wrong"; kCorruption (reason "key_file_invalid") if it is not a usable key set; the source's
// errors.
Result<KeySet> LoadKeyFile(const std::string& path, FileSystem& file_system, const PassphraseSource& passphrase = {});
// Creates a missing file without a passphrase, in a 0700 directory. If several processes do this at once, one creates
// it and the others load it.
Result<KeySet> LoadOrCreateKeyFile(const std::string& path, FileSystem& file_system,
                                   const PassphraseSource& passphrase = {});

// The key file during a change. The object locks out other writers: a concurrent one would overwrite the first one's
// new key, the only key to all that was sealed with it meanwhile. After a failed change the file holds the old or the
// new keys, either way with all old ones. Not thread-safe.
class KeyFile {
 public:
  // Waits for other writers. Fails as LoadKeyFile does, and with kIo. `file_system` must outlive the object.
  static Result<KeyFile> Open(const std::string& path, FileSystem& file_system,
                              const PassphraseSource& passphrase = {});

  const KeySet& keys() const { return keys_; }
  bool has_passphrase() const { return passphrase_key_.has_value(); }

  // Adds a key, which seals from now on, and keeps the old ones. The passphrase stays the same if there is one.
  Result<void> AddKey();
  // Their records can never be read again.
  Result<void> RemoveOldKeys();
  Result<void> SetPassphrase(const SecretText& passphrase);
  Result<void> RemovePassphrase();

 private:
  KeyFile(std::string path, FileSystem& file_system, FolderLock lock, KeySet keys,
          std::optional<PassphraseKey> passphrase_key);
  // Writes in the clear if `sealed_by` is null.
  Result<void> Write(const KeySet& keys, const PassphraseKey* sealed_by) const;
  Result<void> ChangeKeys(KeySet keys);

  std::string path_;
  FileSystem* file_system_;
  FolderLock lock_;
  KeySet keys_;
  std::optional<PassphraseKey> passphrase_key_;
};

// Whether another user may replace this file because they own its folder or may write to it.
bool OthersMayReplace(const std::string& path);

// Locks the keys in memory, out of the swap space, as far as the system allows. REQUIRES: they do not move.
void KeepInMemory(const KeySet& keys);

// $XDG_CONFIG_HOME/reprise/keys.jwks, else ~/.config/reprise/keys.jwks.
std::string DefaultKeyFile();

}  // namespace reprise
