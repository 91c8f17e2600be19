#pragma once

#include <string>
#include <utility>
#include <vector>

#include "postgres/database.h"
#include "postgres/postgres_store.h"
#include "postgres/run_signals.h"
#include "reprise/question_store.h"

namespace reprise {

// Questions as rows: the one that has no answer yet takes the first, by the database's clock. Question and answer are
// sealed; the owner of the run is told where to look. Thread-safe.
class PostgresQuestionStore final : public QuestionStore {
 public:
  // Both must outlive it.
  PostgresQuestionStore(Database& database, PostgresStore& store, RunSignals& signals, std::string instance)
      : database_(database, store.tenant()), store_(store), signals_(signals), instance_(std::move(instance)) {}

  Result<void> Open(const std::vector<PendingQuestion>& questions) override;
  Result<PendingQuestion> Find(const std::string& id) override;
  Result<std::vector<PendingQuestion>> Waiting() override;
  Result<void> Answer(const InteractionRef& run, const std::string& id, const GivenAnswer& answer) override;
  Result<std::vector<std::pair<std::string, GivenAnswer>>> Answered(const InteractionRef& run) override;

 private:
  Result<PendingQuestion> OpenRow(const Rows& rows, std::size_t row);

  TenantDatabase database_;
  PostgresStore& store_;
  RunSignals& signals_;
  const std::string instance_;  // of this process: only whoever holds the run asks
};

}  // namespace reprise
