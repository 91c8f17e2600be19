#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/sealed_list.h"
#include "approval/rules.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "doors/api/server.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "reprise/options.h"

namespace reprise {

class AddedServers;
class WorkspaceFolders;

// The approval rules that the operator has added in the page, for the operator's chats alone, in all folders. They hold
// at once, and are kept in a SealedList. Thread-safe.
class AddedRules final : public RuleSettings {
 public:
  struct Parts {  // all must outlive the object
    const Options& options;
    FileSystem& disk;
    std::shared_ptr<const KeySet> keys;  // null: a plain data folder
    WorkspaceFolders& folders;
    const AddedServers& servers;
    AuditLog* audit;  // without a line there nothing is changed; null: none
  };
  // Reads the list.
  explicit AddedRules(Parts parts);

  // Those that hold; null: none.
  ToolRules Now() const;

  Result<std::vector<Rule>> List(const std::string& workspace) override;
  Result<Rule> Add(const Wanted& wanted) override;
  Result<void> Remove(const std::string& id, const Consent& consent) override;

 private:
  // What it means, with its digest; kInvalidArgument if it is malformed or can never match.
  Result<Rule> Look(const ToolRule& rule) const;
  void Use(const std::vector<Rule>& rules) REQUIRES(mutex_);

  const Parts parts_;
  mutable Mutex mutex_;
  SealedList list_ GUARDED_BY(mutex_);
  std::vector<Rule> rules_ GUARDED_BY(mutex_);
  ToolRules now_ GUARDED_BY(mutex_);
};

}  // namespace reprise
