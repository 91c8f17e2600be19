#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/atomic_write.h"
#include "crypto/key_set.h"
#include "crypto/passphrase_key.h"
#include "crypto/secret_key.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

// The file that holds a KeySet: a JWK Set, or that under a passphrase (crypto/passphrase_key.h). Mode 0600, replaced
// as a whole and durably.
namespace reprise {

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
