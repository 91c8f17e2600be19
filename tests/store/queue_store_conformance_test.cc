// The facts that hold for every QueueStore.
#include "store/conformance/store_under_test.h"
#include "store/sample.h"
#include "support/test.h"

namespace reprise::queue_store_conformance_test {
namespace {

QueuedMessage Waiting(char last, const std::string& text) {
  return {.id = "queued_" + std::string(31, '0') + last,
          .user_message = text,
          .model = last == '1' ? "offline" : "",
          .on_disconnect = last == '1' ? OnDisconnect::kContinue : OnDisconnect::kCancel,
          .created_at = *ParseTimestamp("2026-11-21T10:00:00.000Z")};
}

}  // namespace

namespace {

std::vector<QueuedMessage> Messages(QueueStore& store) {
  std::vector<QueuedMessage> messages;
  const auto waiting = store.LoadQueue(Chat1());
  REQUIRE(waiting);
  for (const WaitingMessage& each : *waiting) messages.push_back(each.message);
  return messages;
}

RunBeginning Beginning(const WaitingMessage& waiting) {
  return {.chat = Chat1(),
          .record = "{}",
          .reach = Journal::Reach::kPowerLoss,
          .queued = QueuedRef{.id = waiting.message.id, .version = waiting.version}};
}

}  // namespace

TEST_CASE("QueueStore: messages are kept in order, and each can be removed alone", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    REQUIRE(under_test.store().CreateChat(Chat1(), {.title = "x"}));
    CHECK(under_test.queues().LoadQueue(Chat1())->empty());
    const std::vector<QueuedMessage> three = {Waiting('1', "first \u202e \n"), Waiting('2', "second"),
                                              Waiting('3', "third")};
    for (const QueuedMessage& each : three) REQUIRE(under_test.queues().AddQueued(Chat1(), each));
    under_test.Reopen();
    QueueStore& again = under_test.queues();
    CHECK(Messages(again) == three);
    REQUIRE(again.RemoveQueued(Chat1(), three[1].id));
    CHECK(Messages(again) == std::vector{three[0], three[2]});
    const auto twice = again.RemoveQueued(Chat1(), three[1].id);
    CHECK((twice || twice.error().code == ErrorCode::kNotFound));
    CHECK(Messages(again) == std::vector{three[0], three[2]});
    CHECK(again.RemoveQueued(Chat1(), "queued_of_nobody").error().code == ErrorCode::kNotFound);
    REQUIRE(again.ClearQueue(Chat1()));
    CHECK(again.LoadQueue(Chat1())->empty());
    CHECK(again.ListQueues()->empty());
  });
}

TEST_CASE("QueueStore: a changed message keeps its place and gets another version", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    REQUIRE(under_test.store().CreateChat(Chat1(), {.title = "x"}));
    for (const char last : {'1', '2'}) REQUIRE(under_test.queues().AddQueued(Chat1(), Waiting(last, "before")));
    const auto before = *under_test.queues().LoadQueue(Chat1());
    REQUIRE(under_test.queues().ChangeQueued(Chat1(), before[0].message.id, "after"));
    const auto after = *under_test.queues().LoadQueue(Chat1());
    CHECK(after[0].version != before[0].version);
    CHECK(after[1].version == before[1].version);
    CHECK(Messages(under_test.queues()) == std::vector{Waiting('1', "after"), Waiting('2', "before")});
    CHECK(under_test.queues().ChangeQueued(Chat1(), "queued_none", "x").error().code == ErrorCode::kNotFound);
    under_test.Reopen();
    CHECK(Messages(under_test.queues()) == std::vector{Waiting('1', "after"), Waiting('2', "before")});
  });
}

TEST_CASE("QueueStore: the failure of a message is known until the message is changed", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    QueueStore& store = under_test.queues();
    REQUIRE(under_test.store().CreateChat(Chat1(), {.title = "x"}));
    const QueuedMessage message = Waiting('1', "text");
    REQUIRE(store.AddQueued(Chat1(), message));
    REQUIRE(store.FailQueued(Chat1(), message.id, MakeError(ErrorCode::kNotFound, "no such model \"x\"")));
    auto waiting = *store.LoadQueue(Chat1());
    REQUIRE(waiting.size() == 1);
    REQUIRE(waiting[0].failure);
    CHECK(waiting[0].failure->message == "no such model \"x\"");
    CHECK(waiting[0].failure->code == ErrorCode::kNotFound);
    CHECK(waiting[0].message == message);
    REQUIRE(store.ChangeQueued(Chat1(), message.id, "again"));
    CHECK_FALSE((*store.LoadQueue(Chat1()))[0].failure);
  });
}

TEST_CASE("QueueStore: there is a limit on messages and on their text", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    QueueStore& store = under_test.queues();
    REQUIRE(under_test.store().CreateChat(Chat1(), {.title = "x"}));
    SECTION("text") {
      REQUIRE(store.AddQueued(Chat1(), {.id = "a", .user_message = std::string(kMaxQueuedBytes, 'x')}));
      CHECK(store.AddQueued(Chat1(), {.id = "b", .user_message = "x"}).error().reason == "queue_full");
      CHECK(store.LoadQueue(Chat1())->size() == 1);
    }
    SECTION("messages") {
      for (std::size_t n = 0; n < kMaxQueued; ++n)
        REQUIRE(store.AddQueued(Chat1(), {.id = std::to_string(n), .user_message = {}}));
      CHECK(store.AddQueued(Chat1(), {.id = "more", .user_message = {}}).error().reason == "queue_full");
      REQUIRE(store.RemoveQueued(Chat1(), "7"));
      CHECK(store.AddQueued(Chat1(), {.id = "more", .user_message = {}}));
    }
  });
}

