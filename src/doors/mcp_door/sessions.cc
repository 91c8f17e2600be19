#include "doors/mcp_door/sessions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/system.h"

namespace reprise::mcp_door {
namespace {

constexpr std::size_t kMostSessions = 1000;
constexpr std::size_t kMostAnswered = 1000;
constexpr int kMostRefused = 10;
constexpr std::size_t kIdBytes = 16;

}  // namespace

bool Call::Began(const InteractionRef& run) {
  const MutexLock lock(mutex_);
  run_ = run;
  return is_cancelled_;
}

std::optional<InteractionRef> Call::Cancel() {
  const MutexLock lock(mutex_);
  is_cancelled_ = true;
  return run_;
}

bool Call::is_cancelled() const {
  const MutexLock lock(mutex_);
  return is_cancelled_;
}

std::shared_ptr<Call> Session::Begin(const std::string& id) {
  auto call = std::make_shared<Call>();
  const MutexLock lock(mutex_);
  std::erase_if(calls_, [](const auto& each) { return each.second.expired(); });
  calls_[id] = call;
  return call;
}

std::shared_ptr<Call> Session::Find(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second.lock();
}

bool Session::SetLogLevel(const std::string& level) {
  static constexpr std::array<std::string_view, 8> kLevels = {"debug", "info",     "notice", "warning",
                                                              "error", "critical", "alert",  "emergency"};
  const auto found = std::find(kLevels.begin(), kLevels.end(), level);
  if (found == kLevels.end()) return false;
  const MutexLock lock(mutex_);
  is_told_warnings_ = found <= std::find(kLevels.begin(), kLevels.end(), "warning");
  return true;
}

bool Session::IsToldWarnings() const {
  const MutexLock lock(mutex_);
  return is_told_warnings_;
}

void Session::NoteAnswered(const std::string& request) {
  const MutexLock lock(mutex_);
  if (answered_.size() >= kMostAnswered) answered_.clear();
  answered_.insert(request);
}

bool Session::HasAnswered(const std::string& request) const {
  const MutexLock lock(mutex_);
  return answered_.contains(request);
}

Session::Question& Session::QuestionOf(const std::string& id) {
  if (questions_.size() >= kMostAnswered && !questions_.contains(id)) questions_.clear();
  return questions_[id];
}

void Session::AddStream(const std::weak_ptr<EventLogListener>& stream) {
  const MutexLock lock(mutex_);
  std::erase_if(streams_, [](const auto& each) { return each.expired(); });
  streams_.push_back(stream);
}

bool Session::AskAgain(const std::string& question, const std::string& why) {
  std::vector<std::weak_ptr<EventLogListener>> streams;
  {
    const MutexLock lock(mutex_);
    Question& asked = QuestionOf(question);
    if (++asked.refused > kMostRefused) return false;
    asked.again = why;
    streams = streams_;
  }
  // Without the lock, because the stream calls this session.
  for (const auto& each : streams) {
    if (const auto stream = each.lock()) stream->OnPublished(1);
  }
  return true;
}

std::optional<std::string> Session::TakeAskAgain(const std::string& question) {
  const MutexLock lock(mutex_);
  const auto found = questions_.find(question);
  return found == questions_.end() ? std::nullopt : std::exchange(found->second.again, std::nullopt);
}

void Session::NoteUnasked(const std::string& question, const std::string& why) {
  const MutexLock lock(mutex_);
  QuestionOf(question).unasked = why;
}

std::string Session::WhyUnasked(const std::string& question) const {
  const MutexLock lock(mutex_);
  const auto found = questions_.find(question);
  return found == questions_.end() ? "" : found->second.unasked;
}

std::string Sessions::Open(ClientAbilities abilities) {
  std::string id = RandomHex(kIdBytes);
  const MutexLock lock(mutex_);
  if (sessions_.size() >= kMostSessions) {
    sessions_.erase(std::min_element(sessions_.begin(), sessions_.end(),
                                     [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  sessions_[id] = {.session = std::make_shared<Session>(abilities), .used = ++uses_};
  return id;
}

std::shared_ptr<Session> Sessions::Find(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  found->second.used = ++uses_;
  return found->second.session;
}

bool Sessions::Close(const std::string& id) {
  const MutexLock lock(mutex_);
  return sessions_.erase(id) > 0;
}

}  // namespace reprise::mcp_door
