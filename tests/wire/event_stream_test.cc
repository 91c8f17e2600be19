#include "wire/event_stream.h"

#include <malloc.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "support/http_client.h"
#include "support/test.h"

namespace reprise::event_stream_test {

using namespace std::chrono_literals;

namespace {

event::Answer Answer(std::string text) { return {std::move(text)}; }

// A stream on one end of a socket pair, whose other end the test reads. Posted tasks run when the test runs them.
struct StreamFixture {
  explicit StreamFixture(EventStream::Options options = {}) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    ours = ends[0];
    theirs = ends[1];
    options.fd = ours;
    if (!options.log) options.log = log;
    stream = std::make_shared<EventStream>(std::move(options),
                                           EventStream::Callbacks{.post =
                                                                      [this](std::function<void()> task) {
                                                                        const std::lock_guard lock(mutex);
                                                                        posted.push_back(std::move(task));
                                                                        changed.notify_all();
                                                                      },
                                                                  .want_writable = [this] { ++blocked; },
                                                                  .finished = [this] { ++finished; },
                                                                  .failed = [this] { ++failed; }});
  }
  ~StreamFixture() {
    stream->Detach();
    ::close(ours);
    if (theirs >= 0) ::close(theirs);
  }
  void RunPosted() {
    while (true) {
      std::function<void()> task;
      {
        const std::lock_guard lock(mutex);
        if (posted.empty()) return;
        task = std::move(posted.front());
        posted.pop_front();
      }
      task();
    }
  }
  // All bytes that can be read now.
  std::string Received() {
    std::string all;
    char buffer[65536];
    ssize_t size;
    while ((size = ::recv(theirs, buffer, sizeof buffer, 0)) > 0) all.append(buffer, static_cast<std::size_t>(size));
    return all;
  }

  std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  int ours = -1, theirs = -1;
  std::shared_ptr<EventStream> stream;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> posted;
  int blocked = 0, finished = 0, failed = 0;
};

std::string Dechunk(const std::string& text) {
  std::string body;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line = text.find("\r\n", at);
    const auto size = std::strtoull(text.c_str() + at, nullptr, 16);
    body += text.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
  return body;
}

std::string LogText(const EventLog& log) {
  std::string all;
  for (auto view = log.Read(0); !view.bytes.empty(); view = log.Read(all.size())) all += view.bytes;
  return all;
}

}  // namespace

TEST_CASE("EventStream: the publishing thread itself writes an event, as one chunk", "[wire]") {
  StreamFixture f({.head = "HEAD"});
  f.stream->Begin();
  CHECK(f.Received() == "HEAD");
  f.log->Append(0, Answer("a"));
  f.log->Append(0, Answer("b"));
  CHECK(f.Received().empty());
  f.log->Publish();
  CHECK(f.posted.empty());
  const std::string text = f.Received();
  CHECK(Dechunk(text) == LogText(*f.log));
  CHECK(std::strtoull(text.c_str(), nullptr, 16) == f.log->end().offset);
}

TEST_CASE("EventStream: the head and the existing events are sent together, the end with the last event", "[wire]") {
  StreamFixture f({.head = "HEAD\r\n"});
  f.log->Append(0, Answer("a"));
  f.log->Close();
  f.stream->Begin();
  const std::string text = f.Received();
  REQUIRE(text.starts_with("HEAD\r\n"));
  CHECK(text.ends_with("\r\n0\r\n\r\n"));
  CHECK(Dechunk(text.substr(6)) == LogText(*f.log));
  f.RunPosted();
  CHECK(f.finished == 1);
}

TEST_CASE("EventStream: without chunking the bytes are the log's", "[wire]") {
  StreamFixture f({.chunked = false, .head = "H", .preamble = "P"});
  f.stream->Begin();
  f.log->Append(0, Answer("a"));
  f.log->Close();
  CHECK(f.Received() == "HP" + LogText(*f.log));
  f.RunPosted();
  CHECK(f.finished == 1);
}

TEST_CASE("EventStream: keeps no memory for what it has sent before the log", "[wire]") {
  constexpr std::size_t kBytes = 50'000;
  const std::size_t before = ::mallinfo2().uordblks;
  StreamFixture f({.head = std::string(kBytes, 'h'), .preamble = std::string(kBytes, 'p')});
  f.stream->Begin();
  CHECK(f.Received().size() > 2 * kBytes);
  f.log->Append(0, Answer("a"));
  f.log->Publish();
  CHECK(Dechunk(f.Received()) == LogText(*f.log));
  CHECK(::mallinfo2().uordblks < before + kBytes);
}

TEST_CASE("EventStream: stream_live stands between replayed and live events", "[wire]") {
  auto log = std::make_shared<EventLog>();
  log->Append(0, Answer("a"));
  log->Append(0, Answer("b"));
  log->Publish();
  const auto replayed = log->end().offset;
  log->Append(0, Answer("c"));
  log->Publish();
  StreamFixture f({.preamble = "event: stream_open\ndata: {}\n\n", .log = log, .live_at = replayed});
  f.stream->Begin();
  const std::string all = LogText(*log);
  CHECK(Dechunk(f.Received()) == "event: stream_open\ndata: {}\n\n" + all.substr(0, replayed) +
                                     "event: stream_live\ndata: {}\n\n" + all.substr(replayed));
}

TEST_CASE("EventStream: stream_live comes at once if nothing is replayed", "[wire]") {
  StreamFixture f({.live_at = 0});
  f.stream->Begin();
  CHECK(Dechunk(f.Received()) == "event: stream_live\ndata: {}\n\n");
}

