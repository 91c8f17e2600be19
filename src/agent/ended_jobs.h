#pragma once

#include <string>
#include <vector>

#include "reprise/event.h"
#include "reprise/jobs.h"

namespace reprise {

struct EndedJobs {
  std::vector<event::JobEnded> events{};
  std::string note{};  // for the model; empty: none has ended
};

// Removes the jobs that have ended from `started`. Those that are not in `jobs` are lost.
EndedJobs TakeEndedJobs(const JobsOfChat& jobs, std::vector<StartedJob>& started);

}  // namespace reprise
