#include "base/terminal_text.h"
#include "reprise/jobs.h"

namespace reprise {

std::string_view ToString(JobPort::State state) {
  switch (state) {
    case JobPort::State::kClosed:
      return "closed";
    case JobPort::State::kOpen:
      return "open";
    case JobPort::State::kOutside:
      break;
  }
  return "outside";
}

namespace {

std::string DescribedPorts(const Job& job) {
  std::string text;
  for (const JobPort& port : job.ports) {
    text += (text.empty() ? ", and listens on port " : ", ") + std::to_string(port.port);
    if (port.state == JobPort::State::kOpen) text += " (the user sees it at " + port.url + ")";
    if (port.state == JobPort::State::kClosed) text += " (the user can open it)";
  }
  return text;
}

}  // namespace

std::string Described(const Job& job) {
  if (!job.end) return "runs, with " + Counted(job.output_bytes, "byte") + " of output so far" + DescribedPorts(job);
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
