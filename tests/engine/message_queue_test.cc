#include "engine/message_queue.h"

#include <set>

#include "store/memory_interaction_store.h"
#include "support/forwarding_store.h"
#include "support/test.h"

namespace reprise::message_queue_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");

struct FullQueues : ForwardingQueues {
  using ForwardingQueues::ForwardingQueues;
  Result<void> AddQueued(const ChatId& c, const QueuedMessage& message) override {
    if (full) return Fail(ErrorCode::kStorageFull, "the disk is full");
    return base_.AddQueued(c, message);
  }
  Result<void> ChangeQueued(const ChatId& c, std::string_view id, const std::string& text) override {
    if (full) return Fail(ErrorCode::kStorageFull, "the disk is full");
    return base_.ChangeQueued(c, id, text);
  }
  bool full = false;
};

struct World {
  World() { REQUIRE(memory.CreateChat(kChat, {.title = ""})); }
  std::shared_ptr<QueuedRun> Message(const std::string& id, const std::string& text = "text") {
    return std::make_shared<QueuedRun>(kChat, QueuedMessage{.id = id, .user_message = text}, nullptr);
  }
  std::vector<std::string> Stored() {
    std::vector<std::string> ids;
    const auto stored = memory.queues().LoadQueue(kChat);
    for (const WaitingMessage& each : *stored) ids.push_back(each.message.id);
    return ids;
  }
  MemoryInteractionStore memory;
  FullQueues store{memory.queues()};
  MessageQueues queues{store};
};

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("MessageQueues: what begins is taken in order, and cannot be changed from then on", "[queue]") {
  World world;
  CHECK_FALSE(world.queues.HasNext(kChat));
  REQUIRE(world.queues.Add(world.Message("a")));
  REQUIRE(world.queues.Add(world.Message("b")));
  CHECK(world.Stored() == Ids{"a", "b"});
  const auto a = world.queues.TakeNext(kChat);
  CHECK(a->queue_id() == "a");
  CHECK(world.Stored() == Ids{"a", "b"});
  CHECK(world.queues.List(kChat)->size() == 1);
  CHECK(world.queues.Remove(kChat, "a").error().code == ErrorCode::kNotFound);
  CHECK_FALSE(world.queues.Erase(*a));
  REQUIRE(world.store.TakeQueued(kChat, "a"));  // as RunStore::Begin does
  world.queues.Begun(*a);
  CHECK(world.Stored() == Ids{"b"});
  CHECK(world.queues.TakeNext(kChat)->queue_id() == "b");
  CHECK(world.queues.TakeNext(kChat) == nullptr);
}

TEST_CASE(
    "MessageQueues: a stop is told to those that wait, to one that was about to begin, and to one that comes late",
    "[queue]") {
  World world;
  const auto about = world.Message("about to begin"), waits = world.Message("waits"), late = world.Message("late");
  for (const auto& run : {about, waits}) {
    run->ClientCame();
    REQUIRE(world.queues.Add(run));
  }
  REQUIRE(world.queues.TakeNext(kChat) == about);
  world.queues.TellStopping();
  CHECK(waits->outcome().error().reason == "stopping");
  CHECK(about->outcome().error().reason != "stopping");  // it may begin yet
  SECTION("it is put back") { world.queues.PutBack(*about); }
  SECTION("it waits for something else") { world.queues.Pause(*about); }
  CHECK(about->outcome().error().reason == "stopping");
  late->ClientCame();
  REQUIRE(world.queues.Add(late));
  CHECK(late->outcome().error().reason == "stopping");
  CHECK(world.Stored() == Ids{"about to begin", "waits", "late"});
}

TEST_CASE("MessageQueues: what cancels goes first and is never stored", "[queue]") {
  World world;
  REQUIRE(world.queues.Add(world.Message("a")));
  const auto now = std::make_shared<QueuedRun>(kChat, QueuedMessage{.id = "now", .user_message = "x"},
                                               [](QueuedRun&) { return Fail(ErrorCode::kInternal, "not made"); });
  world.queues.AddFirst(now);
  CHECK(world.Stored() == Ids{"a"});
  CHECK(world.queues.List(kChat)->size() == 1);
  CHECK(world.queues.TakeNext(kChat) == now);
}

TEST_CASE("MessageQueues: what could not begin stays until it is changed, and holds nobody up", "[queue]") {
  World world;
  REQUIRE(world.queues.Add(world.Message("a")));
  REQUIRE(world.queues.Add(world.Message("b")));
  world.queues.Stuck(*world.queues.TakeNext(kChat), MakeError(ErrorCode::kNotFound, "no such model"));
  CHECK(world.queues.List(kChat)->front().error->message == "no such model");
  CHECK(world.queues.TakeNext(kChat)->queue_id() == "b");
  CHECK_FALSE(world.queues.HasNext(kChat));
  CHECK_FALSE(world.queues.Change(kChat, "a", "again")->error);
  CHECK(world.queues.message(*world.queues.TakeNext(kChat)).user_message == "again");
}

TEST_CASE("MessageQueues: what the store cannot keep has not happened", "[queue]") {
  World world;
  REQUIRE(world.queues.Add(world.Message("a", "before")));
  world.store.full = true;
  CHECK(world.queues.Add(world.Message("b")).error().code == ErrorCode::kStorageFull);
  CHECK(world.queues.Change(kChat, "a", "after").error().code == ErrorCode::kStorageFull);
  const auto entries = world.queues.List(kChat);
  REQUIRE(entries->size() == 1);
  CHECK(entries->front().message.user_message == "before");
}

