#include "model/offline/paced_writer.h"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "support/test.h"

namespace reprise::paced_writer_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// Tells of the first word, and can stop at it.
struct Listener : ModelStream {
  void OnThinking(std::string_view delta) override { Take("thinking: ", delta); }
  void OnText(std::string_view delta) override { Take("text: ", delta); }
  void OnBatchEnd() override { ++batches; }
  void Take(std::string_view kind, std::string_view delta) {
    said.push_back(std::string(kind) + std::string(delta));
    if (said.size() == 1) first.set_value();
  }
  std::vector<std::string> said;
  std::size_t batches = 0;
  std::promise<void> first;
};

struct Written {
  Listener stream;
  std::promise<Result<ModelResponse>> done;
  std::future<Result<ModelResponse>> response = done.get_future();
};

std::unique_ptr<Written> Write(PacedWriter& writer, PacedResponse response, std::stop_token stop = {}) {
  auto written = std::make_unique<Written>();
  writer.Write(std::move(response), written->stream, std::move(stop),
               [to = written.get()](Result<ModelResponse> taken) { to->done.set_value(std::move(taken)); });
  return written;
}

PacedResponse Saying(std::string thinking, std::string text, milliseconds pause) {
  return {.thinking = std::move(thinking), .text = std::move(text), .pause = pause, .end = ModelResponse{}};
}

TEST_CASE("PacedWriter: thinking, then text, word by word, then the end", "[model]") {
  PacedWriter writer;
  auto response = Saying("Let me  see", "a b\n", milliseconds(1));
  response.end = ModelResponse{.tool_calls = {{"c", "echo", "{}"}}, .usage = {3, 4}, .extras = {}};
  const auto written = Write(writer, std::move(response));
  const auto end = written->response.get();
  REQUIRE(end);
  CHECK(end->tool_calls == std::vector<ToolCall>{{"c", "echo", "{}"}});
  CHECK(end->usage == TokenUsage{3, 4});
  CHECK(written->stream.said ==
        std::vector<std::string>{"thinking: Let ", "thinking: me  ", "thinking: see", "text: a ", "text: b\n"});
  CHECK(written->stream.batches == 5);
}

TEST_CASE("PacedWriter: there is a pause between two words", "[model]") {
  PacedWriter writer;
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(Write(writer, Saying("", "1 2 3 4", milliseconds(20)))->response.get());
  CHECK(std::chrono::steady_clock::now() - begin >= milliseconds(60));
}

TEST_CASE("PacedWriter: a failure comes after the text, which may be empty", "[model]") {
  PacedWriter writer;
  auto response = Saying("", "half an", milliseconds(1));
  response.end = Fail(ErrorCode::kProvider, "cut off");
  const auto half = Write(writer, std::move(response));
  const auto end = half->response.get();
  REQUIRE_FALSE(end);
  CHECK(end.error().message == "cut off");
  CHECK(half->stream.said == std::vector<std::string>{"text: half ", "text: an"});
  const auto nothing = Write(writer, Saying("", "", hours(1)));
  CHECK(nothing->response.get());
  CHECK(nothing->stream.said.empty());
}

TEST_CASE("PacedWriter: text without spaces is split and loses nothing", "[model]") {
  PacedWriter writer;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "\xE4\xBD\xA0";
  const auto written = Write(writer, Saying("", text, milliseconds(1)));
  REQUIRE(written->response.get());
  CHECK(written->stream.said.size() == 3);
  std::string all;
  for (const std::string& piece : written->stream.said) all += piece.substr(std::string("text: ").size());
  CHECK(all == text);
}

TEST_CASE("PacedWriter: a stop ends the pause", "[model]") {
  PacedWriter writer;
  std::stop_source stop;
  const auto written = Write(writer, Saying("", "one two", hours(1)), stop.get_token());
  written->stream.first.get_future().wait();
  stop.request_stop();
  const auto end = written->response.get();  // would take an hour without the stop
  REQUIRE_FALSE(end);
  CHECK(end.error().code == ErrorCode::kCancelled);
  CHECK(written->stream.said == std::vector<std::string>{"text: one "});
}

TEST_CASE("PacedWriter: a request that is already stopped writes nothing", "[model]") {
  PacedWriter writer;
  std::stop_source stop;
  stop.request_stop();
  const auto written = Write(writer, Saying("x", "y", milliseconds(1)), stop.get_token());
  CHECK(written->response.get().error().code == ErrorCode::kCancelled);
  CHECK(written->stream.said.empty());
}

TEST_CASE("PacedWriter: a pause does not delay other responses", "[model]") {
  PacedWriter writer;
  std::stop_source stop;
  const auto slow = Write(writer, Saying("", "one two", hours(1)), stop.get_token());
  CHECK(Write(writer, Saying("", "one two", milliseconds(1)))->response.get());
  std::vector<std::unique_ptr<Written>> many;
  for (int i = 0; i < 50; ++i) many.push_back(Write(writer, Saying("a b", "c d", milliseconds(1))));
  for (const auto& each : many) {
    CHECK(each->response.get());
    CHECK(each->stream.said.size() == 4);
  }
  CHECK(slow->response.wait_for(milliseconds(0)) == std::future_status::timeout);
  stop.request_stop();
  CHECK(slow->response.get().error().code == ErrorCode::kCancelled);
}

TEST_CASE("PacedWriter: stops at any moment end each response once", "[model]") {
  PacedWriter writer;
  for (int round = 0; round < 200; ++round) {
    std::stop_source stop;
    const auto written = Write(writer, Saying("", "a b c d e f", milliseconds(round % 3)), stop.get_token());
    if (round % 2 == 0) written->stream.first.get_future().wait();
    stop.request_stop();
    const auto end = written->response.get();  // set_value throws if it is called twice
    if (!end) CHECK(end.error().code == ErrorCode::kCancelled);
  }
}

TEST_CASE("PacedWriter: its destructor ends open responses as if stopped", "[model]") {
  std::optional<PacedWriter> writer(std::in_place);
  const auto written = Write(*writer, Saying("", "one two", hours(1)));
  written->stream.first.get_future().wait();
  writer.reset();
  CHECK(written->response.get().error().code == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace reprise::paced_writer_test
