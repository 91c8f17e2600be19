#include "engine/jobs.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>

#include "base/logging.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/kept_output.h"

namespace reprise {
namespace {

constexpr std::size_t kJobIdBytes = 8;
constexpr std::size_t kHeldBytes = 64 << 10;  // of the end of each job's output
constexpr std::size_t kMostEnded = 16;        // jobs of a chat that are still listed
constexpr std::uint64_t kMegabyte = 1 << 20, kKilobyte = 1 << 10;

// Of all engines of this process, because their jobs share its threads and descriptors.
std::atomic<std::size_t>& RunningHere() {
  static std::atomic<std::size_t> count = 0;
  return count;
}

}  // namespace

// A job with its thread.
class Jobs::Running {
 public:
  Running(const Parts& parts, const ChatId& chat, std::string command, std::shared_ptr<JobPorts> ports)
      : parts_(parts), chat_(chat), ports_(std::move(ports)) {
    job_.id = "job_" + RandomHex(kJobIdBytes);
    job_.command = ToValidUtf8(command);
    job_.started_at = Now();
  }

  Result<void> Start(JobsOfChat::Main main) {
    if (!parts_.redactor.empty()) filter_ = parts_.redactor.ForPieces();
    if (parts_.files != nullptr && parts_.output.kept_mb > 0) {
      files_.emplace(*parts_.files, chat_);
      const KeptLimits limits{2 * parts_.output.told_kb * kKilobyte, parts_.output.kept_mb * kMegabyte};
      keeper_ = KeepOutput(*files_, {}, limits);
    }
    try {
      thread_ = std::jthread([this, main = std::move(main)](const std::stop_token& stop) { Run(main, stop); });
    } catch (const std::system_error&) {
      return Fail(Reason::kTooManyJobs, "the system has no thread left for a background job");
    }
    return {};
  }

  bool has_ended() const {
    const MutexLock lock(mutex_);
    return job_.end.has_value();
  }
  Job job() const {
    const MutexLock lock(mutex_);
    return job_;
  }
  // With its ports, which takes some reading.
  Job WithPorts() const {
    Job job = this->job();
    if (ports_ && !job.end) job.ports = ports_->List();
    return job;
  }
  JobPorts* ports() const { return ports_.get(); }
  void RequestStop() { thread_.request_stop(); }
  void AwaitEnd() {
    MutexLock lock(mutex_);
    while (!job_.end) changed_.wait(lock);
  }

  JobOutput Read(std::optional<std::uint64_t> after, std::chrono::milliseconds wait, const std::stop_token& stop) {
    const auto until = std::chrono::steady_clock::now() + wait;
    const std::stop_callback wake(stop, [this] {
      const MutexLock lock(mutex_);
      changed_.notify_all();
    });
    MutexLock lock(mutex_);
    const std::uint64_t from = std::min(after.value_or(read_), job_.output_bytes);
    while (job_.output_bytes == from && !job_.end && !stop.stop_requested()) {
      if (changed_.wait_until(lock, until) == std::cv_status::timeout) break;
    }
    const std::uint64_t first_held = job_.output_bytes - held_.size();
    const std::uint64_t begin = std::max(from, first_held);
    std::string_view text = std::string_view(held_).substr(begin - first_held);
    // The rest of a character will come, unless the job has ended.
    if (!job_.end) text.remove_suffix(IncompleteUtf8Tail(text));
    JobOutput output{.job = job_, .left_out = begin - from, .next = begin + text.size()};
    if (output.left_out > 0) text = FromUtf8Start(text);
    output.text = ToValidUtf8(text);
    if (!after) read_ = output.next;
    return output;
  }

 private:
  void Run(const JobsOfChat::Main& main, const std::stop_token& stop) {
    JobEnd end{.reason = "failed", .message = "the job failed for an internal reason"};
    try {
      end = main(stop, [this](std::string_view bytes) { Take(bytes); });
    } catch (const std::exception& error) {
      LogError("a background job threw", {{"job", job_.id}, {"what", error.what()}});
    }
    if (filter_) {
      std::string held = filter_("\n");  // no secret goes on after the end
      if (held.ends_with('\n')) held.pop_back();
      filter_ = {};
      Take(held);
    }
    const std::string kept = keeper_ ? keeper_->Finish() : std::string();
    keeper_.reset();
    RunningHere().fetch_sub(1);
    {
      const MutexLock lock(mutex_);
      job_.kept = kept;
      job_.ended_at = Now();
      job_.end = std::move(end);
      changed_.notify_all();
    }
    LogInfo("background job ended", {{"chat", chat_.str()}, {"job", job_.id}});
    parts_.on_change(chat_);
  }

  void Take(std::string_view bytes) {
    std::string filtered;
    if (filter_) bytes = filtered = filter_(bytes);
    if (keeper_) keeper_->Add(bytes);
    const MutexLock lock(mutex_);
    held_ += bytes;
    if (held_.size() > kHeldBytes) held_.erase(0, held_.size() - kHeldBytes);
    job_.output_bytes += bytes.size();
    changed_.notify_all();
  }

  const Parts& parts_;
  const ChatId chat_;
  const std::shared_ptr<JobPorts> ports_;  // null: not known
  // Used by the thread only.
  std::function<std::string(std::string_view)> filter_;
  std::optional<FilesInStore> files_;
  std::unique_ptr<OutputKeeper> keeper_;

  mutable Mutex mutex_;
  Condition changed_;
  Job job_;                                    // id and command never change; the others GUARDED_BY(mutex_)
  std::string held_ GUARDED_BY(mutex_);        // the end of the output
  std::uint64_t read_ GUARDED_BY(mutex_) = 0;  // by the agent
  std::jthread thread_;                        // last, because it uses all of the above
};

// --- those of one chat -----------------------------------------------------------------------------------------------

class Jobs::OfChat final : public JobsOfChat {
 public:
  OfChat(Jobs& jobs, ChatId chat) : jobs_(jobs), chat_(std::move(chat)) {}

