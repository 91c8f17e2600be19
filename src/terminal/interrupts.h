#pragma once

#include "base/system.h"

namespace reprise {

// Ctrl-C as something that can be waited for. Construct before any thread starts: SIGINT is blocked from then on. One
// at a time.
class Interrupts {
 public:
  Interrupts();

  // Readable when Take would be true.
  int descriptor() const { return signals_.get(); }
  // Whether it was pressed since.
  bool Take();

 private:
  UniqueFd signals_;
};

}  // namespace reprise
