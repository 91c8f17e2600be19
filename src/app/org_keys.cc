#include "app/org_keys.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/tenant_folder.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"
#include "crypto/key_set.h"
#include "crypto/secret_key.h"
#include "store/data_folder.h"

namespace reprise {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kType = "reprise/org-key";
constexpr std::uint64_t kMostBytes = 64 * 1024;

std::string DigestOf(const std::string& org) { return Sha256Digest({org}); }

std::string FileIn(const std::string& org_folder) { return org_folder + "/.org_key"; }
std::string FileBeside(const std::string& tenant_folder) { return FileIn(ParentDirectory(tenant_folder)); }

tl::unexpected<Error> Damaged(std::string_view kind, const std::string& org, std::string_view what) {
  return Fail(Error{.code = ErrorCode::kCorruption,
                    .reason = "integrity_" + std::string(kind),
                    .message = "the key of this organization " + std::string(what),
                    .detail = "org key of " + org});
}

}  // namespace

tl::unexpected<Error> MissingOrgKey(const std::string& org) {
  return Damaged("missing", org,
                 "is gone, and what its users have is sealed with it: put the key back from a backup, or delete the "
                 "organization with `reprise users org delete`");
}

Result<std::string> NewOrgKey(const KeySet& operators, const std::string& org) {
  const KeySet fresh = KeySet::Generate();
  const SecretText text = fresh.ToJwkSet();
  return SealJwe({{"typ", kType}, {"ver", kVersion}, {"org", DigestOf(org)}}, View(text), operators);
}

Result<std::shared_ptr<const KeySet>> KeysOfTenant(const KeySet& operators, const Principal& tenant,
                                                   std::string_view org_key) {
  auto opened = OpenJwe(org_key, operators);
  if (!opened) return Damaged("auth", tenant.org, "cannot be opened: " + opened.error().message);
  const auto header = ParseJson(opened->protected_header);
  const bool is_key = header && TextMember(*header, "typ") == kType;
  const bool is_own = is_key && TextMember(*header, "org") == DigestOf(tenant.org);
  auto org = is_own ? KeySet::Parse(opened->plaintext) : Fail(ErrorCode::kCorruption, "");
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());
  if (!is_own) return Damaged("swap", tenant.org, "is another's");
  if (!org) return Damaged("auth", tenant.org, "is none");
  auto keys = std::make_shared<const KeySet>(org->Before(operators).BoundTo(TenantOf(tenant)));
  KeepInMemory(*keys);
  return keys;
}

Result<std::string> OrgKeyOf(const std::string& tenant_folder, const std::string& org, const KeySet& operators,
                             FileSystem& disk) {
  const std::string path = FileBeside(tenant_folder);
  auto kept = disk.ReadFile(path, kMostBytes);
  if (kept || kept.error().code != ErrorCode::kNotFound) return kept;
  // A new key would open none of the present records, and hide that the right one is gone.
  for (const std::string& folder : FoldersIn(ParentDirectory(tenant_folder), disk)) {
    const auto sealed = TRY(ReadFolderKeys(folder, FolderMode::kSealed, &operators, disk));
    if (!sealed.missing.empty()) return MissingOrgKey(org);
  }
  auto made = TRY(NewOrgKey(operators, org));
  TRY(ReplaceFile(disk, path, made));
  TRY(disk.SyncDirectory(ParentDirectory(path)));
  return made;
}

Result<void> RemoveOrgKey(const std::string& org_folder, FileSystem& disk) {
  auto removed = disk.RemoveFile(FileIn(org_folder));
  if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
  return disk.SyncDirectory(org_folder);
}

Result<std::shared_ptr<const KeySet>> KeysOfFolder(KeySet operators, const std::string& folder, FileSystem& disk) {
  const auto owner = OwnerOfFolder(folder, disk);
  if (!owner) return std::make_shared<const KeySet>(std::move(operators));
  const auto kept = disk.ReadFile(FileBeside(folder), kMostBytes);
  if (kept) return KeysOfTenant(operators, *owner, *kept);
  if (kept.error().code != ErrorCode::kNotFound) return Fail(kept.error());
  return std::make_shared<const KeySet>(operators.BoundTo(TenantOf(*owner)));
}

}  // namespace reprise
