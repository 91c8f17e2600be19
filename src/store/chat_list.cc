#include "store/chat_list.h"

#include <algorithm>
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

bool ComesBefore(const ChatPlace& a, const ChatPlace& b) { return a.IsBefore(b); }

Error NotRead() { return MakeError(ErrorCode::kNotFound, "it was not read yet"); }

}  // namespace

void ChatList::Touch(const ChatId& chat) {
  const MutexLock lock(touched_mutex_);
  touched_.insert(chat);
}

ChatList::Order::iterator ChatList::PlaceOf(const ChatPlace& place) {
  return std::ranges::lower_bound(order_, place, ComesBefore, &Listed::place);
}

void ChatList::TakeOutOfOrder(const Listed& chat) {
  if (!chat.error) order_.erase(PlaceOf(chat.place()));
}

void ChatList::Remove(const std::set<ChatId>& gone) {
  const bool are_many = gone.size() >= kManyToPlace;
  if (are_many) std::erase_if(order_, [&](const Listed* each) { return gone.contains(each->summary.id); });
  for (const ChatId& chat : gone) {
    const auto found = chats_.find(chat);
    if (found == chats_.end()) continue;
    if (!are_many) TakeOutOfOrder(found->second);
    unread_.erase(chat);
    chats_.erase(found);
  }
}

// Chats that are new here, or have another version, are unread.
Result<void> ChatList::NoteWhatIsThere() {
  const auto add = [this](const ChatVersion& now) REQUIRES(mutex_) {
    const auto [known, is_new] = chats_.try_emplace(now.chat, Listed{.summary = {.id = now.chat}, .error = NotRead()});
    const auto before = std::exchange(known->second.version, now.version);
    if (is_new || before != now.version) unread_.insert(now.chat);
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
  if (auto noted = NoteWhatIsThere(); !noted) {
    const MutexLock lock(touched_mutex_);
    touched_.merge(changed);
    return noted;
  }
  changed.insert(unread_.begin(), unread_.end());  // they may be readable by now
  try {
    Read(changed);
  } catch (...) {  // everything is read anew, because the order may lack chats
    order_.clear(), unread_.clear(), chats_.clear();
    watch_.reset();
    throw;
  }
  return {};
}

void ChatList::Read(const std::set<ChatId>& chats) {
  std::vector<Listed*> read;
  const bool are_many = chats.size() >= kManyToPlace;
  for (const ChatId& chat : chats) {
    const auto found = chats_.find(chat);
    if (found == chats_.end()) continue;
    unread_.insert(chat);
    if (!are_many) TakeOutOfOrder(found->second);
    found->second.error = NotRead();
    read.push_back(&found->second);
  }
  if (are_many) std::erase_if(order_, [](const Listed* each) { return each->error.has_value(); });
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
  std::erase_if(read, [](const Listed* each) { return each->error.has_value(); });
  for (const Listed* each : read) unread_.erase(each->summary.id);
  if (!are_many) {
    for (Listed* each : read) order_.insert(PlaceOf(each->place()), each);
    return;
  }
  std::ranges::sort(read, ComesBefore, &Listed::place);
  const auto known = static_cast<std::ptrdiff_t>(order_.size());
  order_.insert(order_.end(), read.begin(), read.end());
  std::ranges::inplace_merge(order_, order_.begin() + known, ComesBefore, &Listed::place);
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
  for (const ChatId& chat : unread_) {
    const Error& error = *chats_.at(chat).error;
    if (IsNotFound(error)) continue;
    LogError("a chat cannot be listed", {{"chat", chat.str()}, {"reason", error.reason}, {"detail", error.detail}});
    unreadable.push_back({chat, error});
  }
  return unreadable;
}

}  // namespace reprise
