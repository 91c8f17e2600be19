#include "reprise/jobs.h"

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

}  // namespace reprise
