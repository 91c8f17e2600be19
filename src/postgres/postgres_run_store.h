#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postgres/database.h"
#include "postgres/lease.h"
#include "postgres/postgres_store.h"
#include "reprise/run_store.h"

namespace reprise {

// Runs that any number of processes share through a database: a chat's row names the run that holds it, and the run's
// row its owner, an instance with a lease, and the token that each of its writes must have. Records go out with the
// pipeline, in their order, and `done` is called on the database's thread. Thread-safe.
class PostgresRunStore final : public RunStore {
 public:
  // All must outlive it. `instance`: whom the runs belong to.
  PostgresRunStore(Database& database, PostgresStore& store, Lease& lease)
      : database_(database), store_(store), lease_(lease) {}

  Result<std::unique_ptr<RunHold>> Begin(const RunBeginning& beginning) override;
  Result<std::vector<AbandonedRun>> ClaimAbandoned(std::size_t most) override;
  Result<std::optional<InteractionId>> HeldElsewhere(const ChatId& chat) override;
  Result<HeldJournal> ReadHeld(const InteractionRef& run) override;
  Result<bool> RequestStop(const InteractionRef& run, std::string_view reason) override;
  Result<std::vector<StopRequest>> StopRequests() override;
  void Watch(std::function<void()> look) override { lease_.Watch(std::move(look)); }

 private:
  class Hold;
  // Once: nullptr if the chat is not as it was read any more.
  Result<std::unique_ptr<RunHold>> TryToBegin(const RunBeginning& beginning);

  Database& database_;
  PostgresStore& store_;
  Lease& lease_;
};

}  // namespace reprise
