#include "base/background_thread.h"

#include <sched.h>

namespace reprise {

void BecomeBackgroundThread() {
  const sched_param no_priority{};
  static_cast<void>(::sched_setscheduler(0, SCHED_BATCH, &no_priority));
}

}  // namespace reprise
