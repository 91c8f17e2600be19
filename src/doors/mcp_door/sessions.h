#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "doors/mcp_door/message.h"
#include "reprise/event_log.h"
#include "reprise/ids.h"

namespace reprise::mcp_door {

// A request of a client with a session that has begun a run. Thread-safe.
class Call {
 public:
  // The run has begun. Whether it is not wanted any more.
  bool Began(const InteractionRef& run);
  // The client does not want it any more. The run, if it has begun.
  std::optional<InteractionRef> Cancel();
  bool is_cancelled() const;

 private:
  mutable Mutex mutex_;
  std::optional<InteractionRef> run_ GUARDED_BY(mutex_);
  bool is_cancelled_ GUARDED_BY(mutex_) = false;
};

// What a client has said when it greeted the server. Thread-safe.
class Session {
 public:
  explicit Session(ClientAbilities abilities) : abilities(abilities) {}
  const ClientAbilities abilities;

  // `id` as JSON text. The call is known as long as what this returns lives.
  std::shared_ptr<Call> Begin(const std::string& id);
  std::shared_ptr<Call> Find(const std::string& id);  // null: none

  // From now on the client is told what is at least as grave as this ("debug" to "emergency"). Whether there is such a
  // level.
  bool SetLogLevel(const std::string& level);
  // Nothing is told to a client that has said no level.
  bool IsToldWarnings() const;

  // What this client has answered itself.
  void NoteAnswered(const std::string& request);
  bool HasAnswered(const std::string& request) const;

  // A response in which this client is asked.
  void AddStream(const std::weak_ptr<EventLogListener>& stream);
  // The client's answer to a question cannot be used, so its streams ask once more and say why. False: they have asked
  // too often, since a program that answers by itself would go on for ever.
  bool AskAgain(const std::string& question, const std::string& why);
  // Why the question has to be asked once more; nullopt: it has not. Whoever is told asks.
  std::optional<std::string> TakeAskAgain(const std::string& question);

  // The person has not decided: the client could not ask.
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

// The sessions of one user. They live in memory: after a restart a client is told 404, and greets anew. Thread-safe.
class Sessions {
 public:
  // Its id. The session that was not used for the longest time is forgotten if there are too many.
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
