#pragma once

namespace reprise {

// Marks the calling thread as one that works in the background: when it is woken it does not take the processor from
// the thread that woke it (SCHED_BATCH, sched(7)). Without effect where the system does not allow it.
void BecomeBackgroundThread();

}  // namespace reprise
