#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Tells processes that use the same chats where to look. Signals may be lost or repeated, so receivers also look once a
// second; a signal only makes them faster. Thread-safe.
//
//   const auto hold = signals.Subscribe("chats", [](std::string_view payload) { LookSoon(payload); });
//   signals.Publish("chats", "demo");
class Signals {
 public:
  virtual ~Signals() = default;

  // Sends to all subscribers of the topic, in this process and in others. Does not wait or fail. A topic has at most 50
  // letters, digits and '_'. A payload is text without NUL; one that is too long for the channel arrives as its first
  // line alone.
  virtual void Publish(std::string_view topic, std::string_view payload) = 0;
  // One Publish for each payload; some channels do this cheaper.
  virtual void PublishAll(std::string_view topic, const std::vector<std::string>& payloads) {
    for (const std::string& payload : payloads) Publish(topic, payload);
  }

  // Calls `heard` for later payloads while the returned object lives: one call at a time, on any thread, perhaps within
  // Publish; it must be quick. An empty payload: signals may have been lost, so look. No call is in progress after the
  // returned object is gone, so do not destroy it within one.
  using Heard = std::function<void(std::string_view payload)>;
  [[nodiscard]] virtual std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) = 0;
};

}  // namespace reprise
