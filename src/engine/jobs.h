#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/text.h"
#include "engine/attachments.h"
#include "reprise/file_store.h"
#include "reprise/ids.h"
#include "reprise/jobs.h"
#include "reprise/resource_limits.h"
#include "reprise/tool.h"

namespace reprise {

// The background jobs of all chats. Each has a thread. They end with this object. Thread-safe.
class Jobs {
 public:
  struct Parts {
    FileStore* files;          // keeps long outputs; null: nothing is kept
    const Redactor& redactor;  // must outlive this, like `files`
    JobLimits limits;
    OutputLimits output;
    // A job has started or ended, or a port was opened or closed. Called from any thread.
    std::function<void(const ChatId&)> on_change;
  };
  explicit Jobs(Parts parts) : parts_(std::move(parts)) {}
  ~Jobs() { EndAll(); }

  std::unique_ptr<JobsOfChat> Of(const ChatId& chat);
  bool Has(const ChatId& chat) const { return !RowOf(chat).empty(); }
  std::size_t RunningIn(const ChatId& chat) const;
  // JobPorts::Open and Close. For people: agents have JobsOfChat alone. `note` writes the port that was opened down; it
  // is closed again if that fails.
  Result<JobPort> OpenPort(const ChatId& chat, const std::string& id, std::uint16_t port,
                           const std::function<Result<void>(const JobPort&)>& note);
  Result<JobPort> ClosePort(const ChatId& chat, const std::string& id, std::uint16_t port,
                            const std::function<void(const JobPort&)>& note);
  // Kills the jobs of the chat and forgets them; returns when all their processes are gone.
  void EndOf(const ChatId& chat);
  // Likewise for all chats. No job starts afterwards.
  void EndAll();

 private:
  class Running;
  class OfChat;
  using Row = std::vector<std::shared_ptr<Running>>;

  Result<Job> Start(const ChatId& chat, std::string command, JobsOfChat::Main main, std::shared_ptr<JobPorts> ports);
  Row RowOf(const ChatId& chat) const;
  static std::size_t CountRunning(const Row& row);
  Result<std::shared_ptr<Running>> Find(const ChatId& chat, const std::string& id) const;

  const Parts parts_;
  mutable Mutex mutex_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::map<ChatId, Row> chats_ GUARDED_BY(mutex_);  // oldest first
};

}  // namespace reprise
