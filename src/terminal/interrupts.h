#pragma once

#include "base/system.h"

namespace reprise {

// Ctrl-C as an event to wait for. Construct it before any thread starts, because it blocks SIGINT. One at a time.
class Interrupts {
 public:
  Interrupts();

  // Readable when Take would return true.
  int descriptor() const { return signals_.get(); }
  // Whether Ctrl-C was pressed since the last call.
  bool Take();

 private:
  UniqueFd signals_;
};

}  // namespace reprise
