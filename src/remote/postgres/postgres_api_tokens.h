#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "people/api_tokens.h"
#include "remote/postgres/database.h"

namespace reprise {

// API tokens as rows, which any number of processes add, revoke and check. A new token counts at once, a revoked one
// for another second at most.
class PostgresApiTokens final : public ApiTokenStore {
 public:
  static constexpr std::chrono::seconds kKnownFor{1};

  // `database` must outlive the object.
  explicit PostgresApiTokens(Database& database) : database_(database) {}

  Version Look() const override;
  bool is_exact() const override { return false; }
  Result<Content> Read() override;
  Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) override;
  Result<ApiToken> Revoke(std::string_view id) override;
  TokenUses ReadUses() override;
  Result<void> WriteUses(const TokenUses& uses) override;

 private:
  Result<Version> ReadVersion();
  bool IsKnown() const REQUIRES(mutex_) { return std::chrono::steady_clock::now() - asked_at_ < kKnownFor; }

  Database& database_;
  mutable Mutex mutex_;
  std::chrono::steady_clock::time_point asked_at_ GUARDED_BY(mutex_){};  // when the database was asked last
  Result<Content> content_ GUARDED_BY(mutex_) = Content();               // its answer
  Mutex uses_mutex_;
  TokenUses written_ GUARDED_BY(uses_mutex_);
};

}  // namespace reprise
