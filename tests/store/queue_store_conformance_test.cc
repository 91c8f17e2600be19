// What every QueueStore does, whatever it is made of.
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

TEST_CASE("QueueStore: what waits is kept in its order, and replaced as a whole", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    REQUIRE(under_test.store().CreateChat(Chat1(), "x"));
    QueueStore& queues = under_test.store();
    CHECK(queues.LoadQueue(Chat1())->empty());
    const std::vector<QueuedMessage> both = {Waiting('1', "first \u202e \n"), Waiting('2', "second")};
    REQUIRE(queues.SaveQueue(Chat1(), both));
    under_test.Reopen();
    QueueStore& again = under_test.store();
    CHECK(again.LoadQueue(Chat1()) == both);
    REQUIRE(again.SaveQueue(Chat1(), {both[1]}));
    CHECK(again.LoadQueue(Chat1()) == std::vector{both[1]});
    REQUIRE(again.SaveQueue(Chat1(), {}));
    CHECK(again.LoadQueue(Chat1())->empty());
    CHECK(again.ListQueues()->empty());
  });
}

TEST_CASE("QueueStore: of a chat that is not there nothing waits, and deleting one empties its queue", "[store]") {
  OnEachStore([](StoreUnderTest& under_test) {
    InteractionStore& store = under_test.store();
    CHECK(store.LoadQueue(*ChatId::Parse("nowhere"))->empty());
    REQUIRE(store.CreateChat(Chat1(), "x"));
    REQUIRE(store.SaveQueue(Chat1(), {Waiting('1', "first")}));
    REQUIRE(store.SaveQueue(Chat1(), {}));
    REQUIRE(store.DeleteChat(Chat1()));
    CHECK(store.LoadQueue(Chat1())->empty());
  });
}

}  // namespace reprise::queue_store_conformance_test
