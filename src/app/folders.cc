#include "app/folders.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMostMarkBytes = 4096;

std::string TenantsFolder(const std::string& data_dir) { return data_dir + "/.tenants"; }
std::string MarkOf(const std::string& folder) { return folder + "/.tenant"; }

// A unique folder name for a name: letters, digits, "-", "_", "@" and "." stay, other bytes become %XX, and a name that
// is too long becomes "~" and its SHA-256.
std::string FolderName(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  std::string folder = PercentEncoded(name, "-_@.");
  if (folder.starts_with('.')) folder.replace(0, 1, "%2E");  // neither hidden nor the parent folder
  if (folder.size() <= kLongest) return folder;
  return "~" + Sha256Digest({name}).substr(std::string_view("sha256:").size());
}

std::optional<Principal> ReadMark(const std::string& folder, FileSystem& disk) {
  const auto text = disk.ReadFile(MarkOf(folder), kMostMarkBytes);
  const auto json = text ? ParseJson(*text) : Fail(text.error());
  if (!json) return std::nullopt;
  Principal principal{
      .role = Principal::Role::kUser, .org = TextMember(*json, "org"), .user = TextMember(*json, "user")};
  if (!IsPrincipalName(principal.org) || !IsPrincipalName(principal.user)) return std::nullopt;
  return principal;
}

}  // namespace

std::vector<std::string> FoldersIn(const std::string& path, FileSystem& disk) {
  std::vector<std::string> folders;
  const auto entries = disk.ListDirectory(path);
  if (!entries) return folders;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory) folders.push_back(path + "/" + entry.name);
  }
  return folders;
}

std::string TenantFolder(const std::string& data_dir, const Principal& principal) {
  return OrgFolder(data_dir, principal.org) + "/" + FolderName(principal.user);
}

std::string OrgFolder(const std::string& data_dir, const std::string& org) {
  return TenantsFolder(data_dir) + "/" + FolderName(org);
}

Result<void> MarkTenantFolder(const std::string& folder, const Principal& principal, FileSystem& disk) {
  TRY(CreateDirectories(disk, folder));
  const auto text = disk.ReadFile(MarkOf(folder), kMostMarkBytes);
  if (!text && text.error().code != ErrorCode::kNotFound) return Fail(text.error());
  if (!text) {
    TRY(ReplaceFile(disk, MarkOf(folder), DumpJson({{"org", principal.org}, {"user", principal.user}}) + "\n"));
    return disk.SyncDirectory(folder);
  }
  const auto marked = ReadMark(folder, disk);
  if (marked && marked->org == principal.org && marked->user == principal.user) return {};
  return Fail(Reason::kIntegritySwap, "the folder of this user's chats says that it is another's", folder);
}

std::vector<Principal> ListTenants(const std::string& data_dir, FileSystem& disk) {
  std::vector<Principal> tenants;
  for (const std::string& org : FoldersIn(TenantsFolder(data_dir), disk)) {
    for (const std::string& folder : FoldersIn(org, disk)) {
      auto principal = ReadMark(folder, disk);
      if (principal && TenantFolder(data_dir, *principal) == folder) {
        tenants.push_back(*std::move(principal));
      } else {
        LogWarning("a folder of a user's chats is in the wrong place", {{"folder", folder}});
      }
    }
  }
  return tenants;
}

std::string TenantOf(const Principal& principal) { return Sha256Digest({principal.org, "\n", principal.user}); }

std::optional<Principal> OwnerOfFolder(const std::string& folder, FileSystem& disk) { return ReadMark(folder, disk); }

std::vector<std::string> FoldersKeptOf(const std::string& root) {
  const std::string name = std::filesystem::path(root).filename().string();
  std::vector<std::string> kept;
  const std::string parent = ParentDirectory(root);
  const auto entries = Disk().ListDirectory(parent);
  if (!entries) {
    LogWarning("copies beside the data folder cannot be listed", {{"detail", entries.error().detail}});
    return kept;
  }
  for (const DirectoryEntry& entry : *entries) {
    for (const std::string_view mark : {kKeptPlain, kKeptSealed, kBeingMade}) {
      if (entry.name.starts_with(name + std::string(mark))) kept.push_back(parent + "/" + entry.name);
    }
  }
  return kept;
}

namespace {

constexpr std::uint64_t kMostNoteBytes = 256;

// The id of this machine's present boot (random(4)); empty if there is none.
std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

LastInstance LastInstance::Take(const std::string& data_folder, FileSystem& disk) {
  LastInstance last(data_folder + "/.instance", disk);
  auto lock = DirectoryLock::Acquire(data_folder + "/.instance_lock");
  if (!lock) return last;
  last.lock_ = *std::move(lock);
  const auto text = disk.ReadFile(last.file_, kMostNoteBytes);
  const std::string boot = BootId();
  if (!text || boot.empty() || !text->starts_with(boot + "\n") || !text->ends_with("\n")) return last;
  last.ended_ = text->substr(boot.size() + 1, text->size() - boot.size() - 2);
  return last;
}

void LastInstance::Note(const std::string& instance) const {
  if (!lock_) return;
  if (auto noted = ReplaceFile(disk_, file_, BootId() + "\n" + instance + "\n"); !noted) {
    LogWarning("this server's instance could not be noted", {{"detail", noted.error().message}});
  }
}

}  // namespace reprise
