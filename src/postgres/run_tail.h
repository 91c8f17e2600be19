#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "postgres/database.h"
#include "postgres/run_signals.h"
#include "postgres/tenant_database.h"
#include "reprise/run_store.h"
#include "store/file_journal.h"

namespace reprise {

// Reads the journal of another instance's run as it grows: what comes as a signal is the next row, or it shows that
// something is missing, which is read from the database. Thread-safe.
class RunTail : public std::enable_shared_from_this<RunTail> {
 public:
  // Database and keys must outlive it; `keys` may be null: plain.
  RunTail(TenantDatabase database, std::shared_ptr<RunSignals> signals, RunKey key, const KeySet* keys,
          RunStore::HeardNews heard)
      : database_(std::move(database)),
        signals_(std::move(signals)),
        key_(std::move(key)),
        keys_(keys),
        heard_(std::move(heard)) {}

  const RunKey& key() const { return key_; }
  // Reads what there is, waiting for it. kNotFound: nothing. To be called once, before the others.
  Result<void> Begin();
  // A row of its journal.
  void Hear(int epoch, int row, std::string_view bytes);
  // There may be more in the database.
  void Read();
  // So much is in the database now.
  void Compare(bool has_ended, int epoch, int last_row);

 private:
  Statement ReadStatement() const REQUIRES(mutex_);
  void TakeRows(const Rows& rows) REQUIRES(mutex_);
  // The next row, or one that is the first of a later epoch: then the run has been taken up, and that row has all
  // records so far once more.
  Result<void> Take(int epoch, int row, std::string_view bytes) REQUIRES(mutex_);
  void Tell(HeldNews news) REQUIRES(mutex_);

  TenantDatabase database_;
  const std::shared_ptr<RunSignals> signals_;
  const RunKey key_;
  const KeySet* const keys_;

  Mutex mutex_;                                   // held while somebody is told, so that news come in their order
  RunStore::HeardNews heard_ GUARDED_BY(mutex_);  // null: all is told
  std::optional<JournalTextReader> reader_ GUARDED_BY(mutex_);
  int epoch_ GUARDED_BY(mutex_) = 0, next_row_ GUARDED_BY(mutex_) = 0;
  std::size_t read_ GUARDED_BY(mutex_) = 0;  // records of this epoch
  std::size_t told_ GUARDED_BY(mutex_) = 0;  // records of all
  std::string owner_ GUARDED_BY(mutex_);     // that knows that we follow
  bool is_reading_ GUARDED_BY(mutex_) = false, read_again_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
