#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "reprise/signals.h"

namespace reprise {

// The subscriptions of this process, for implementations of Signals. Thread-safe; calls no subscriber with its lock
// held.
class Subscribers {
 public:
  // As Signals::Subscribe.
  [[nodiscard]] std::shared_ptr<void> Add(const std::string& topic, Signals::Heard heard);
  void Tell(std::string_view topic, std::string_view payload) const;
  // Calls everybody with an empty payload, because signals may have been lost.
  void TellAll() const;

 private:
  struct One;
  struct Table {
    Mutex mutex;
    std::multimap<std::string, std::shared_ptr<One>, std::less<>> all GUARDED_BY(mutex);
  };
  static void Call(const std::vector<std::shared_ptr<One>>& those, std::string_view payload);

  const std::shared_ptr<Table> table_ = std::make_shared<Table>();  // shared: a subscription may outlive this
};

// Signals within one process. None is lost.
class LocalSignals final : public Signals {
 public:
  void Publish(std::string_view topic, std::string_view payload) override { subscribers_.Tell(topic, payload); }
  std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) override {
    return subscribers_.Add(topic, std::move(heard));
  }

 private:
  Subscribers subscribers_;
};

}  // namespace reprise