  Result<Job> Start(std::string command, Main main, std::shared_ptr<JobPorts> ports) override {
    return jobs_.Start(chat_, std::move(command), std::move(main), std::move(ports));
  }
  Result<JobOutput> Read(const std::string& id, std::optional<std::uint64_t> after, std::chrono::milliseconds wait,
                         const std::stop_token& stop) override {
    const auto running = TRY(jobs_.Find(chat_, id));
    JobOutput output = running->Read(after, wait, stop);
    if (!output.job.end) output.job.ports = running->WithPorts().ports;
    return output;
  }
  Result<Job> Stop(const std::string& id) override {
    const auto running = TRY(jobs_.Find(chat_, id));
    running->RequestStop();
    running->AwaitEnd();
    return running->job();
  }
  std::vector<Job> List() const override {
    std::vector<Job> list;
    for (const auto& running : jobs_.RowOf(chat_)) list.push_back(running->WithPorts());
    return list;
  }

 private:
  Jobs& jobs_;
  const ChatId chat_;
};

std::unique_ptr<JobsOfChat> Jobs::Of(const ChatId& chat) { return std::make_unique<OfChat>(*this, chat); }

std::size_t Jobs::CountRunning(const Row& row) {
  return static_cast<std::size_t>(std::ranges::count_if(row, [](const auto& each) { return !each->has_ended(); }));
}

Result<Job> Jobs::Start(const ChatId& chat, std::string command, JobsOfChat::Main main,
                        std::shared_ptr<JobPorts> ports) {
  auto running = std::make_shared<Running>(parts_, chat, std::move(command), std::move(ports));
  const Job job = running->job();
  Row forgotten;
  {
    const MutexLock lock(mutex_);
    if (ended_) return Fail(Reason::kStopping, "the server is stopping");
    Row& row = chats_[chat];
    const std::size_t active = CountRunning(row);
    if (active >= parts_.limits.per_chat) {
      return Fail(Reason::kTooManyJobs, "the chat has " + Counted(active, "background job") +
                                            ", which is the most that may run at once; stop one first");
    }
    if (RunningHere().fetch_add(1) >= parts_.limits.per_server) {
      RunningHere().fetch_sub(1);
      return Fail(Reason::kTooManyJobs, "as many background jobs run on this server as may run at once");
    }
    if (auto started = running->Start(std::move(main)); !started) {
      RunningHere().fetch_sub(1);
      return Fail(started.error());
    }
    row.push_back(std::move(running));
    for (auto ended = row.size() - active; ended > kMostEnded + 1; --ended) {
      const auto oldest = std::ranges::find_if(row, [](const auto& each) { return each->has_ended(); });
      if (oldest == row.end()) break;
      forgotten.push_back(std::move(*oldest));
      row.erase(oldest);
    }
  }
  parts_.on_change(chat);
  return job;
}

Jobs::Row Jobs::RowOf(const ChatId& chat) const {
  const MutexLock lock(mutex_);
  const auto row = chats_.find(chat);
  return row == chats_.end() ? Row() : row->second;
}

Result<std::shared_ptr<Jobs::Running>> Jobs::Find(const ChatId& chat, const std::string& id) const {
  for (auto& running : RowOf(chat)) {
    if (running->job().id == id) return running;
  }
  return Fail(Reason::kNoSuchJob, "the chat has no background job of this id; those of an earlier server have ended");
}

std::size_t Jobs::RunningIn(const ChatId& chat) const { return CountRunning(RowOf(chat)); }

Result<JobPort> Jobs::OpenPort(const ChatId& chat, const std::string& id, std::uint16_t port,
                               const std::function<Result<void>(const JobPort&)>& note) {
  const auto running = TRY(Find(chat, id));
  if (running->ports() == nullptr) return Fail(Reason::kNotListening, "nothing is known of ports of this job");
  for (JobPort& each : running->ports()->List()) {
    if (each.port == port && each.state == JobPort::State::kOpen) return std::move(each);
  }
  JobPort opened = TRY(running->ports()->Open(port));
  if (opened.state != JobPort::State::kOpen) return opened;
  if (auto noted = note(opened); !noted) {
    running->ports()->Close(port);
    return Fail(noted.error());
  }
  parts_.on_change(chat);
  return opened;
}

Result<JobPort> Jobs::ClosePort(const ChatId& chat, const std::string& id, std::uint16_t port,
                                const std::function<void(const JobPort&)>& note) {
  const auto running = TRY(Find(chat, id));
  JobPort now{.port = port};
  if (running->ports() == nullptr) return now;
  const bool was_open = running->ports()->Close(port);
  for (JobPort& each : running->ports()->List()) {
    if (each.port == port) now = std::move(each);
  }
  if (was_open) note(now);
  if (was_open) parts_.on_change(chat);
  return now;
}

void Jobs::EndOf(const ChatId& chat) {
  Row row;
  {
    const MutexLock lock(mutex_);
    const auto found = chats_.find(chat);
    if (found == chats_.end()) return;
    row = std::move(found->second);
    chats_.erase(found);
  }
  for (const auto& running : row) running->RequestStop();
  for (const auto& running : row) running->AwaitEnd();
}

void Jobs::EndAll() {
  std::map<ChatId, Row> all;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    all = std::move(chats_);
    chats_.clear();
  }
  for (const auto& [chat, row] : all) {
    for (const auto& running : row) running->RequestStop();
  }
}  // destroys them, which waits for their threads

}  // namespace reprise
