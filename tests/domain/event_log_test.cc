#include "reprise/event_log.h"

#include <thread>

#include "support/test.h"

namespace reprise::event_log_test {
namespace {

std::string ReadAll(const EventLog& log, std::uint64_t offset = 0) {
  std::string all;
  for (;;) {
    const auto view = log.Read(offset);
    if (view.bytes.empty()) return all;
    all += view.bytes;
    offset += view.bytes.size();
  }
}

class CountingListener : public EventLogListener {
 public:
  void OnPublished(std::size_t listeners) noexcept override {
    ++calls;
    last_listeners = listeners;
  }
  int calls = 0;
  std::size_t last_listeners = 0;
};

}  // namespace

TEST_CASE("EventLog: a frame is id, event, one data line and a blank line", "[domain]") {
  EventLog log;
  const AgentEvent event = log.Append(2, event::Answer{"line\nbreak"});
  log.Publish();
  CHECK(event.seq == 1);
  CHECK(ReadAll(log) == "id: 1\nevent: answer\ndata: {\"type\":\"ANSWER\",\"seq\":1,\"round_index\":2,\"at\":\"" +
                            FormatTimestamp(event.at) + "\",\"content\":\"line\\nbreak\"}\n\n");
}

TEST_CASE("EventLog: a delta is framed like any other event", "[domain]") {
  EventLog by_hand, by_codec;
  by_hand.AppendTextDelta(1, "a\"b\r\n\x01 \xC3\xA4");
  by_hand.Publish();
  const std::string frame = ReadAll(by_hand);
  const AgentEvent event{1, 1, Now(), event::TextDelta{"a\"b\r\n\x01 \xC3\xA4"}};
  by_codec.AppendRecorded(event);
  by_codec.Publish();
  CHECK(ReadAll(by_codec) == frame);
}

TEST_CASE("EventLog: nothing is visible before Publish, and one Publish shows all that gathered", "[domain]") {
  EventLog log;
  auto listener = std::make_shared<CountingListener>();
  log.Subscribe(listener);
  for (int i = 0; i < 10; ++i) log.AppendTextDelta(0, "x");
  CHECK(log.Read(0).bytes.empty());
  CHECK(listener->calls == 0);
  log.Publish();
  CHECK(listener->calls == 1);
  CHECK(listener->last_listeners == 1);
  CHECK(log.end().last_seq == 10);
  log.Publish();
  CHECK(listener->calls == 1);
  log.Unsubscribe(listener.get());
  log.Close();
  CHECK(listener->calls == 1);
}

TEST_CASE("EventLog: every cursor finds exactly the events behind it, over many segments", "[domain]") {
  EventLog log;
  const std::string text(700, 'y');
  for (int i = 0; i < 500; ++i) log.AppendTextDelta(0, text);
  log.Append(0, event::Answer{std::string(300'000, 'z')});
  log.Close();
  const std::string all = ReadAll(log);
  for (std::uint64_t seq = 0; seq <= 501; seq += 7) {
    const auto offset = log.OffsetAfter(seq);
    REQUIRE(offset);
    const std::string rest = ReadAll(log, *offset);
    CHECK(all.substr(all.size() - rest.size()) == rest);
    if (seq < 501) CHECK(rest.starts_with("id: " + std::to_string(seq + 1) + "\n"));
  }
  CHECK(ReadAll(log, *log.OffsetAfter(501)).empty());
  CHECK(log.OffsetAfter(502).error().reason == "cursor_ahead");
}

TEST_CASE("EventLog: `end` is told with the last bytes of a closed log and not before", "[domain]") {
  EventLog log;
  CHECK_FALSE(log.Read(0).end);
  log.Append(0, event::Answer{"a"});
  log.Publish();
  CHECK_FALSE(log.Read(0).end);
  log.Close();
  CHECK(log.Read(0).end);
  CHECK(log.Read(log.end().offset).end);
}

TEST_CASE("EventLog: whoever sees a closed log sees all of it", "[domain]") {
  for (int i = 0; i < 2000; ++i) {
    EventLog log;
    log.AppendTextDelta(0, "last words");
    std::thread closing([&] { log.Close(); });
    while (!log.end().closed) std::this_thread::yield();
    const std::string shown = ReadAll(log);
    closing.join();
    REQUIRE(shown.find("last words") != std::string::npos);
  }
}

TEST_CASE("EventLog: readers on other threads see every byte in order while it grows", "[domain]") {
  EventLog log;
  std::vector<std::string> seen(3);
  std::vector<std::jthread> readers;
  for (std::string& out : seen) {
    readers.emplace_back([&log, &out] {
      for (std::uint64_t offset = 0;;) {
        const auto view = log.Read(offset);
        out += view.bytes;
        offset += view.bytes.size();
        if (view.end && log.Read(offset).bytes.empty()) return;
        if (view.bytes.empty()) std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < 5000; ++i) {
    log.AppendTextDelta(0, "token " + std::to_string(i));
    if (i % 3 == 0) log.Publish();
  }
  log.Close();
  readers.clear();
  for (const std::string& out : seen) CHECK(out == ReadAll(log));
}

}  // namespace reprise::event_log_test
