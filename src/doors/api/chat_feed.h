#pragma once

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

// GET /events: one stream of the changes in all chats, and of every event in the chats that a client follows.
// Thread-safe.
//
// Each client has a log of its own, whose bytes are forgotten once they are sent. One thread, started with the first
// client, turns changes into frames; threads that publish events of runs pass those on themselves. The id of a frame is
// a cursor: the client's position in the changes and in each chat that it follows.
class ChatFeed {
 public:
  explicit ChatFeed(Engine& engine) : engine_(engine) {}
  ~ChatFeed() { Stop(); }
  ChatFeed(const ChatFeed&) = delete;
  ChatFeed& operator=(const ChatFeed&) = delete;

  static constexpr std::size_t kMostFollowed = 16;  // chats of one client

  // Opens a stream after `cursor`. nullopt: for a new client, which gets running interactions of `chats` from their
  // beginning. kInvalidArgument: more than kMostFollowed chats.
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
  // Sends the chat's events after the cursor. False if too many interactions were missed.
  bool CatchUp(const std::shared_ptr<Client>& client, const ChatId& chat, InteractionId last,
               std::uint64_t last_seq) const;
  std::vector<std::shared_ptr<Client>> Clients() REQUIRES(mutex_);

  Engine& engine_;
  // Names this process in cursors, because the cursors of another process cannot be continued here.
  const std::string epoch_ = MakeEpoch();
  static std::string MakeEpoch();

  Mutex mutex_;
  Condition changed_;
  std::vector<std::weak_ptr<Client>> clients_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

}  // namespace reprise
