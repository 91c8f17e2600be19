#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/local_signals.h"
#include "base/mutex.h"
#include "postgres/database.h"
#include "reprise/signals.h"

namespace reprise {

// Through NOTIFY and LISTEN, over a connection of its own, so that no transaction that saves something waits for
// another one's notifications. What comes while a statement is under way goes with the next one. Thread-safe.
class NotifySignals final : public Signals {
 public:
  // `url`: of the database itself; LISTEN does not go through a pooler.
  static Result<std::unique_ptr<NotifySignals>> Open(std::string url);
  ~NotifySignals() override;

  void Publish(std::string_view topic, std::string_view payload) override;
  std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) override;

 private:
  NotifySignals() = default;
  void ListenToAll();
  void Listen(const std::string& topic, const std::string& statement);
  // REQUIRES: is_sending_, which nobody else changes then.
  void SendWhatWaits();

  Subscribers subscribers_;
  Mutex mutex_;
  // The statement by topic; stays, as the database may still need it.
  std::map<std::string, std::string> listening_ GUARDED_BY(mutex_);
  std::deque<std::pair<std::string, std::string>> waiting_ GUARDED_BY(mutex_);  // channel and payload
  bool is_sending_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<Database> database_;  // last: its thread uses the others
};

}  // namespace reprise