TEST_CASE("MessageQueues: another process goes on with what is stored", "[queue]") {
  World world;
  for (const char* id : {"a", "b"}) REQUIRE(world.queues.Add(world.Message(id)));
  MessageQueues later(world.store);
  REQUIRE(world.store.TakeQueued(kChat, "a"));  // it has begun, as a journal says
  REQUIRE(later.List(kChat)->size() == 1);
  CHECK(later.TakeNext(kChat)->queue_id() == "b");
}

// What several processes that use one store see of it.
struct SharedQueues : ForwardingQueues {
  using ForwardingQueues::ForwardingQueues;
  Result<std::vector<WaitingMessage>> LoadQueue(const ChatId& c) override {
    auto waiting = base_.LoadQueue(c);
    for (WaitingMessage& each : *waiting) each.is_others = others.contains(each.message.id);
    return waiting;
  }
  std::set<std::string> others;
};

TEST_CASE("MessageQueues: what another process sees to goes first, and is passed by only if it could not begin",
          "[queue]") {
  World world;
  SharedQueues shared(world.memory.queues());
  MessageQueues queues(shared);
  REQUIRE(world.memory.queues().AddQueued(kChat, {.id = "theirs", .user_message = "first"}));
  shared.others = {"theirs"};
  REQUIRE(queues.Add(world.Message("mine")));
  CHECK(queues.List(kChat)->size() == 2);
  CHECK_FALSE(queues.HasNext(kChat));
  CHECK(queues.TakeNext(kChat) == nullptr);
  SECTION("it has begun there") { REQUIRE(world.memory.queues().TakeQueued(kChat, "theirs")); }
  SECTION("it could not begin") {
    REQUIRE(world.memory.queues().FailQueued(kChat, "theirs", MakeError(ErrorCode::kNotFound, "no such model")));
  }
  REQUIRE(queues.Refresh(kChat));
  CHECK(queues.TakeNext(kChat)->queue_id() == "mine");
}

TEST_CASE("MessageQueues: what a dead process saw to is this one's", "[queue]") {
  World world;
  SharedQueues shared(world.memory.queues());
  MessageQueues queues(shared);
  REQUIRE(world.memory.queues().AddQueued(kChat, {.id = "theirs", .user_message = "first"}));
  shared.others = {"theirs"};
  REQUIRE(queues.Refresh(kChat));
  CHECK_FALSE(queues.HasNext(kChat));
  shared.others.clear();
  REQUIRE(queues.Refresh(kChat));
  CHECK(queues.TakeNext(kChat)->queue_id() == "theirs");
}

TEST_CASE("MessageQueues: a change that was made elsewhere is what begins here, and a client learns of a removal",
          "[queue]") {
  World world;
  const auto a = world.Message("a", "before"), b = world.Message("b");
  b->ClientCame();
  for (const auto& run : {a, b}) REQUIRE(world.queues.Add(run));
  MessageQueues elsewhere(world.store);
  CHECK(elsewhere.Change(kChat, "a", "after")->message.user_message == "after");
  REQUIRE(elsewhere.Remove(kChat, "b"));
  REQUIRE(world.queues.Refresh(kChat));
  CHECK(world.queues.message(*a).user_message == "after");
  CHECK(world.queues.reference(*a).version == 1);
  CHECK(b->outcome().error().reason == "dequeued");
  CHECK(b->log->end().closed);
}

TEST_CASE("MessageQueues: while one waits for another process nothing overtakes it", "[queue]") {
  World world;
  for (const char* id : {"a", "b"}) REQUIRE(world.queues.Add(world.Message(id)));
  world.queues.Pause(*world.queues.TakeNext(kChat));
  CHECK(world.queues.TakeNext(kChat) == nullptr);
  world.queues.GoOn(kChat);
  CHECK(world.queues.TakeNext(kChat)->queue_id() == "a");
}

TEST_CASE("MessageQueues: what a client gave up goes from the store as well, at the next look if not at once",
          "[queue]") {
  World world;
  const auto a = world.Message("a");
  REQUIRE(world.queues.Add(a));
  REQUIRE(world.queues.Erase(*a));
  CHECK_FALSE(world.queues.HasNext(kChat));
  SECTION("at once") { REQUIRE(world.queues.RemoveErased(*a)); }
  SECTION("at the next look") { CHECK(world.queues.List(kChat)->empty()); }
  CHECK(world.Stored().empty());
}

TEST_CASE("MessageQueues: there is a limit on messages and on their text", "[queue]") {
  World world;
  const std::string third(kMaxQueuedBytes / 3, 'x');
  SECTION("messages") {
    for (std::size_t n = 0; n < kMaxQueued; ++n) REQUIRE(world.queues.Add(world.Message(std::to_string(n))));
  }
  SECTION("text") {
    for (const char* id : {"a", "b", "c"}) REQUIRE(world.queues.Add(world.Message(id, third)));
  }
  CHECK(world.queues.Add(world.Message("more", "more")).error().reason == "queue_full");
}

TEST_CASE("QueuedRun: its client learns what became of it, once", "[queue]") {
  World world;
  const auto removed = world.Message("a");
  removed->ClientCame();
  REQUIRE(world.queues.Add(removed));
  REQUIRE(world.queues.Remove(kChat, "a"));
  CHECK(removed->outcome().error().reason == "dequeued");
  CHECK(removed->log->end().closed);
  CHECK_FALSE(removed->End(MakeError(ErrorCode::kInternal, "twice")));
  CHECK_FALSE(removed->ClientLeft().waits);

  const auto begun = world.Message("b");
  begun->ClientCame();
  const auto hold = std::make_shared<int>(0);
  CHECK(begun->Began(InteractionId::FromNumber(7), hold) == nullptr);
  CHECK(begun->outcome()->number() == 7);
  CHECK(begun->ClientLeft().hold == hold);
  CHECK(begun->Began(InteractionId::FromNumber(7), hold) == hold);
}

}  // namespace reprise::message_queue_test
