#include "model/offline/paced_writer.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "base/text.h"

namespace reprise {
namespace {

// Long words, and scripts without spaces, are split into pieces of this many characters.
constexpr std::size_t kLongestPiece = 16;

Error Stopped() { return MakeError(ErrorCode::kCancelled, "the request was cancelled"); }

// The first word and the spaces after it.
std::string_view TakeWord(std::string_view& left, std::chrono::milliseconds pause) {
  constexpr std::string_view kBlank = " \n\t";
  const std::size_t end = std::min(left.find_first_of(kBlank), left.size());
  std::string_view word = left.substr(0, std::min(left.find_first_not_of(kBlank, end), left.size()));
  if (pause.count() > 0) word = Utf8Prefix(word, kLongestPiece);
  left.remove_prefix(word.size());
  return word;
}

}  // namespace

PacedWriter::~PacedWriter() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void PacedWriter::Write(PacedResponse response, ModelStream& stream, std::stop_token stop, ModelClient::Done done) {
  std::unique_ptr<Job> job(
      new Job{.response = std::move(response), .stream = stream, .stop = std::move(stop), .done = std::move(done)});
  job->thinking = job->response.thinking;
  job->text = job->response.text;
  // Without the lock, because the callback takes it. A stop before the job is in the map is noticed at its first word.
  job->on_stop.emplace(job->stop, [this, stopped = job.get()] { WakeFor(stopped); });
  const MutexLock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& over) { Run(over); });
  jobs_.emplace(Clock::now(), std::move(job));
  wake_.notify_one();
}

void PacedWriter::WakeFor(const Job* stopped) {
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& each) { return each.second.get() == stopped; });
  if (found == jobs_.end()) return;  // it is being written, and checks for a stop itself
  auto node = jobs_.extract(found);
  node.key() = Clock::time_point::min();
  jobs_.insert(std::move(node));
  wake_.notify_one();
}

bool PacedWriter::Step(Job& job) {
  const auto end = [&job](auto how) {
    Guarded("who awaits a response", [&] { job.done(std::move(how)); });
    return true;
  };
  if (job.stop.stop_requested()) return end(Result<ModelResponse>(Fail(Stopped())));
  const bool is_heard = Guarded("who hears a response", [&job] {
    if (!job.thinking.empty()) {
      job.stream.OnThinking(TakeWord(job.thinking, job.response.pause));
      job.stream.OnBatchEnd();
    } else if (!job.text.empty()) {
      job.stream.OnText(TakeWord(job.text, job.response.pause));
      job.stream.OnBatchEnd();
    }
  });
  if (!is_heard) return end(Result<ModelResponse>(Fail(ErrorCode::kInternal, "the response could not be taken")));
  if (!job.thinking.empty() || !job.text.empty()) return false;
  return end(std::move(job.response.end));
}

void PacedWriter::Run(const std::stop_token& over) {
  MutexLock lock(mutex_);
  while (!over.stop_requested()) {
    if (jobs_.empty()) {
      wake_.wait(lock, over, [this]() REQUIRES(mutex_) { return !jobs_.empty(); });
      continue;
    }
    const auto due = jobs_.begin()->first;
    if (Clock::now() < due) {
      wake_.wait_until(lock, over, due, [this, due]() REQUIRES(mutex_) { return jobs_.begin()->first < due; });
      continue;
    }
    auto node = jobs_.extract(jobs_.begin());
    std::unique_ptr<Job>& job = node.mapped();
    lock.unlock();
    bool at_end = Step(*job);
    while (!at_end && job->response.pause.count() == 0) at_end = Step(*job);
    if (at_end) job.reset();  // without the lock: a callback that runs now takes it
    lock.lock();
    if (at_end) continue;
    // A stop since the last check did not find the job in the map.
    node.key() = job->stop.stop_requested() ? Clock::time_point::min() : Clock::now() + job->response.pause;
    jobs_.insert(std::move(node));
  }
  auto left = std::exchange(jobs_, {});
  lock.unlock();
  for (auto& [due, job] : left) Guarded("who awaits a response", [&job = job] { job->done(Fail(Stopped())); });
}

}  // namespace reprise
