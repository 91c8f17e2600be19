#include "agent/ended_jobs.h"

#include <algorithm>

#include "base/terminal_text.h"

namespace reprise {

std::string Described(const Job& job) {
  if (!job.end) return "runs, with " + Counted(job.output_bytes, "byte") + " of output so far";
  const JobEnd& end = *job.end;
  const std::string status = end.status ? std::to_string(*end.status) : "unknown";
  if (end.reason == "exited") return "has ended with exit status " + status;
  if (end.reason == "signalled") return "was ended by signal " + status;
  if (end.reason == "timed_out") return "has taken longer than allowed and was ended";
  if (end.reason == "stopped") return "was stopped, with all that it had started";
  if (end.reason == "lost") return "has ended, because its server has stopped or the chat has gone on elsewhere";
  return "has failed: " + end.message;
}

EndedJobs TakeEndedJobs(const JobsOfChat& jobs, std::vector<StartedJob>& started) {
  EndedJobs ended;
  if (started.empty()) return ended;
  const std::vector<Job> present = jobs.List();
  std::erase_if(started, [&](const StartedJob& each) {
    const auto found = std::find_if(present.begin(), present.end(), [&](const Job& job) { return job.id == each.id; });
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
