#pragma once

#include "base/subscribers.h"
#include "reprise/signals.h"

namespace reprise {

// Within one process. Nothing is lost.
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
