#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "postgres/database.h"
#include "postgres/run_signals.h"
#include "postgres/tenant_database.h"
#include "reprise/journal.h"

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

}  // namespace reprise
