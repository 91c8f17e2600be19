#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "remote/postgres/signals.h"
#include "remote/postgres/tenant_database.h"
#include "reprise/journal.h"
#include "reprise/run_store.h"
#include "store/file_journal.h"

namespace reprise {

// Writes the records of all runs' journals: what comes while a statement is under way goes with the next one.
// Thread-safe.
class JournalWriter : public std::enable_shared_from_this<JournalWriter> {
 public:
  struct Record {
    RunKey key;
    std::string token;
    int row = 0;
    std::string bytes;
    Journal::Reach reach = Journal::Reach::kProcess;
  };
  // `database` must outlive it.
  explicit JournalWriter(Database& database) : database_(database) {}

  // `done` is called once, on the database's thread, in the order in which a run's records were added. True: the record
  // is kept, as all before it of its run are. False: it is not, as the token is another one, or what was before it is
  // lost, or the database has refused.
  using Done = std::function<void(bool is_kept)>;
  void Add(Record record, Done done);

 private:
  using Batch = std::vector<std::pair<Record, Done>>;
  void SendWhatWaits();
  static Statement ForOne(const Record& record);
  static Statement ForMany(const Batch& batch);

  Database& database_;
  Mutex mutex_;
  std::deque<std::pair<Record, Done>> waiting_ GUARDED_BY(mutex_);
  bool is_sending_ GUARDED_BY(mutex_) = false;
};

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
