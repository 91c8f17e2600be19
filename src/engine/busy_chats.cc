#include "engine/busy_chats.h"

#include <malloc.h>

#include <algorithm>

namespace reprise {
namespace {

// The memory of so many runs does not go back to the system by itself, because a few small pieces of it are still used.
constexpr std::size_t kManyRuns = 256;

}  // namespace

Error Busy(std::optional<InteractionId> run) {
  Error error = Refused(Reason::kBusy, "an interaction is running in this chat");
  if (run) error.details_json = R"({"interaction_id":")" + run->str() + R"("})";
  return error;
}

Error Busy(const std::shared_ptr<Run>& run) { return Busy(run ? std::optional(run->id()) : std::nullopt); }

void BusyChats::AwaitStarted(MutexLock& lock, const ChatId& chat) {
  changed_.wait(lock, [&]() REQUIRES(mutex_) {
    const auto found = active_.find(chat);
    return stopping_ || found == active_.end() || found->second != nullptr;
  });
}

void BusyChats::AwaitSaved(MutexLock& lock, const ChatId& chat) {
  constexpr std::chrono::milliseconds kAtMost{250};
  const auto found = active_.find(chat);
  const auto run = found == active_.end() ? nullptr : found->second;
  if (!run || !run->is_being_saved()) return;
  changed_.wait_for(lock, kAtMost, [&]() REQUIRES(mutex_) {
    const auto now = active_.find(chat);
    return stopping_ || now == active_.end() || now->second != run;
  });
}

Result<void> BusyChats::Occupy(const ChatId& chat) {
  MutexLock lock(mutex_);
  AwaitSaved(lock, chat);
  AwaitStarted(lock, chat);
  if (draining_) return Fail(Stopping());
  if (const auto found = active_.find(chat); found != active_.end()) return Fail(Busy(found->second));
  if (active_.size() >= services_.options.max_active_runs) {
    return Fail(Reason::kOverloaded, "too many interactions are running");
  }
  active_.emplace(chat, nullptr);
  return {};
}

Result<void> BusyChats::OccupyWhenStopped(const ChatId& chat, std::string_view reason) {
  for (;;) {
    auto occupied = Occupy(chat);
    if (occupied || !occupied.error().Is(Reason::kBusy)) return occupied;
    // A run that was about to start now exists; another may follow it.
    if (const auto run = RunOf(chat)) {
      run->RequestStop(reason);
      AwaitEndOf(*run);
    }
  }
}

void BusyChats::Put(const std::shared_ptr<Run>& run) {
  {
    const MutexLock lock(mutex_);
    active_[run->chat_id()] = run;
    ++unfinished_;
    ++counters_.started;
    if (stopping_) run->RequestStopWithServer();
  }
  changed_.notify_all();
  services_.changes.Add(ChatChange::Kind::kInteractionStarted, run->chat_id(), run->id());
}

void BusyChats::Release(const ChatId& chat) {
  bool next;
  {
    const MutexLock lock(mutex_);
    next = !draining_ && services_.queues.HasNext(chat);
    if (next) {
      active_[chat] = nullptr;
      ++unfinished_;
    } else {
      active_.erase(chat);
    }
  }
  changed_.notify_all();
  if (next) start_next_(chat);
}

bool BusyChats::OccupyForNext(const ChatId& chat) {
  const MutexLock lock(mutex_);
  if (draining_ || active_.contains(chat) || !services_.queues.HasNext(chat)) return false;
  active_.emplace(chat, nullptr);
  ++unfinished_;
  return true;
}

void BusyChats::WorkBegan() {
  const MutexLock lock(mutex_);
  ++unfinished_;
}

void BusyChats::WorkEnded() {
  bool gives_back;
  {
    const MutexLock lock(mutex_);
    most_unfinished_ = std::max(most_unfinished_, unfinished_);
    --unfinished_;
    gives_back = most_unfinished_ >= kManyRuns && unfinished_ <= most_unfinished_ / 8;
    if (gives_back) most_unfinished_ = unfinished_;
  }
  changed_.notify_all();
  if (gives_back) ::malloc_trim(0);
}

void BusyChats::Count(InteractionStatus ended) {
  const MutexLock lock(mutex_);
  if (ended == InteractionStatus::kCompleted) ++counters_.completed;
  if (ended == InteractionStatus::kFailed) ++counters_.failed;
  if (ended == InteractionStatus::kCancelled) ++counters_.cancelled;
}

std::shared_ptr<Run> BusyChats::RunOf(const ChatId& chat) const {
  const MutexLock lock(mutex_);
  const auto found = active_.find(chat);
  return found == active_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<const WorkspaceParts>> BusyChats::WorkspaceOf(const ChatId& chat) const {
  if (const auto run = RunOf(chat)) return run->workspace();
  return services_.WorkspaceOf(chat);
}

std::shared_ptr<Run> BusyChats::RunOf(const ChatId& chat, InteractionId id) const {
  auto run = RunOf(chat);
  return run && run->id() == id ? run : nullptr;
}

std::vector<std::shared_ptr<Run>> BusyChats::Runs() const {
  std::vector<std::shared_ptr<Run>> runs;
  const MutexLock lock(mutex_);
  for (const auto& [chat, run] : active_) {
    if (run) runs.push_back(run);
  }
  return runs;
}

Result<void> BusyChats::LookAt(const ChatId& chat, const std::function<void(const std::shared_ptr<Run>&)>& look) {
  MutexLock lock(mutex_);
  AwaitStarted(lock, chat);
  if (stopping_) return Fail(Stopping());
  const auto found = active_.find(chat);
  look(found == active_.end() ? nullptr : found->second);
  return {};
}

void BusyChats::AwaitEndOf(const Run& run) {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() REQUIRES(mutex_) {
    const auto found = active_.find(run.chat_id());
    return stopping_ || found == active_.end() || found->second.get() != &run;
  });
}

bool BusyChats::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void BusyChats::BeginDrain() {
  const MutexLock lock(mutex_);
  draining_ = true;
}

bool BusyChats::is_draining() const {
  const MutexLock lock(mutex_);
  return draining_;
}

void BusyChats::BeginStop() {
  {
    const MutexLock lock(mutex_);
    draining_ = stopping_ = true;
  }
  changed_.notify_all();
}

void BusyChats::AwaitAllWork() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return unfinished_ == 0; });
}

bool BusyChats::AwaitAllWork(std::chrono::nanoseconds limit) {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, limit, [this]() REQUIRES(mutex_) {
    const auto is_about_to_start = [](const auto& chat) { return chat.second == nullptr; };
    return unfinished_ == 0 && std::ranges::none_of(active_, is_about_to_start);
  });
}

Engine::Counters BusyChats::counters() const {
  const auto runs = Runs();
  const auto waits = [](const auto& run) { return run->status() != InteractionStatus::kRunning; };
  const auto waiting = static_cast<std::size_t>(std::ranges::count_if(runs, waits));
  const MutexLock lock(mutex_);
  Engine::Counters counters = counters_;
  counters.active_runs = active_.size();
  counters.waiting_runs = waiting;
  return counters;
}

}  // namespace reprise
