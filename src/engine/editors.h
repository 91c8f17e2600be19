#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "reprise/editor_files.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"
#include "reprise/ids.h"

namespace reprise {

// The editors that are connected with chats. Each gets its requests by a log of its own, and gives the answers by
// Answer. What waits for an editor wakes up when that has gone. Thread-safe; a connection may outlive this.
class Editors {
 public:
  Editors();

  // In the place of the one that was connected before, if any. kUnavailable (reason "overloaded"): there are too many.
  Result<EditorConnection> Connect(const ChatId& chat, bool writes);
  // kNotFound: no such request waits (any more).
  Result<void> Answer(const ChatId& chat, std::string_view request_id, EditorAnswer answer);

  // Of this chat, whether or not an editor is connected with it; not longer than this lives.
  std::unique_ptr<EditorFiles> FilesOf(const ChatId& chat);

 private:
  struct Pending {
    std::optional<EditorAnswer> answer{};
  };
  struct Editor {
    std::shared_ptr<EventLog> log;
    bool writes = false;
    bool is_gone = false;
    std::map<std::string, Pending, std::less<>> pending{};
  };
  struct State {
    Mutex mutex;
    std::condition_variable_any changed;
    std::map<ChatId, std::shared_ptr<Editor>> editors GUARDED_BY(mutex);
  };
  class Files;

  const std::shared_ptr<State> state_;
};

}  // namespace reprise
