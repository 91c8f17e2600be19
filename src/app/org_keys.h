#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "reprise/result.h"

// The wrapping key of an org, which lies sealed by the operator's keys: what its users have is sealed by it. Who
// removes it has removed all of that, also from copies that were made before.
namespace reprise {

// kCorruption (reason "integrity_missing").
tl::unexpected<Error> MissingOrgKey(const std::string& org);
// A new key for the org, as it is kept.
Result<std::string> NewOrgKey(const KeySet& operators, const std::string& org);
// The keys of the tenant: the org's own, and the operator's for what was sealed before there was one. kCorruption
// (reason "integrity_<kind>"; "swap" if it is another org's).
Result<std::shared_ptr<const KeySet>> KeysOfTenant(const KeySet& operators, const Principal& tenant,
                                                   std::string_view org_key);

// In folders. The key that is kept for the tenant's org, made if there is none. kCorruption as MissingOrgKey: there is
// none, and users of the org have what is not sealed by the operator's keys. REQUIRES: nobody else makes one.
Result<std::string> OrgKeyOf(const std::string& tenant_folder, const std::string& org, const KeySet& operators,
                             FileSystem& disk);
// Durably. Ok, too, if there is none.
Result<void> RemoveOrgKey(const std::string& org_folder, FileSystem& disk);
// The keys for what is in a data folder: a tenant's, if it says that it is one's, else the same.
Result<std::shared_ptr<const KeySet>> KeysOfFolder(KeySet operators, const std::string& folder, FileSystem& disk);

}  // namespace reprise
