#pragma once

#include <string>

#include "fault/ledger.h"
#include "fault/life.h"

namespace reprise {

struct CheckOptions {
  LifeOptions life{};
  // Only the process ended, not the machine: everything seen must be there, not only what was acted upon.
  bool process_only = false;
  bool go_on = false;  // also take another turn in each chat
};

// Starts the server on this disk, healthy from now on, and compares the content with the promises. Returns the first
// broken promise in words; empty if all are kept.
std::string BrokenPromise(FileSystem& disk, const Promises& promises, const CheckOptions& options);

}  // namespace reprise
