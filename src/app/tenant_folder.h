#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/principal.h"
#include "reprise/result.h"

// The data folders of a server's users. Each is a data folder like any other: the commands that read one read these
// too.
namespace reprise {

// Where a tenant's data folder is, below the server's: no two tenants have the same.
std::string TenantFolder(const std::string& data_dir, const Principal& principal);
// Makes it say whose it is. kCorruption (reason "integrity_swap") if it says that it is somebody else's.
Result<void> MarkTenantFolder(const std::string& folder, const Principal& principal, FileSystem& disk);
// Those whose folders are there.
std::vector<Principal> ListTenants(const std::string& data_dir, FileSystem& disk);

// What a tenant is called in what is sealed for it.
std::string TenantOf(const Principal& principal);
// Whose folder this says it is; nullopt: it is nobody's but the operator's.
std::optional<Principal> OwnerOfFolder(const std::string& folder, FileSystem& disk);
// The folders in a folder; none if it cannot be read.
std::vector<std::string> FoldersIn(const std::string& path, FileSystem& disk);
// Where the folders of an org's users are.
std::string OrgFolder(const std::string& data_dir, const std::string& org);

}  // namespace reprise
