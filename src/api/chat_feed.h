#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "reprise/engine.h"
#include "wire/message.h"

namespace reprise {

// GET /events: what changes in any chat, and every event of those that a client asks for, as one stream. Thread-safe.
//
// Each client has a log of its own, from which it is sent what has gathered; what it has taken is forgotten. One
// thread, which begins with the first client, turns changes into frames; events of runs are passed on by whoever
// publishes them. The id of a frame is a cursor: where the client is in the changes, and in each chat that it follows.
class ChatFeed {
 public:
  explicit ChatFeed(Engine& engine) : engine_(engine) {}
  ~ChatFeed() { Stop(); }
  ChatFeed(const ChatFeed&) = delete;
  ChatFeed& operator=(const ChatFeed&) = delete;

  static constexpr std::size_t kMostFollowed = 16;  // chats of one client

  // A client that has seen everything up to `cursor`. nullopt: a new one, to which the chats' runs are shown from their
  // beginning on. kInvalidArgument: more than kMostFollowed chats.
  Result<StreamReply> Open(std::optional<std::string> cursor, const std::vector<ChatId>& chats);
  // Closes all streams and ends the thread.
  void Stop();

 private:
  class Client;
  class Follower;

  void Work();
  std::string FrameOf(const ChatChange& change) const;
  void Show(const ChatChange& change, const std::vector<std::shared_ptr<Client>>& clients);
  void Follow(const std::shared_ptr<Client>& client, const ChatId& chat, InteractionId interaction,
              std::uint64_t after_seq) const;
  // Everything of the chat behind the cursor. False: that is more than is sent again.
  bool CatchUp(const std::shared_ptr<Client>& client, const ChatId& chat, InteractionId last,
               std::uint64_t last_seq) const;
  std::vector<std::shared_ptr<Client>> Clients() REQUIRES(mutex_);

  Engine& engine_;
  // Names this process in cursors: those of another one are not ours to go on from.
  const std::string epoch_ = MakeEpoch();
  static std::string MakeEpoch();

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::weak_ptr<Client>> clients_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

}  // namespace reprise
