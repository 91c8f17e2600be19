#include "agent/ended_jobs.h"

#include <algorithm>

namespace reprise {

EndedJobs TakeEndedJobs(const JobsOfChat& jobs, std::vector<StartedJob>& started) {
  EndedJobs ended;
  if (started.empty()) return ended;
  const std::vector<Job> present = jobs.List();
  std::erase_if(started, [&](const StartedJob& each) {
    const auto found = std::ranges::find(present, each.id, &Job::id);
    Job job{.id = each.id, .command = each.command, .end = JobEnd{.reason = "lost"}};
    if (found != present.end()) job = *found;
    if (!job.end) return false;
    ended.events.push_back({job.id, job.command, job.end->reason, job.end->status});
    ended.note += "\n(The background job " + job.id + " " + Described(job) + ".)";
    return true;
  });
  return ended;
}

}  // namespace reprise
