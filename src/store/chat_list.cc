#include "store/chat_list.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "base/at_once.h"
#include "base/logging.h"
#include "base/try.h"
#include "store/file_names.h"

namespace reprise {
namespace {

// Reading a chat is mostly work of the kernel and of the cipher, so that several threads help if there are many.
constexpr std::size_t kMostReaders = 4, kManyToRead = 64;
// So many are put into the order at once, and not one by one.
constexpr std::size_t kManyToPlace = 512;

bool IsUnread(const auto* chat) { return chat->error.has_value(); }
bool ComesBefore(const auto* a, const auto* b) { return ChatPlace::IsBefore(a->summary, b->summary); }

Error NotRead() { return MakeError(ErrorCode::kNotFound, "it was not read yet"); }

}  // namespace

void ChatList::Touch(const ChatId& chat) {
  const MutexLock lock(touched_mutex_);
  touched_.insert(chat);
}

ChatList::Order::iterator ChatList::PlaceOf(const ChatPlace& place) {
  const auto is_before = [&](const Listed* each) { return each->place().IsBefore(place); };
  return std::ranges::partition_point(order_, is_before);
}

void ChatList::MarkUnread(const std::set<ChatId>& chats) {
  const bool are_many = chats.size() >= kManyToPlace;
  for (const ChatId& chat : chats) {
    const auto found = chats_.find(chat);
    if (found == chats_.end() || found->second.error) continue;
    if (!are_many) order_.erase(PlaceOf(found->second.place()));
    found->second.error = NotRead();
    unread_.push_back(&found->second);
  }
  if (are_many) std::erase_if(order_, IsUnread<Listed>);
}

void ChatList::Remove(const std::set<ChatId>& gone) {
  if (gone.empty()) return;
  MarkUnread(gone);
  std::erase_if(unread_, [&](const Listed* each) { return gone.contains(each->summary.id); });
  for (const ChatId& chat : gone) chats_.erase(chat);
}

// Chats that are new here are unread. Those of another version go into `changed`.
Result<void> ChatList::NoteWhatIsThere(std::set<ChatId>& changed) {
  const auto add = [&](const ChatVersion& now) REQUIRES(mutex_) {
    const auto [known, is_new] = chats_.try_emplace(now.chat, Listed{.summary = {.id = now.chat}, .error = NotRead()});
    const auto before = std::exchange(known->second.version, now.version);
    if (is_new) {
      unread_.push_back(&known->second);
    } else if (before != now.version) {
      changed.insert(now.chat);
    }
  };
  if (const auto changes = watch_ ? watch_->Take() : std::nullopt) {
    std::set<ChatId> gone, there;  // in both: another chat has the name now
    for (const DirectoryWatch::Change& change : *changes) {
      const auto chat = ParseChatDirectory(change.name);
      if (!chat) continue;
      if (change.is_there) {
        there.insert(*chat);
      } else {
        there.erase(*chat), gone.insert(*chat);
      }
    }
    Remove(gone);
    for (const ChatId& chat : there) add(chat);
    return {};
  }
  watch_ = source_.watch ? source_.watch() : nullptr;  // before the listing, so that it misses nothing
  auto listed = source_.list();
  if (!listed) {
    watch_.reset();
    return Fail(std::move(listed.error()));
  }
  std::set<ChatId> gone;
  std::ranges::sort(*listed, {}, &ChatVersion::chat);
  for (const auto& [chat, known] : chats_) {
    if (!std::ranges::binary_search(*listed, chat, {}, &ChatVersion::chat)) gone.insert(chat);
  }
  Remove(gone);
  chats_.reserve(listed->size());
  for (const ChatVersion& each : *listed) add(each);
  return {};
}

Result<void> ChatList::Update() {
  std::set<ChatId> changed;
  {
    const MutexLock lock(touched_mutex_);
    changed.swap(touched_);
  }
  try {
    if (auto noted = NoteWhatIsThere(changed); !noted) {
      const MutexLock lock(touched_mutex_);
      touched_.merge(changed);
      return noted;
    }
    MarkUnread(changed);
    ReadUnread();
  } catch (...) {  // everything is read anew, because the order may lack chats
    order_.clear(), unread_.clear(), chats_.clear();
    watch_.reset();
    throw;
  }
  return {};
}

// Those that could not be read before may be readable by now.
void ChatList::ReadUnread() {
  Order read;
  read.swap(unread_);
  const auto load = [&](std::size_t i) {
    Guarded("the list of chats", [&] {  // perhaps on another thread; a chat at which it throws stays unread
      auto summary = source_.load(read[i]->summary.id);
      if (!summary) {
        read[i]->error = std::move(summary.error());
      } else {
        read[i]->summary = *std::move(summary);
        read[i]->error.reset();
      }
    });
    return true;
  };
  try {
    const std::size_t readers = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostReaders);
    EachAtOnce(read.size() >= kManyToRead ? readers : 1, read.size(), load);
  } catch (const std::system_error&) {  // there is no other thread
    EachAtOnce(1, read.size(), load);
  }
  std::ranges::copy_if(read, std::back_inserter(unread_), IsUnread<Listed>);
  std::erase_if(read, IsUnread<Listed>);
  if (read.size() < kManyToPlace) {
    for (Listed* each : read) order_.insert(PlaceOf(each->place()), each);
    return;
  }
  std::ranges::sort(read, ComesBefore<Listed, Listed>);
  const auto known = static_cast<std::ptrdiff_t>(order_.size());
  order_.insert(order_.end(), read.begin(), read.end());
  std::ranges::inplace_merge(order_, order_.begin() + known, ComesBefore<Listed, Listed>);
}

Result<std::vector<ChatSummary>> ChatList::All() {
  const MutexLock lock(mutex_);
  TRY(Update());
  std::vector<ChatSummary> all;
  all.reserve(order_.size());
  for (const Listed* each : order_) all.push_back(each->summary);
  return all;
}

Result<ChatPage> ChatList::Page(const std::optional<ChatPlace>& after, std::size_t limit, const ChatFilter& wanted) {
  const MutexLock lock(mutex_);
  TRY(Update());
  auto first = order_.begin();
  if (after) {
    first = PlaceOf(*after);
    if (first != order_.end() && !after->IsBefore((*first)->place())) ++first;  // the chat itself
  }
  ChatPage page;
  for (; first != order_.end() && page.chats.size() < limit; ++first) {
    if (!wanted || wanted((*first)->summary)) page.chats.push_back((*first)->summary);
  }
  page.more = first != order_.end();
  return page;
}

Result<std::vector<UnreadableChat>> ChatList::Unreadable() {
  const MutexLock lock(mutex_);
  TRY(Update());
  std::vector<UnreadableChat> unreadable;
  for (const Listed* each : unread_) {
    if (!IsNotFound(*each->error)) unreadable.push_back({each->summary.id, *each->error});
  }
  std::ranges::sort(unreadable, {}, &UnreadableChat::id);
  for (const auto& [chat, error] : unreadable) {
    LogError("a chat cannot be listed", {{"chat", chat.str()}, {"reason", error.reason}, {"detail", error.detail}});
  }
  return unreadable;
}

}  // namespace reprise
