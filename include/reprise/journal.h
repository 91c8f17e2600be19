#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// What is kept of an interaction while it runs, record by record, so that it outlives the process. Used by one thread
// at a time.
class Journal {
 public:
  virtual ~Journal() = default;

  enum class Reach {
    kProcess,   // survives the end of the process, however sudden
    kPowerLoss  // survives a power loss too, with everything appended before
  };
  // Appends one record (JSON text on one line). When this returns ok it reaches as far as was asked. After a failure
  // (kStorageFull, kIo) nothing more can be appended.
  virtual Result<void> Append(std::string_view record, Reach reach) = 0;
};

// What a journal held when its process ended.
struct JournalContent {
  std::vector<std::string> records;
  bool cut_off = false;  // the last record had not been written to its end, and is left out
};

// Keeps the journals of interactions that run, for a RunStore of one process (store/local_run_store). As it stands here
// it keeps none: that of a store that outlives no process, or whose runs keep their journals themselves. Failures as
// those of InteractionStore.
class JournalStore {
 public:
  virtual ~JournalStore() = default;

  // Begins the journal of an interaction whose number was reserved, with these records already in it (of the journal
  // that it continues; durable then). Null: none is kept. SaveInteraction ends it.
  virtual Result<std::unique_ptr<Journal>> BeginJournal(const ChatId&, InteractionId, const std::vector<std::string>&) {
    return nullptr;
  }
  // The interactions whose process ended before they did. Takes a time that depends on their number, not on that of the
  // chats. To be asked once, before the first is reserved.
  virtual Result<std::vector<InteractionRef>> ListUnfinished() { return std::vector<InteractionRef>(); }
  // kNotFound if there is none.
  virtual Result<JournalContent> ReadJournal(const ChatId&, InteractionId) {
    return Fail(ErrorCode::kNotFound, "no journals are kept here");
  }
  // Forgets a journal that nobody needs: of an interaction that is saved, or of which nobody has seen anything.
  virtual Result<void> DropJournal(const ChatId&, InteractionId) { return {}; }
};

}  // namespace reprise
