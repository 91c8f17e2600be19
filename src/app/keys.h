#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "crypto/signing_key.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// The configured key file, and the source of its passphrase.

std::string KeyFileOf(const Options& options);

// Reads the configured file, or else asks at the terminal. Without either, the source fails with kForbidden (reason
// "passphrase_needed").
PassphraseSource PassphraseFrom(const Options& options);

// The person's key for proofs, whose seed is the key of `proof.jwks` beside the key file; made if there is none.
// LoadOrCreateKeyFile's failures.
std::string ProofKeyFileOf(const Options& options);
Result<SigningKey> ProofKeyOf(const Options& options);

// A new passphrase for the key file: from `file`, or asked for twice. kInvalidArgument if it is too short, or if the
// second one differs.
Result<SecretText> NewPassphrase(const std::string& file);

// The first line, without its end, of a file that only its owner can read, or of a pipe or descriptor (/dev/fd/3).
// Errors hold none of it, in message or detail.
Result<SecretText> ReadPassphrase(const std::string& path);

// The configured keys, checked against a folder of chats.

// Null for --plain. kForbidden if there is no key file.
Result<std::shared_ptr<const KeySet>> KeysFor(const Options& options);
enum class FolderUse {
  kAdd,      // add to the present chats
  kGiveUp,   // the same, and give up chats whose keys are gone
  kReplace,  // rewrite the present chats in the other form
};
// The same for writing to `folder`; makes and logs a key file if there is none. kInvalidArgument if it would lie in
// `folder`, because a copy of the chats must not carry their key along; kForbidden as CheckFolderKeys.
Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder,
                                                     FolderUse use = FolderUse::kAdd);
// The same for a server's chats: checks the data folder and, if configured, the database, before a key is made.
// kConflict if the tables are not those of this program; kForbidden as CheckFolderKeys and CheckDatabaseKeys.
Result<std::shared_ptr<const KeySet>> KeysForServing(const Options& options, FolderUse use = FolderUse::kAdd);
// Whether these keys fit the content of the database (null: none, or plain chats). Ok if there is no database.
Result<void> CheckKeysOfDatabase(const Options& options, const KeySet* keys, FolderUse use = FolderUse::kAdd);
// Records which keys of the database are given up from now on.
Result<void> GiveUpKeysOfDatabase(const Options& options, const KeySet& keys);
// Records the keys that seal records there from now on. REQUIRES: the caller holds the folder's lock.
void NoteKeysOf(const std::string& folder, const KeySet* keys);

// The wrapping key of an org, sealed by the operator's keys, which seals all data of the org's users. Removing it makes
// all of that unreadable, also in earlier copies.

// kCorruption (reason "integrity_missing").
tl::unexpected<Error> MissingOrgKey(const std::string& org);
// A new key for the org, in its stored form.
Result<std::string> NewOrgKey(const KeySet& operators, const std::string& org);
// The tenant's keys: the org's own, and the operator's for older records. kCorruption (reason "integrity_<kind>";
// "swap" if the key is another org's).
Result<std::shared_ptr<const KeySet>> KeysOfTenant(const KeySet& operators, const Principal& tenant,
                                                   std::string_view org_key);

// The stored key of the tenant's org, with folders; makes one if there is none. kCorruption as MissingOrgKey if there
// is none although users of the org have records that the operator's keys did not seal. REQUIRES: nobody else makes
// one.
Result<std::string> OrgKeyOf(const std::string& tenant_folder, const std::string& org, const KeySet& operators,
                             FileSystem& disk);
// Durable when it returns ok, also if there is none.
Result<void> RemoveOrgKey(const std::string& org_folder, FileSystem& disk);
// The keys for a data folder: a tenant's if the folder names one, else `operators`.
Result<std::shared_ptr<const KeySet>> KeysOfFolder(KeySet operators, const std::string& folder, FileSystem& disk);

}  // namespace reprise
