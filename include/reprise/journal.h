#pragma once

#include <string>
#include <string_view>
#include <vector>

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

}  // namespace reprise
