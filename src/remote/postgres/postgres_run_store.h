#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "remote/postgres/database.h"
#include "remote/postgres/lease.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/run_tail.h"
#include "remote/postgres/signals.h"
#include "reprise/run_store.h"

namespace reprise {

// Runs that any number of processes share through a database: a chat's row names the run that holds it, and the run's
// row its owner, an instance with a lease, and the token that each of its writes must have. Records of all runs go out
// together, each run's in their order, and `done` is called on the database's thread. Thread-safe.
class PostgresRunStore final : public RunStore {
 public:
  // All must outlive it. `instance`: whom the runs belong to.
  PostgresRunStore(Database& database, PostgresStore& store, Lease& lease, RunSignals& signals)
      : PostgresRunStore(database, store, lease, signals, std::make_shared<JournalWriter>(database)) {}
  // The same with a writer that others use too.
  PostgresRunStore(Database& database, PostgresStore& store, Lease& lease, RunSignals& signals,
                   std::shared_ptr<JournalWriter> writer)
      : database_(database, store.tenant()),
        store_(store),
        lease_(lease),
        signals_(signals),
        writer_(std::move(writer)) {}

  Result<std::unique_ptr<RunHold>> Begin(const RunBeginning& beginning) override;
  Result<std::vector<AbandonedRun>> ClaimAbandoned(std::size_t most) override;
  Result<std::optional<InteractionId>> HeldElsewhere(const ChatId& chat) override;
  Result<std::vector<InteractionRef>> AllHeldElsewhere() override;
  Result<HeldJournal> ReadHeld(const InteractionRef& run) override;
  Result<bool> RequestStop(const InteractionRef& run, std::string_view reason) override;
  Result<std::vector<StopRequest>> StopRequests() override;
  Result<std::shared_ptr<void>> Follow(const InteractionRef& run, HeardNews heard) override;
  Result<bool> IsFollowedElsewhere(const InteractionRef& run) override;
  void Watch(std::function<void(const Wanted&)> look) override;

 private:
  class Hold;
  struct Token {
    std::string text;
    std::shared_ptr<void> kept;  // as long as the process has it
    int deaths;                  // of the lease, before it was used
  };
  Token MakeToken();
  // For a chat whose next number is this one; nullptr if it is not, or the chat is not as it is expected to be.
  // `is_new`: there must be no such chat.
  Result<std::unique_ptr<RunHold>> Claim(const RunBeginning& beginning, InteractionId id, bool is_new);

  TenantDatabase database_;
  PostgresStore& store_;
  Lease& lease_;
  RunSignals& signals_;
  const std::shared_ptr<JournalWriter> writer_;
};

}  // namespace reprise
