#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// The records of a running interaction, which outlive the process. Used by one thread at a time.
class Journal {
 public:
  virtual ~Journal() = default;

  enum class Reach {
    kProcess,   // survives the end of the process, however sudden
    kPowerLoss  // survives a power loss too, with everything appended before
  };
  // Appends one record (JSON text on one line). When this returns ok, it is as durable as `reach` says. After a failure
  // (kStorageFull, kIo) no further record can be appended.
  virtual Result<void> Append(std::string_view record, Reach reach) = 0;
};

// The content of a journal after its process ended.
struct JournalContent {
  std::vector<std::string> records;
  bool cut_off = false;  // the last record was incomplete, and is left out
};

// Keeps the journals of running interactions, for a RunStore of one process (store/local_run_store). The default keeps
// none, for stores that do not outlive the process or whose runs keep their own journals. Failures as InteractionStore.
//
//   auto journal = store.BeginJournal(chat, id, {});
//   if (!journal) return Complain(journal.error().message);
//   if (!*journal) return;  // this store keeps none
//   auto kept = (*journal)->Append(R"({"type":"note"})", reprise::Journal::Reach::kProcess);
class JournalStore {
 public:
  virtual ~JournalStore() = default;

  // Starts the journal of an interaction with a reserved number. It begins with these records (of the journal that it
  // continues), which are durable then. Null: no journal is kept. SaveInteraction ends it.
  virtual Result<std::unique_ptr<Journal>> BeginJournal(const ChatId&, InteractionId, const std::vector<std::string>&) {
    return nullptr;
  }
  // The interactions whose process ended first. The cost depends on their number, not on that of the chats. Call it
  // once, before the first reservation.
  virtual Result<std::vector<InteractionRef>> ListUnfinished() { return std::vector<InteractionRef>(); }
  // kNotFound if there is none.
  virtual Result<JournalContent> ReadJournal(const ChatId&, InteractionId) {
    return Fail(ErrorCode::kNotFound, "no journals are kept here");
  }
  // Deletes an unneeded journal: its interaction is saved, or no client has seen any of it.
  virtual Result<void> DropJournal(const ChatId&, InteractionId) { return {}; }
};

}  // namespace reprise
