#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Tells the processes that use the same chats where to look. What is published may be lost, and may come twice: whoever
// waits for something also looks by itself, once a second. So nothing depends on it but how soon something is seen.
// Thread-safe.
class Signals {
 public:
  virtual ~Signals() = default;

  // Tells everybody who has subscribed to the topic, in this process and in others. Does not wait, and does not fail.
  // A topic is of letters, digits and '_', at most 50. A payload is text without NUL; what is too long for the way it
  // goes arrives as its first line alone.
  virtual void Publish(std::string_view topic, std::string_view payload) = 0;
  // The same as one call for each; some ways are cheaper for many.
  virtual void PublishAll(std::string_view topic, const std::vector<std::string>& payloads) {
    for (const std::string& payload : payloads) Publish(topic, payload);
  }

  // Calls `heard` for what is published from now on, as long as the returned object lives. One call at a time, on any
  // thread, perhaps within Publish; it must be quick. An empty payload: something may have been lost, look yourself.
  // When the returned object is gone no call is under way any more, so it must not go within one.
  using Heard = std::function<void(std::string_view payload)>;
  [[nodiscard]] virtual std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) = 0;
};

}  // namespace reprise
