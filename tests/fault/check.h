#pragma once

#include <string>

#include "fault/ledger.h"
#include "fault/life.h"

namespace reprise {

struct CheckOptions {
  LifeOptions life{};
  // The process ended and the machine did not: everything that was seen must be there, not only what was acted upon.
  bool process_only = false;
  bool go_on = false;  // also take another turn in each chat
};

// Starts the server on this disk, healthy from now on, and compares what it finds with what was promised: the first
// broken promise in words, or nothing.
std::string BrokenPromise(FileSystem& disk, const Promises& promises, const CheckOptions& options);

}  // namespace reprise
