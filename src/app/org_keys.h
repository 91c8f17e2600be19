#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "reprise/result.h"

// The wrapping key of an org, sealed by the operator's keys, which seals all data of the org's users. Removing it makes
// all of that unreadable, also in earlier copies.
namespace reprise {

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
