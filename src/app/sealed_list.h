#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "crypto/key_set.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// A list that people change in the page: objects by their names, in a file of the data folder that is sealed if chats
// are (schemas/FILES.md). A file that cannot be read counts as empty, with a warning, and is never written over. Not
// thread-safe.
class SealedList {
 public:
  // Names are part of the file format.
  struct Kind {
    const char* file;    // ".providers"
    const char* type;    // "reprise/providers"
    const char* member;  // "providers"
    const char* words;   // for people: "connected providers"
  };
  struct Place {
    FileSystem& disk;  // must outlive the list
    std::string data_dir;
    std::shared_ptr<const KeySet> keys;  // null: a plain data folder
    AuditLog* audit = nullptr;           // null: none
  };
  // Reads the file.
  SealedList(const Kind& kind, Place place);

  bool is_sealed() const { return place_.keys != nullptr; }
  const Json& entries() const { return entries_; }
  // kConflict if the file could not be read.
  Result<void> CheckWritable() const;
  // Replaces the entries, durably. Those of the file that are not in use stay as they are only if they are passed, too.
  // kInvalidArgument (reason "invalid_member") if there are too many; kConflict as CheckWritable.
  Result<void> Write(Json entries);
  // The same after a line in the audit log (AuditEntry says what `name` and `digest` are), without which nothing is
  // changed.
  Result<void> Change(AuditEntry::Event event, const std::string& name, const std::string& digest, Json entries);

 private:
  Result<void> CheckChange(const Json& entries) const;

  const Kind kind_;
  const Place place_;
  Json entries_ = Json::object();
  std::optional<Error> unread_;  // why the file could not be read
};

// Those that there are.
inline constexpr SealedList::Kind kProvidersList{".providers", "reprise/providers", "providers", "connected providers"};
inline constexpr SealedList::Kind kServersList{".added_servers", "reprise/servers", "servers", "added MCP servers"};
inline constexpr SealedList::Kind kRulesList{".added_rules", "reprise/rules", "rules", "added rules"};

// Copies all lists of one data folder to another one, where they are sealed by other keys. Without keys a folder is
// plain.
Result<void> CopySealedLists(FileSystem& disk, const std::string& from, const KeySet* opened_by, const std::string& to,
                             const KeySet* sealed_by);

}  // namespace reprise
