#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "reprise/result.h"

// The data folders of a server's users. All commands that read a data folder can read these.
namespace reprise {

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

}  // namespace reprise
