#include "doors/api/chat_feed.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/text.h"
#include "domain/codec.h"
#include "doors/chat_lists.h"
#include "doors/translator.h"

namespace reprise {
namespace {

// A client that reads nothing is cut off at this size of its log. When it returns it continues from its cursor.
constexpr std::uint64_t kMostWaiting = 8 * 1024 * 1024;
// A returning client is sent at most this many interactions of a chat that it missed.
constexpr std::uint32_t kMostMissed = 20;

struct Position {
  InteractionId interaction;
  std::uint64_t seq = 0;
};

// EPOCH.NUMBER, and ~CHAT.INTERACTION.SEQ for each followed chat. Clients return it unchanged.
struct Cursor {
  std::string epoch;
  std::uint64_t number = 0;
  std::map<ChatId, Position> chats{};

  std::string ToString() const {
    std::string text = epoch + "." + std::to_string(number);
    for (const auto& [chat, position] : chats) {
      text +=
          "~" + chat.str() + "." + std::to_string(position.interaction.number()) + "." + std::to_string(position.seq);
    }
    return text;
  }

  static std::optional<Cursor> Parse(std::string_view text) {
    Cursor cursor;
    for (bool first = true; first || !text.empty(); first = false) {
      const std::string_view part = text.substr(0, text.find('~'));
      text.remove_prefix(std::min(part.size() + 1, text.size()));
      const std::size_t dot = part.rfind('.');
      const auto last = dot == std::string_view::npos ? std::nullopt : ParseNumber<std::uint64_t>(part.substr(dot + 1));
      if (!last) return std::nullopt;
      if (first) {
        cursor.epoch = part.substr(0, dot);
        cursor.number = *last;
        continue;
      }
      const std::size_t middle = part.substr(0, dot).rfind('.');
      if (middle == std::string_view::npos) return std::nullopt;
      const auto chat = ChatId::Parse(std::string(part.substr(0, middle)));
      const auto interaction = ParseNumber<std::uint64_t>(part.substr(middle + 1, dot - middle - 1));
      if (!chat || !interaction || *interaction == 0 || *interaction > InteractionId::kMaxNumber) return std::nullopt;
      const auto id = InteractionId::FromNumber(static_cast<std::uint32_t>(*interaction));
      cursor.chats.insert_or_assign(*chat, Position{id, *last});
    }
    return cursor;
  }
};

std::string Frame(const Cursor& cursor, std::string_view event, std::string_view data) {
  std::string frame = "id: " + cursor.ToString();
  frame.append("\nevent: ").append(event).append("\ndata: ").append(data).append("\n\n");
  return frame;
}

}  // namespace

// Copies the events of one run into a client's stream.
class ChatFeed::Follower : public EventLogListener {
 public:
  Follower(const std::shared_ptr<Client>& client, AttachedEvents events)
      : client_(client), events_(std::move(events)), offset_(events_.offset) {}
  void OnPublished(std::size_t) noexcept override;

  InteractionId interaction() const { return *events_.subscription.interaction_id; }
  EventLog& log() { return *events_.subscription.log; }

 private:
  friend class Client;
  const std::weak_ptr<Client> client_;
  AttachedEvents events_;
  std::uint64_t offset_;  // guarded by the client's lock
};

class ChatFeed::Client {
 public:
  Client(Cursor cursor, std::vector<ChatId> chats) : chats_(std::move(chats)), cursor_(std::move(cursor)) {}
  ~Client() {
    for (const auto& each : followers_) each->log().Unsubscribe(each.get());
  }

  const std::shared_ptr<EventLog>& log() const { return log_; }
  bool Follows(const ChatId& chat) const { return std::find(chats_.begin(), chats_.end(), chat) != chats_.end(); }
  std::uint64_t number() {
    const MutexLock lock(mutex_);
    return cursor_.number;
  }

  // Sends a frame that does not move the cursor.
  void Tell(std::string_view event, std::string_view data) {
    const MutexLock lock(mutex_);
    Put(event, data);
  }
  void Show(const ChatChange& change, std::string_view data) {
    const MutexLock lock(mutex_);
    if (change.number <= cursor_.number) return;
    cursor_.number = change.number;
    Put(ToString(change.kind), data);
  }
  void GoOnFrom(std::uint64_t number) {
    const MutexLock lock(mutex_);
    cursor_.number = number;
  }

