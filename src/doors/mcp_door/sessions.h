#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "doors/mcp_door/message.h"
#include "reprise/event_log.h"
#include "reprise/ids.h"

namespace reprise::mcp_door {

// A request in a session that begins a run. Thread-safe.
class Call {
 public:
  // Notes that the run has begun. True if the call was cancelled before.
  bool Began(const InteractionRef& run);
  // Notes that the client cancelled the call. Returns the run if it has begun.
  std::optional<InteractionRef> Cancel();
  bool is_cancelled() const;

 private:
  mutable Mutex mutex_;
  std::optional<InteractionRef> run_ GUARDED_BY(mutex_);
  bool is_cancelled_ GUARDED_BY(mutex_) = false;
};

// A session: a client that has greeted the server, and its questions. Thread-safe.
class Session {
 public:
  explicit Session(ClientAbilities abilities) : abilities(abilities) {}
  const ClientAbilities abilities;

  // `id` is JSON text. The call is known while the returned object lives.
  std::shared_ptr<Call> Begin(const std::string& id);
  std::shared_ptr<Call> Find(const std::string& id);  // null: none

  // The client wants log messages of this level ("debug" to "emergency") and above. False if there is no such level.
  bool SetLogLevel(const std::string& level);
  // False until the client asks for warnings.
  bool IsToldWarnings() const;

  // Notes a request that this client itself answered.
  void NoteAnswered(const std::string& request);
  bool HasAnswered(const std::string& request) const;

  // Adds a response that asks this client questions.
  void AddStream(const std::weak_ptr<EventLogListener>& stream);
  // Has the streams ask once more and say why, because the client's answer cannot be used. False if they have asked too
  // often, because a program that answers by itself would go on for ever.
  bool AskAgain(const std::string& question, const std::string& why);
  // Why the question must be asked once more; nullopt if it need not be. The caller that gets a reason asks.
  std::optional<std::string> TakeAskAgain(const std::string& question);

  // Notes that the person did not decide, because the client could not ask.
  void NoteUnasked(const std::string& question, const std::string& why);
  std::string WhyUnasked(const std::string& question) const;  // empty: the person was asked

 private:
  struct Question {
    std::optional<std::string> again{};
    std::string unasked{};
    int refused = 0;
  };
  Question& QuestionOf(const std::string& id) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::weak_ptr<Call>> calls_ GUARDED_BY(mutex_);
  std::set<std::string> answered_ GUARDED_BY(mutex_);
  std::map<std::string, Question> questions_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<EventLogListener>> streams_ GUARDED_BY(mutex_);
  bool is_told_warnings_ GUARDED_BY(mutex_) = false;
};

// The sessions of one user, in memory: after a restart a client gets 404 and greets the server anew. Thread-safe.
class Sessions {
 public:
  // Opens a session and returns its id. Forgets the session that was unused for longest if there are too many.
  std::string Open(ClientAbilities abilities);
  std::shared_ptr<Session> Find(const std::string& id);  // null: no such session (any more)
  bool Close(const std::string& id);

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    std::uint64_t used = 0;
  };
  Mutex mutex_;
  std::map<std::string, Entry> sessions_ GUARDED_BY(mutex_);
  std::uint64_t uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise::mcp_door
