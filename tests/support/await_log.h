#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "reprise/event_log.h"

namespace reprise {

inline std::string ReadLog(const EventLog& log) {
  std::string all;
  for (auto view = log.Read(0); !view.bytes.empty(); view = log.Read(all.size())) all += view.bytes;
  return all;
}

// Blocks until `log` satisfies `condition(text so far, closed)`, which is evaluated at every Publish.
template <typename Condition>
void AwaitLog(const std::shared_ptr<EventLog>& log, Condition condition) {
  struct Listener : EventLogListener {
    void OnPublished(std::size_t) noexcept override {
      const std::lock_guard lock(mutex);
      changed = true;
      wake.notify_all();
    }
    std::mutex mutex;
    std::condition_variable wake;
    bool changed = false;
  };
  auto listener = std::make_shared<Listener>();
  log->Subscribe(listener);
  while (!condition(ReadLog(*log), log->end().closed)) {
    std::unique_lock lock(listener->mutex);
    listener->wake.wait(lock, [&] { return listener->changed; });
    listener->changed = false;
  }
  log->Unsubscribe(listener.get());
}

inline void AwaitEvent(const std::shared_ptr<EventLog>& log, const std::string& name) {
  AwaitLog(log, [&](const std::string& text, bool) { return text.find("event: " + name + "\n") != std::string::npos; });
}
inline std::string AwaitEnd(const std::shared_ptr<EventLog>& log) {
  AwaitLog(log, [](const std::string&, bool closed) { return closed; });
  return ReadLog(*log);
}

}  // namespace reprise
