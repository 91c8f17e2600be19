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
#include "reprise/journal.h"
#include "reprise/run_store.h"
#include "store/file_journal.h"

namespace reprise {

// Writes the records of all runs' journals. Records that come while a statement is under way go with the next one.
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
  // and all before it of its run are kept. False: it is not, because the run has another token, an earlier record is
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

// Reads the journal of another instance's run as it grows. A signal has the next row, or shows that rows are missing,
// which are then read from the database. Thread-safe.
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
  // Reads the present rows, and waits for that. kNotFound if nothing is kept of the run. Call it once, before the
  // others.
  Result<void> Begin();
  // Takes a row of the journal.
  void Hear(int epoch, int row, std::string_view bytes);
  // Reads on in the database.
  void Read();
  // Reads on if the run has ended, or if the database's last row was not read yet.
  void Compare(bool has_ended, int epoch, int last_row);

 private:
  Statement ReadStatement() const REQUIRES(mutex_);
  void TakeRows(const Rows& rows) REQUIRES(mutex_);
  // Takes the next row, or the first one of a later epoch: then the run has been taken up, and that row repeats all
  // records so far.
  Result<void> Take(int epoch, int row, std::string_view bytes) REQUIRES(mutex_);
  void Tell(HeldNews news) REQUIRES(mutex_);

  TenantDatabase database_;
  const std::shared_ptr<RunSignals> signals_;
  const RunKey key_;
  const KeySet* const keys_;

  Mutex mutex_;                                   // held while news are passed on, so that they keep their order
  RunStore::HeardNews heard_ GUARDED_BY(mutex_);  // null: nothing more to pass on
  std::optional<JournalTextReader> reader_ GUARDED_BY(mutex_);
  int epoch_ GUARDED_BY(mutex_) = 0, next_row_ GUARDED_BY(mutex_) = 0;
  std::size_t read_ GUARDED_BY(mutex_) = 0;  // records of this epoch
  std::size_t told_ GUARDED_BY(mutex_) = 0;  // records passed on, in all epochs
  std::string owner_ GUARDED_BY(mutex_);     // the owner that knows that we follow
  bool is_reading_ GUARDED_BY(mutex_) = false, read_again_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
