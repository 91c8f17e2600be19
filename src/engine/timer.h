#pragma once

#include "base/timed_queue.h"

namespace reprise {

// Calls functions later. What is not due yet when it goes is dropped.
using Timer = TimedQueue;

}  // namespace reprise
