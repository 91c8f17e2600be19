#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crypto/key_set.h"
#include "postgres/tenant_database.h"
#include "reprise/grant_store.h"

namespace reprise {

// Standing grants as rows, one each, sealed if there are keys. What one process grants or takes back counts for all at
// once: a call is looked up when it is made.
class PostgresGrantStore final : public GrantStore {
 public:
  // `database` must outlive the object; `keys` may be null: plain.
  PostgresGrantStore(Database& database, std::string tenant, std::shared_ptr<const KeySet> keys)
      : database_(database, std::move(tenant)), keys_(std::move(keys)) {}

  Result<bool> Add(const StandingGrant& grant) override;
  Result<void> Remove(std::string_view id) override;
  Result<std::vector<StandingGrant>> List() override;
  std::vector<Grant> For(const Grant& call) override;
  void NoteUse(const std::vector<std::string>& ids) override;

 private:
  Result<std::string> Seal(const StandingGrant& grant) const;
  Result<StandingGrant> Open(std::string_view id, std::string_view record) const;

  TenantDatabase database_;
  const std::shared_ptr<const KeySet> keys_;
};

}  // namespace reprise
