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

// Runs that any number of processes share through a database. A chat's row names the run that holds it; the run's row
// names its owner (an instance with a lease) and the token that each of its writes must have. Records of all runs are
// sent together, each run's in order, and `done` is called on the database's thread. Thread-safe.
class PostgresRunStore final : public RunStore {
 public:
  // All must outlive it. The runs belong to the lease's instance.
  PostgresRunStore(Database& database, PostgresStore& store, Lease& lease, RunSignals& signals)
      : PostgresRunStore(database, store, lease, signals, std::make_shared<JournalWriter>(database)) {}
  // The same with a shared writer.
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
    std::shared_ptr<void> kept;  // Lease::Keep
    int deaths;                  // Lease::deaths before the token was used
  };
  Token MakeToken();
  // Begins the run with this number; nullptr if the chat's next number is another one, or the chat is not as expected.
  // `is_new`: there must be no such chat.
  Result<std::unique_ptr<RunHold>> Claim(const RunBeginning& beginning, InteractionId id, bool is_new);

  TenantDatabase database_;
  PostgresStore& store_;
  Lease& lease_;
  RunSignals& signals_;
  const std::shared_ptr<JournalWriter> writer_;
};

}  // namespace reprise
