#include "approval/requests.h"

#include <algorithm>

#include "base/system.h"

namespace reprise {
namespace {

// The number of remembered ids of answered questions, so that a late answer gets "already processed", not "unknown".
constexpr std::size_t kRemembered = 10'000;

template <typename Pending>
bool IsWithin(const Pending& pending, const std::optional<InteractionRef>& within) {
  return !within || (pending.chat_id == within->chat_id && pending.interaction_id == within->interaction_id);
}

}  // namespace

template <typename Kind>
Error AlreadyProcessed() {
  return Refused(Reason::kAlreadyProcessed, "this " + std::string(Kind::kWord) + " was already processed");
}

template <typename Kind>
Error NeverAsked() {
  return MakeError(ErrorCode::kNotFound, "there is no such " + std::string(Kind::kWord));
}

template <typename Kind>
class Requests<Kind>::Entry {
 public:
  Entry(std::uint64_t count, Pending request, std::optional<Deadline> until)
      : number(count), pending(std::move(request)), deadline(until) {}
  bool has_expired() const { return deadline && std::chrono::steady_clock::now() >= *deadline; }
  bool waits() const { return state == State::kOpen && !has_expired(); }

  const std::uint64_t number;  // of creation
  const Pending pending;
  const std::optional<Deadline> deadline;
  enum class State { kOpen, kClaimed, kOver };
  State state = State::kOpen;      // guarded by the requests' lock, as are the next two
  std::optional<Answer> answer;    // given, but not delivered yet
  std::shared_ptr<Waiter> waiter;  // null if nothing waits yet
};

// Waits for the first answer to any of these.
template <typename Kind>
struct Requests<Kind>::Waiter {
  std::vector<Found> asked;            // guarded by the requests' lock; empty once `done` was called
  std::function<void(Answered)> done;  // likewise
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
};

template <typename Kind>
auto Requests<Kind>::PendingOf(const Entry& entry) -> const Pending& {
  return entry.pending;
}

template <typename Kind>
void Requests<Kind>::Name(Pending& pending) {
  pending.request.*Kind::kId = std::string(Kind::kIdPrefix) + RandomHex(16);
}

template <typename Kind>
auto Requests<Kind>::Reopen(const Pending& pending) -> Found {
  std::optional<Deadline> deadline;
  if (const auto expires_at = Kind::ExpiresAt(pending)) {
    const auto left = *expires_at - now_();
    deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(left);
  }
  const MutexLock lock(mutex_);
  const auto entry = std::make_shared<Entry>(next_number_++, pending, deadline);
  entries_.emplace(pending.request.*Kind::kId, entry);
  TellChange(Kind::kOpened, pending);
  return entry;
}

template <typename Kind>
void Requests<Kind>::TellChange(ChatChange::Kind kind, const Pending& pending) const {
  if (changes_) changes_->Add(kind, pending.chat_id, pending.interaction_id, pending.request.*Kind::kId);
}

template <typename Kind>
void Requests<Kind>::Await(const std::vector<std::string>& ids, std::stop_token stop,
                           std::function<void(Answered)> done) {
  const auto waiter = std::make_shared<Waiter>();
  std::optional<Deadline> deadline;
  std::function<void()> tell;
  {
    MutexLock lock(mutex_);
    for (const std::string& id : ids) {
      const auto found = entries_.find(id);
      if (found == entries_.end()) return lock.unlock(), done(Fail(ErrorCode::kInternal, "this was never opened"));
      waiter->asked.push_back(found->second);
    }
    waiter->done = std::move(done);
    for (const Found& entry : waiter->asked) {
      entry->waiter = waiter;
      if (entry->deadline && (!deadline || *entry->deadline < *deadline)) deadline = entry->deadline;
    }
    tell = Tell(waiter, /*stopped=*/false);
  }
  if (tell) tell();
  if (deadline) ExpireLater(waiter, *deadline);
  waiter->on_stop.emplace(std::move(stop), [this, weak = std::weak_ptr(waiter)] {
    if (const auto stopped = weak.lock()) Wake(stopped, /*stopped=*/true);
  });
}

template <typename Kind>
void Requests<Kind>::ExpireLater(const std::shared_ptr<Waiter>& waiter, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  delay_(std::max(left, std::chrono::milliseconds(0)), [this, weak = std::weak_ptr(waiter)] {
    if (const auto due = weak.lock()) Wake(due, /*stopped=*/false);
  });
}

template <typename Kind>
void Requests<Kind>::Wake(const std::shared_ptr<Waiter>& waiter, bool stopped) {
  std::function<void()> tell;
  {
    const MutexLock lock(mutex_);
    tell = Tell(waiter, stopped);
  }
  if (tell) tell();
}

template <typename Kind>
std::function<void()> Requests<Kind>::Tell(const std::shared_ptr<Waiter>& waiter, bool stopped) {
  auto& asked = waiter->asked;
  const auto first_that = [&](const auto& is_it) { return std::ranges::find_if(asked, is_it); };
  auto first = first_that([](const Found& entry) { return entry->answer.has_value(); });
  if (first == asked.end() && !stopped) {
    first =
        first_that([](const Found& entry) { return entry->waits() == false && entry->state == Entry::State::kOpen; });
    if (first != asked.end()) (*first)->answer = Kind::Expired();
  }
  if (asked.empty() || (first == asked.end() && !stopped)) return nullptr;
  Answered told = Fail(ErrorCode::kCancelled, "the interaction was cancelled");
  if (first == asked.end()) {
    for (const Found& entry : asked) Retire(*entry);
  } else {
    told = std::pair((*first)->pending.request.*Kind::kId, *std::move((*first)->answer));
    Retire(**first);
  }
  for (const Found& entry : std::exchange(asked, {})) entry->waiter = nullptr;
  return [done = std::exchange(waiter->done, nullptr), told = std::move(told)] { done(told); };
}

template <typename Kind>
Result<void> Requests<Kind>::CheckOpen(const Entry& entry) const {
  if (entry.state != Entry::State::kOpen) return Fail(AlreadyProcessed<Kind>());
  if (!entry.has_expired()) return {};
  return Fail(Reason::kExpired, "this " + std::string(Kind::kWord) + " has expired");
}

template <typename Kind>
auto Requests<Kind>::Find(std::string_view id, const std::optional<InteractionRef>& within) const -> Result<Found> {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(std::string(id));
  if (found == entries_.end() || !IsWithin(found->second->pending, within)) return Fail(NeverAsked<Kind>());
  return CheckOpen(*found->second).map([&] { return found->second; });
}

template <typename Kind>
Result<void> Requests<Kind>::Give(const Found& request, Answer answer) {
  return Claim(request).and_then([&] { return Settle(request, std::move(answer)); });
}

template <typename Kind>
Result<void> Requests<Kind>::Claim(const Found& request) {
  const MutexLock lock(mutex_);
  return CheckOpen(*request).map([&] { request->state = Entry::State::kClaimed; });
}

template <typename Kind>
Result<void> Requests<Kind>::Settle(const Found& request, std::optional<Answer> answer) {
  std::function<void()> tell;
  MutexLock lock(mutex_);
  // The run may have been stopped meanwhile.
  if (request->state != Entry::State::kClaimed) return Fail(AlreadyProcessed<Kind>());
  request->state = answer ? Entry::State::kOver : Entry::State::kOpen;
  if (answer) TellChange(Kind::kClosed, request->pending);
  request->answer = std::move(answer);
  if (const auto waiter = request->waiter) tell = Tell(waiter, /*stopped=*/false);
  lock.unlock();
  if (tell) tell();
  return {};
}

template <typename Kind>
void Requests<Kind>::Retire(Entry& entry) {
  // An answered request was reported already.
  if (std::exchange(entry.state, Entry::State::kOver) != Entry::State::kOver) TellChange(Kind::kClosed, entry.pending);
  retired_.push_back(entry.pending.request.*Kind::kId);
  if (retired_.size() <= kRemembered) return;
  entries_.erase(retired_.front());
  retired_.pop_front();
}

template <typename Kind>
auto Requests<Kind>::Waiting() const -> std::vector<Pending> {
  std::vector<Found> open;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry->waits()) open.push_back(entry);
    }
  }
  std::ranges::sort(open, [](const auto& a, const auto& b) { return a->number < b->number; });
  std::vector<Pending> waiting;
  for (const auto& entry : open) waiting.push_back(entry->pending);
  return waiting;
}

template <typename Kind>
std::size_t Requests<Kind>::waiting_count() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& each) { return each.second->waits(); }));
}

template <typename Kind>
std::size_t Requests<Kind>::waiting_in(const ChatId& chat) const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [&](const auto& each) { return each.second->pending.chat_id == chat && each.second->waits(); }));
}

template class Requests<ApprovalKind>;
template class Requests<InputKind>;
template Error AlreadyProcessed<ApprovalKind>();
template Error AlreadyProcessed<InputKind>();
template Error NeverAsked<ApprovalKind>();
template Error NeverAsked<InputKind>();

}  // namespace reprise
