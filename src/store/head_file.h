#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

// A head: a small file that says how far another one has come, so that an older state of that one is noticed
// (schemas/FILES.md, Heads). Sealed if there are keys.
namespace reprise {

inline constexpr std::string_view kAuditHeadType = "reprise/audit-head";
inline constexpr std::string_view kGrantsHeadType = "reprise/grants-head";

// What a record that belongs to no chat holds, if it is of this type and version; `name` is the file's, for messages.
// kCorruption (reason "integrity_<kind>").
Result<std::string> OpenLoneRecord(std::string_view text, std::string_view name, std::string_view type, int version,
                                   const KeySet* keys);
Error LoneRecordDamage(std::string_view name, std::string_view kind, std::string_view what);

// The JSON text that WriteHeadFile was given; nullopt if there is no such file. Fails as OpenLoneRecord and with kIo.
Result<std::optional<std::string>> ReadHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                                                const KeySet* keys);
// What the file holds then.
Result<std::string> HeadText(std::string_view type, std::string_view json, const KeySet* keys);
// Replaces it, durably.
Result<void> WriteHeadFile(FileSystem& file_system, const std::string& path, std::string_view type,
                           std::string_view json, const KeySet* keys);

}  // namespace reprise