TEST_CASE("EventStream: a finished interaction ends with its own last event, not with stream_live", "[wire]") {
  auto log = std::make_shared<EventLog>();
  log->Append(0, Answer("a"));
  log->Close();
  StreamFixture f({.log = log, .live_at = log->end().offset});
  f.stream->Begin();
  CHECK(Dechunk(f.Received()) == LogText(*log));
}

TEST_CASE("EventStream: waits for a full socket and neither loses nor repeats bytes", "[wire]") {
  StreamFixture f;
  f.stream->Begin();
  std::string received;
  for (int i = 0; i < 400; ++i) {
    f.log->Append(0, Answer(std::string(3000, static_cast<char>('a' + i % 26))));
    f.log->Publish();
  }
  f.RunPosted();
  CHECK(f.blocked == 1);
  f.log->Close();
  f.RunPosted();
  CHECK(f.blocked == 1);  // reported once, not for each event
  while (f.finished == 0) {
    const std::string more = f.Received();
    REQUIRE_FALSE(more.empty());
    received += more;
    f.stream->OnWritable();
    f.RunPosted();
  }
  received += f.Received();
  CHECK(Dechunk(received) == LogText(*f.log));
  CHECK(received.ends_with("0\r\n\r\n"));
}

TEST_CASE("EventStream: sends a heartbeat only after silence, and never inside an event", "[wire]") {
  StreamFixture f({.heartbeat = 15s});
  f.stream->Begin();
  const auto now = EventStream::Clock::now();
  f.stream->OnTick(now + 14s);
  CHECK(f.Received().empty());
  f.stream->OnTick(now + 16s);
  CHECK(Dechunk(f.Received()) == ": keep-alive\n\n");
  for (int i = 0; i < 400; ++i) f.log->Append(0, Answer(std::string(3000, 'x')));
  f.log->Publish();
  f.RunPosted();
  REQUIRE(f.blocked == 1);
  f.stream->OnTick(EventStream::Clock::now() + 16s);
  std::string received = f.Received();
  while (Dechunk(received).size() < f.log->end().offset) {
    f.stream->OnWritable();
    f.RunPosted();
    received += f.Received();
  }
  CHECK(received.find("keep-alive") == std::string::npos);
}

TEST_CASE("EventStream: fails if the client reads nothing for too long", "[wire]") {
  StreamFixture f({.stall_limit = 30s});
  f.stream->Begin();
  for (int i = 0; i < 400; ++i) f.log->Append(0, Answer(std::string(3000, 'x')));
  f.log->Publish();
  f.stream->OnTick(EventStream::Clock::now() + 29s);
  f.RunPosted();
  CHECK(f.failed == 0);
  f.stream->OnTick(EventStream::Clock::now() + 31s);
  f.RunPosted();
  CHECK(f.failed == 1);
}

TEST_CASE("EventStream: reports once that the client is gone", "[wire]") {
  StreamFixture f;
  f.stream->Begin();
  ::close(std::exchange(f.theirs, -1));
  for (int i = 0; i < 3; ++i) {
    f.log->Append(0, Answer("a"));
    f.log->Publish();
  }
  f.RunPosted();
  CHECK(f.failed == 1);
}

TEST_CASE("EventStream: writes and reports nothing after Detach", "[wire]") {
  StreamFixture f;
  f.stream->Begin();
  f.log->Append(0, Answer("a"));
  f.stream->Detach();
  f.log->Close();
  f.stream->OnPublished(1);
  f.stream->OnPublished(100);
  CHECK(f.Received().empty());
  CHECK(f.posted.empty());
}

TEST_CASE("EventStream: Detach returns the bytes sent, with head and frames, and whether these are all", "[wire]") {
  StreamFixture f({.head = "HEAD"});
  f.stream->Begin();
  f.log->Append(0, Answer("a"));
  f.log->Publish();
  const std::string received = f.Received();
  f.log->Append(0, Answer("never shown"));
  CHECK(received.size() > f.log->end().offset);
  const EventStream::Sent cut_off = f.stream->Detach();
  CHECK(cut_off.bytes == received.size());
  CHECK_FALSE(cut_off.complete);

  StreamFixture whole;
  whole.stream->Begin();
  whole.log->Append(0, Answer("a"));
  whole.log->Close();
  const EventStream::Sent sent = whole.stream->Detach();
  CHECK(sent.bytes == whole.Received().size());
  CHECK(sent.complete);
}

TEST_CASE("EventStream: among many listeners the publisher only posts a task, once", "[wire]") {
  StreamFixture f;
  f.stream->Begin();
  f.log->Append(0, Answer("a"));
  f.log->Publish();
  f.Received();
  f.stream->OnPublished(100);
  f.stream->OnPublished(100);
  CHECK(f.posted.size() == 1);
  f.RunPosted();
  f.stream->OnPublished(100);
  CHECK(f.posted.size() == 1);
}

TEST_CASE("EventStream: a publisher and a reader in parallel agree on every byte", "[wire]") {
  StreamFixture f;
  f.stream->Begin();
  std::jthread publisher([&] {
    for (int i = 0; i < 5000; ++i) {
      f.log->AppendTextDelta(0, "word " + std::to_string(i));
      f.log->Publish();
    }
    f.log->Close();
  });
  std::jthread loop([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::unique_lock lock(f.mutex);
      f.changed.wait_for(lock, 5ms, [&] { return !f.posted.empty(); });
      lock.unlock();
      f.RunPosted();
      f.stream->OnWritable();
    }
  });
  std::string received;
  while (!received.ends_with("0\r\n\r\n")) received += f.Received();
  publisher.join();
  loop.request_stop();
  loop.join();
  CHECK(Dechunk(received) == LogText(*f.log));
}

}  // namespace reprise::event_stream_test