TEST_CASE("QueueStore: a message leaves the queue in the step in which it begins", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    REQUIRE(under_test.store().CreateChat(Chat1(), {.title = "x"}));
    for (const char last : {'1', '2'}) REQUIRE(under_test.queues().AddQueued(Chat1(), Waiting(last, "text")));
    const auto waiting = *under_test.queues().LoadQueue(Chat1());
    auto run = under_test.runs().Begin(Beginning(waiting[0]));
    REQUIRE(run);
    CHECK(Messages(under_test.queues()) == std::vector{Waiting('2', "text")});
    // It is gone, and while it runs no other one may begin.
    CHECK(under_test.runs().Begin(Beginning(waiting[1])).error().reason == "busy");
    REQUIRE(under_test.queues().TakeQueued(Chat1(), waiting[0].message.id));  // as after taking up its run
    REQUIRE((*run)->Discard());
    CHECK(under_test.runs().Begin(Beginning(waiting[0])).error().reason == "dequeued");
    REQUIRE(under_test.queues().ChangeQueued(Chat1(), waiting[1].message.id, "changed"));
    CHECK(under_test.runs().Begin(Beginning(waiting[1])).error().reason == "not_next");
    run = under_test.runs().Begin(Beginning(under_test.queues().LoadQueue(Chat1())->front()));
    REQUIRE(run);
    CHECK(Messages(under_test.queues()).empty());
    REQUIRE((*run)->Discard());
    REQUIRE(under_test.queues().AddQueued(Chat1(), Waiting('3', "text")));
    const auto last = under_test.queues().LoadQueue(Chat1())->front();
    REQUIRE(under_test.queues().RemoveQueued(Chat1(), last.message.id));
    CHECK(under_test.runs().Begin(Beginning(last)).error().reason == "dequeued");
  });
}

// As if another process had read the chat's rows before.
TEST_CASE("QueueStore: among several processes only the first message may begin, once, in its last version",
          "[store][postgres]") {
  if (test::PostgresServer::Get() == nullptr) return;
  PostgresUnderTest under_test(std::make_shared<const KeySet>(KeySet::Generate()));
  InteractionStore& store = under_test.store();
  RunStore& runs = under_test.runs();
  REQUIRE(store.CreateChat(Chat1(), {.title = "x"}));
  for (const char last : {'1', '2'}) REQUIRE(store.queues().AddQueued(Chat1(), Waiting(last, "text")));
  const auto seen = *store.queues().LoadQueue(Chat1());
  CHECK(runs.Begin(Beginning(seen[1])).error().reason == "not_next");
  CHECK(runs.Begin({.chat = Chat1(), .record = "{}", .in_line = true}).error().reason == "not_next");
  REQUIRE(store.queues().ChangeQueued(Chat1(), seen[0].message.id, "changed"));
  CHECK(runs.Begin(Beginning(seen[0])).error().reason == "not_next");
  const auto now = *store.queues().LoadQueue(Chat1());
  auto run = runs.Begin(Beginning(now[0]));
  REQUIRE(run);
  const InteractionId id = (*run)->id();
  CHECK(store.queues().BegunElsewhere(Chat1(), now[0].message.id).value() == id);
  REQUIRE((*run)->Discard());
  CHECK(runs.Begin(Beginning(now[0])).error().reason == "dequeued");
  // A message that failed to begin does not block others.
  REQUIRE(store.queues().FailQueued(Chat1(), seen[1].message.id, MakeError(ErrorCode::kNotFound, "no such model")));
  run = runs.Begin({.chat = Chat1(), .record = "{}", .in_line = true});
  REQUIRE(run);
  REQUIRE((*run)->Discard());
  REQUIRE(store.queues().RemoveQueued(Chat1(), seen[1].message.id));
  CHECK(runs.Begin(Beginning(seen[1])).error().reason == "dequeued");
  CHECK_FALSE(store.queues().BegunElsewhere(Chat1(), seen[1].message.id).value());
  // Added again, because the answer was lost.
  REQUIRE(store.queues().AddQueued(Chat1(), now[0].message));
  CHECK(store.queues().LoadQueue(Chat1())->empty());
}

TEST_CASE("QueueStore: an unknown chat has no messages, and deleting a chat empties its queue", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    InteractionStore& store = under_test.store();
    CHECK(store.queues().LoadQueue(*ChatId::Parse("nowhere"))->empty());
    REQUIRE(store.CreateChat(Chat1(), {.title = "x"}));
    REQUIRE(store.queues().AddQueued(Chat1(), Waiting('1', "first")));
    REQUIRE(store.queues().ClearQueue(Chat1()));
    REQUIRE(store.DeleteChat(Chat1()));
    CHECK(store.queues().LoadQueue(Chat1())->empty());
  });
}

}  // namespace reprise::queue_store_conformance_test
