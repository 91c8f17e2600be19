#include "engine/message_queue.h"

#include "store/memory_interaction_store.h"
#include "support/forwarding_store.h"
#include "support/test.h"

namespace reprise::message_queue_test {
namespace {

const ChatId kChat = *ChatId::Parse("c");

struct FullStore : ForwardingStore {
  using ForwardingStore::ForwardingStore;
  Result<void> SaveQueue(const ChatId& c, const std::vector<QueuedMessage>& messages) override {
    if (full) return Fail(ErrorCode::kStorageFull, "the disk is full");
    return base_.SaveQueue(c, messages);
  }
  bool full = false;
};

struct World {
  World() { REQUIRE(memory.CreateChat(kChat, "")); }
  std::shared_ptr<QueuedRun> Message(const std::string& id, const std::string& text = "text") {
    return std::make_shared<QueuedRun>(kChat, QueuedMessage{.id = id, .user_message = text}, nullptr);
  }
  std::vector<std::string> Stored() {
    std::vector<std::string> ids;
    const auto stored = memory.LoadQueue(kChat);
    for (const QueuedMessage& message : *stored) ids.push_back(message.id);
    return ids;
  }
  MemoryInteractionStore memory;
  FullStore store{memory};
  MessageQueues queues{store};
};

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("MessageQueues: what begins is taken in order, and out of the store when it has begun", "[queue]") {
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
  world.queues.Begun(*a);
  CHECK(world.Stored() == Ids{"b"});
  CHECK(world.queues.TakeNext(kChat)->queue_id() == "b");
  CHECK(world.queues.TakeNext(kChat) == nullptr);
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

TEST_CASE("MessageQueues: another process goes on with what was stored, less what has begun", "[queue]") {
  World world;
  for (const char* id : {"a", "b"}) REQUIRE(world.queues.Add(world.Message(id)));
  MessageQueues later(world.store);
  later.Forget("a");
  REQUIRE(later.List(kChat)->size() == 1);
  CHECK(world.Stored() == Ids{"b"});
  CHECK(later.TakeNext(kChat)->queue_id() == "b");
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
