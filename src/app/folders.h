#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "store/data_folder.h"

namespace reprise {

// The data folders of a server's users. All commands that read a data folder can read these.

// A tenant's data folder, below the server's; unique for each tenant.
std::string TenantFolder(const std::string& data_dir, const Principal& principal);
// Marks the folder as the tenant's. kCorruption (reason "integrity_swap") if it belongs to another one.
Result<void> MarkTenantFolder(const std::string& folder, const Principal& principal, FileSystem& disk);
// The tenants that have folders.
std::vector<Principal> ListTenants(const std::string& data_dir, FileSystem& disk);

// The tenant's name in its sealed records.
std::string TenantOf(const Principal& principal);
// The owner that the folder names; nullopt for the operator's.
std::optional<Principal> OwnerOfFolder(const std::string& folder, FileSystem& disk);
// The subfolders of a folder; none if it cannot be read.
std::vector<std::string> FoldersIn(const std::string& path, FileSystem& disk);
// The parent of the folders of an org's users.
std::string OrgFolder(const std::string& data_dir, const std::string& org);

// The suffixes of folders that a conversion keeps beside the data folder, or is making.
inline constexpr std::string_view kKeptPlain = ".plain.", kKeptSealed = ".sealed.", kBeingMade = ".converting.";

// The folders beside `root` that finished or interrupted conversions have left. `root` is canonical.
std::vector<std::string> FoldersKeptOf(const std::string& root);

// Knows which instance of a database the last server of this data folder was. A server holds a lock while it runs, so a
// server that gets the lock knows that the last one has ended, and need not wait for the end of its lease.
class LastInstance {
 public:
  // Looks for the last one. Ignores notes of another machine, and of this machine before its last boot, because the
  // lock proves nothing about them.
  static LastInstance Take(const std::string& data_folder, FileSystem& disk);

  // The last instance, which has certainly ended; nullopt if that is unknown.
  const std::optional<std::string>& ended() const { return ended_; }
  // Notes the present instance. Best effort: without the note, the next server waits for the lease.
  void Note(const std::string& instance) const;

 private:
  LastInstance(std::string file, FileSystem& disk) : file_(std::move(file)), disk_(disk) {}

  const std::string file_;
  FileSystem& disk_;
  std::unique_ptr<DirectoryLock> lock_;  // null if another process has it
  std::optional<std::string> ended_;
};

}  // namespace reprise