  // False if the client follows this run already.
  bool Add(const std::shared_ptr<Follower>& follower) {
    const MutexLock lock(mutex_);
    const ChatId& chat = follower->events_.subscription.chat_id;
    std::vector<std::shared_ptr<Follower>> ended;
    for (const auto& each : followers_) {
      const bool is_same_chat = each->events_.subscription.chat_id == chat;
      if (is_same_chat && each->interaction() == follower->interaction()) return false;
      const auto end = each->log().end();
      if (is_same_chat && end.closed && end.offset == each->offset_) ended.push_back(each);
    }
    for (const auto& each : ended) each->log().Unsubscribe(each.get()), std::erase(followers_, each);
    followers_.push_back(follower);
    return true;
  }

  // Passes on the run's new events.
  void Take(Follower& follower) {
    const MutexLock lock(mutex_);
    const EventSubscription& run = follower.events_.subscription;
    bool is_new = false;
    for (;;) {
      std::string_view frames = run.log->Read(follower.offset_).bytes;
      if (frames.empty()) break;
      follower.offset_ += frames.size();
      while (!frames.empty()) {
        if (const auto event = TakeFrame(frames)) Append(run, *event);
        is_new = true;
      }
    }
    if (is_new) Publish();
  }

  void Close() { log_->Close(); }

 private:
  void Append(const EventSubscription& run, const EventFrame& event) REQUIRES(mutex_) {
    Position& position = cursor_.chats.try_emplace(run.chat_id, Position{*run.interaction_id}).first->second;
    if (position.interaction <= *run.interaction_id) {
      position.interaction = *run.interaction_id;
      position.seq = event.seq;
    }
    std::string wrapped = "{\"chat_id\":\"" + run.chat_id.str() + "\",\"interaction_id\":\"";
    wrapped.append(run.interaction_id->str()).append("\",\"event\":").append(event.data) += '}';
    Add("chat_event", wrapped);
  }

  void Put(std::string_view event, std::string_view data) REQUIRES(mutex_) {
    Add(event, data);
    Publish();
  }

  void Add(std::string_view event, std::string_view data) REQUIRES(mutex_) {
    if (!is_cut_off_) log_->AppendFrames(Frame(cursor_, event, data));
  }

  void Publish() REQUIRES(mutex_) {
    is_cut_off_ = is_cut_off_ || log_->kept_bytes() > kMostWaiting;
    is_cut_off_ ? log_->Close() : log_->Publish();
  }

  const std::vector<ChatId> chats_;
  const std::shared_ptr<EventLog> log_ = std::make_shared<EventLog>();
  Mutex mutex_;
  Cursor cursor_ GUARDED_BY(mutex_);
  bool is_cut_off_ GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Follower>> followers_ GUARDED_BY(mutex_);
};

void ChatFeed::Follower::OnPublished(std::size_t) noexcept {
  if (const auto client = client_.lock()) client->Take(*this);
}

std::string ChatFeed::MakeEpoch() { return RandomHex(8); }

Result<StreamReply> ChatFeed::Open(std::optional<std::string> given, const std::vector<ChatId>& chats) {
  if (chats.size() > kMostFollowed) {
    return Fail(Reason::kInvalidParameter, "\"chat\" may be there " + std::to_string(kMostFollowed) + " times at most");
  }
  ChatChanges& changes = engine_.changes();
  auto cursor = given ? Cursor::Parse(*given) : std::nullopt;
  const bool goes_on = cursor && cursor->epoch == epoch_ && changes.After(cursor->number);
  Cursor begin{.epoch = epoch_, .number = goes_on ? cursor->number : changes.last()};
  std::map<ChatId, Position> seen;
  if (goes_on) seen = std::move(cursor->chats);
  for (const ChatId& chat : chats) {
    if (const auto position = seen.find(chat); position != seen.end()) begin.chats.insert(*position);
  }
  const auto client = std::make_shared<Client>(std::move(begin), chats);
  client->Tell(given && !goes_on ? "reset" : "open", "{}");
  // Before the client gets changes, so that events it missed come before new ones of the same chat.
  for (const ChatId& chat : chats) {
    const auto position = seen.find(chat);
    if (position == seen.end()) {
      if (const auto running = engine_.RunningIn(chat)) Follow(client, chat, *running, 0);
    } else if (!CatchUp(client, chat, position->second.interaction, position->second.seq)) {
      client->Tell("reset", "{}");
    }
  }
  {
    const MutexLock lock(mutex_);
    if (stopping_) client->Close();
    clients_.push_back(client);
    if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { Work(); });
  }
  changed_.notify_all();
  changes.Interrupt();  // the thread may wait for a change after those that this client lacks
  return StreamReply{.log = client->log(), .hold = client, .forgets = true};
}

