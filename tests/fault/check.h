#pragma once

#include <string>

#include "fault/ledger.h"
#include "fault/life.h"

namespace reprise {

struct CheckOptions {
  LifeOptions life{};
  // The process ended but not the machine: everything that was seen must survive, not only what was acted upon.
  bool process_only = false;
  bool go_on = false;  // also take another turn in each chat
};

// Starts the server on this disk, which is healthy from now on, and compares its state with the promises. Returns the
// first broken promise in words, or nothing.
std::string BrokenPromise(FileSystem& disk, const Promises& promises, const CheckOptions& options);

}  // namespace reprise
