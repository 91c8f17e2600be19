#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/file_system.h"
#include "reprise/ids.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

namespace reprise {

// A chat that is there, and its version: if that is another one, so is the summary. Where all versions are 0, only
// Touch tells that.
struct ChatVersion {
  ChatVersion(ChatId id, std::int64_t its_version = 0) : chat(std::move(id)), version(its_version) {}
  ChatId chat;
  std::int64_t version;
};

// The summaries of a store's chats in memory, newest first, so that a page of them costs what is on it. Each call first
// reads what has changed since the one before. Thread-safe; reads the store with its lock held.
class ChatList {
 public:
  struct Source {
    std::function<Result<std::vector<ChatVersion>>()> list;    // all that are there, readable or not
    std::function<Result<ChatSummary>(const ChatId&)> load;    // called from several threads at once
    std::function<std::unique_ptr<DirectoryWatch>()> watch{};  // returns null, or none: `list` is called each time
  };
  explicit ChatList(Source source) : source_(std::move(source)) {}

  // The chat's summary is another one. Takes no time and no other lock.
  void Touch(const ChatId& chat);

  Result<std::vector<ChatSummary>> All();
  Result<ChatPage> Page(const std::optional<ChatPlace>& after, std::size_t limit, const ChatFilter& wanted);
  // The chats that cannot be read, by id. Logs each.
  Result<std::vector<UnreadableChat>> Unreadable();

 private:
  struct Listed {
    ChatSummary summary;
    std::optional<Error> error{};  // set: it is unread
    std::int64_t version = 0;
    ChatPlace place() const { return ChatPlace::Of(summary); }
  };
  using Order = std::vector<Listed*>;

  Result<void> Update() REQUIRES(mutex_);
  Result<void> NoteWhatIsThere(std::set<ChatId>& changed) REQUIRES(mutex_);
  void MarkUnread(const std::set<ChatId>& chats) REQUIRES(mutex_);
  void Remove(const std::set<ChatId>& gone) REQUIRES(mutex_);
  void ReadUnread() REQUIRES(mutex_);
  Order::iterator PlaceOf(const ChatPlace& place) REQUIRES(mutex_);

  const Source source_;
  Mutex touched_mutex_;
  std::set<ChatId> touched_ GUARDED_BY(touched_mutex_);

  Mutex mutex_;  // taken before touched_mutex_
  std::unique_ptr<DirectoryWatch> watch_ GUARDED_BY(mutex_);
  std::unordered_map<ChatId, Listed> chats_ GUARDED_BY(mutex_);  // all that are there
  Order unread_ GUARDED_BY(mutex_);                              // those of them without a summary, in no order
  Order order_ GUARDED_BY(mutex_);                               // the others, newest first
};

}  // namespace reprise