bool ChatFeed::CatchUp(const std::shared_ptr<Client>& client, const ChatId& chat, InteractionId last,
                       std::uint64_t last_seq) const {
  Follow(client, chat, last, last_seq);
  const auto entry = engine_.GetListEntry(chat);
  auto newest = entry && entry->summary.head ? *entry->summary.head : last;
  if (const auto running = engine_.RunningIn(chat)) newest = std::max(newest, *running);
  if (newest.number() > last.number() + kMostMissed) return false;
  for (std::uint32_t number = last.number() + 1; number <= newest.number(); ++number) {
    Follow(client, chat, InteractionId::FromNumber(number), 0);
  }
  return true;
}

// Calls the engine without holding a lock.
void ChatFeed::Follow(const std::shared_ptr<Client>& client, const ChatId& chat, InteractionId interaction,
                      std::uint64_t after_seq) const {
  auto attached = engine_.Attach(chat, interaction, after_seq);
  if (!attached) return;  // deleted meanwhile, or damaged: reading the chat tells so
  engine_.Listen(attached->subscription);
  const auto follower = std::make_shared<Follower>(client, *std::move(attached));
  if (!client->Add(follower)) return;
  follower->log().Subscribe(follower);
  client->Take(*follower);
}

std::vector<std::shared_ptr<ChatFeed::Client>> ChatFeed::Clients() {
  std::erase_if(clients_, [](const auto& each) { return each.expired(); });
  std::vector<std::shared_ptr<Client>> clients;
  for (const auto& each : clients_) {
    if (auto client = each.lock()) clients.push_back(std::move(client));
  }
  return clients;
}

void ChatFeed::Work() {
  ChatChanges& changes = engine_.changes();
  for (;;) {
    const std::uint64_t interrupts = changes.interrupts();  // a new client or a stop after this ends the wait
    std::vector<std::shared_ptr<Client>> clients;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() REQUIRES(mutex_) { return stopping_ || !(clients = Clients()).empty(); });
      if (stopping_) return;
    }
    std::uint64_t seen = changes.last();
    for (const auto& client : clients) seen = std::min(seen, client->number());
    if (const auto news = changes.After(seen)) {
      for (const ChatChange& change : *news) Guarded("a feed of changes", [&] { Show(change, clients); });
      if (!news->empty()) continue;
    } else {
      const std::uint64_t last = changes.last();
      for (const auto& client : clients) client->GoOnFrom(last), client->Tell("reset", "{}");
      continue;
    }
    clients.clear();  // keeps no client alive during the wait
    changes.AwaitAfter(seen, interrupts);
  }
}

void ChatFeed::Show(const ChatChange& change, const std::vector<std::shared_ptr<Client>>& clients) {
  const std::string data = FrameOf(change);
  for (const auto& client : clients) {
    client->Show(change, data);
    const bool begins = change.kind == ChatChange::Kind::kInteractionStarted;
    if (begins && client->Follows(change.chat_id)) Follow(client, change.chat_id, *change.interaction_id, 0);
  }
}

std::string ChatFeed::FrameOf(const ChatChange& change) const {
  using Kind = ChatChange::Kind;
  const auto entry = engine_.GetListEntry(change.chat_id);
  Json data = {{"chat_id", change.chat_id.str()}, {"chat", entry ? ChatBody(*entry) : Json(nullptr)}};
  if (change.interaction_id) data["interaction_id"] = change.interaction_id->str();
  if (change.kind == Kind::kApprovalOpened || change.kind == Kind::kApprovalClosed) {
    data["approval_id"] = change.request_id;
  }
  if (change.kind == Kind::kInputOpened || change.kind == Kind::kInputClosed) data["request_id"] = change.request_id;
  if (change.kind == Kind::kApprovalOpened) {
    if (const auto pending = engine_.FindApproval(change.request_id)) data["approval"] = ToJson(*pending);
  }
  if (change.kind == Kind::kInputOpened) {
    for (const PendingInput& each : engine_.PendingInputs()) {
      if (each.request.request_id == change.request_id) data["request"] = ToJson(each);
    }
  }
  return DumpJson(data);
}

void ChatFeed::Stop() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& client : Clients()) client->Close();
    thread = std::move(thread_);
  }
  changed_.notify_all();
  engine_.changes().Interrupt();
  if (thread.joinable()) thread.join();
}

}  // namespace reprise
