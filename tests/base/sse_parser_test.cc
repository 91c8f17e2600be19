#include "base/sse_parser.h"

#include <chrono>
#include <utility>
#include <vector>

#include "support/test.h"

namespace reprise::sse_parser_test {
namespace {

using namespace std::string_view_literals;

using Events = std::vector<std::pair<std::string, std::string>>;

void Drain(SseParser& parser, Events& events) {
  while (const auto event = parser.Next()) events.emplace_back(event->type, event->data);
}

// Each piece lives only as long as the parser may look at it, so that a view kept too long is a sanitizer's finding.
Events ParsePieces(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  Events events;
  for (const std::string_view piece : pieces) {
    const std::vector<char> copy(piece.begin(), piece.end());
    parser.Feed({copy.data(), copy.size()});
    Drain(parser, events);
  }
  return events;
}

struct Fixture {
  const char* name;
  std::string_view bytes;
  Events events;
};

const std::vector<Fixture>& Fixtures() {
  using namespace std::string_view_literals;
  static const std::vector<Fixture> fixtures{
      {"plain", "data: one\n\ndata: two\n\n", {{"", "one"}, {"", "two"}}},
      {"CRLF", "data: one\r\n\r\ndata: two\r\n\r\n", {{"", "one"}, {"", "two"}}},
      {"CR", "data: one\r\rdata: two\r\r", {{"", "one"}, {"", "two"}}},
      {"mixed ends",
       "data: one\r\n\ndata: two\n\r\ndata: three\r\n\rdata: four\n\r",
       {{"", "one"}, {"", "two"}, {"", "three"}, {"", "four"}}},
      {"byte order mark",
       "\xEF\xBB\xBF"
       "data: one\n\n",
       {{"", "one"}}},
      {"only the first mark is one",
       "\xEF\xBB\xBF\xEF\xBB\xBF"
       "data: one\n\ndata: two\n\n",
       {{"", "two"}}},
      {"half a mark",
       "\xEF\xBB"
       "data: one\n\ndata: two\n\n",
       {{"", "two"}}},
      {"comments", ": ping\n\n:\n\n:x\ndata: one\n: in between\n\n", {{"", "one"}}},
      {"several data lines", "data: one\ndata: two\ndata\ndata:four\n\n", {{"", "one\ntwo\n\nfour"}}},
      {"no space, two spaces", "data:one\n\ndata:  two\n\n", {{"", "one"}, {"", " two"}}},
      {"data without a colon", "data\n\n", {{"", ""}}},
      {"empty data", "data:\n\n", {{"", ""}}},
      {"two empty data lines", "data\ndata\n\n", {{"", "\n"}}},
      {"named", "event: ping\ndata: {}\n\ndata: x\n\n", {{"ping", "{}"}, {"", "x"}}},
      {"a name without data is forgotten", "event: ping\n\ndata: x\n\n", {{"", "x"}}},
      {"name behind the data", "data: x\nevent: late\n\n", {{"late", "x"}}},
      {"id and retry", "id: 7\nretry: 1000\ndata: x\n\n", {{"", "x"}}},
      {"unknown fields", "dat: x\ndatax: y\n data: z\n\ndata: w\n\n", {{"", "w"}}},
      {"colons in the value", "data: a: b:c\n\n", {{"", "a: b:c"}}},
      {"blank lines between", "\n\n\r\ndata: x\n\n\n\n", {{"", "x"}}},
      {"unfinished", "data: one\n\ndata: two\n", {{"", "one"}}},
      {"bytes that are no UTF-8, and NUL", "data: \xff\x00\xc3\n\n"sv, {{"", std::string("\xff\x00\xc3"sv)}}},
      {"an event in a text", "data: {\"t\":\"\\r\\n\\r\\nevent: x\"}\n\n", {{"", "{\"t\":\"\\r\\n\\r\\nevent: x\"}"}}},
  };
  return fixtures;
}

TEST_CASE("SseParser: every fixture reads the same however it is cut", "[sse]") {
  for (const Fixture& fixture : Fixtures()) {
    INFO(fixture.name);
    CHECK(ParsePieces({fixture.bytes}) == fixture.events);
    for (std::size_t cut = 0; cut <= fixture.bytes.size(); ++cut) {
      INFO("cut at " << cut);
      CHECK(ParsePieces({fixture.bytes.substr(0, cut), fixture.bytes.substr(cut)}) == fixture.events);
      for (std::size_t second = cut; second <= fixture.bytes.size(); ++second) {
        REQUIRE(ParsePieces({fixture.bytes.substr(0, cut), fixture.bytes.substr(cut, second - cut),
                             fixture.bytes.substr(second)}) == fixture.events);
      }
    }
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < fixture.bytes.size(); ++i) bytes.push_back(fixture.bytes.substr(i, 1));
    CHECK(ParsePieces(bytes) == fixture.events);
  }
}

TEST_CASE("SseParser: does not copy an event within one piece", "[sse]") {
  const std::string piece = "data: hello\n\n";
  SseParser parser;
  parser.Feed(piece);
  const auto event = parser.Next();
  REQUIRE(event);
  CHECK(event->data.data() == piece.data() + 6);
}

TEST_CASE("SseParser: Finish returns an event without its blank line", "[sse]") {
  for (const std::string bytes : {"data: [DONE]", "data: [DONE]\n", "data: [DONE]\r"}) {
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      SseParser parser;
      for (const std::string& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
        parser.Feed(piece);
        REQUIRE_FALSE(parser.Next());
      }
      const auto event = parser.Finish();
      REQUIRE(event);
      CHECK(event->data == "[DONE]");
      CHECK_FALSE(parser.Finish());
    }
  }
}

TEST_CASE("SseParser: Finish returns nothing after complete events", "[sse]") {
  SseParser parser;
  parser.Feed("data: one\n\n");
  REQUIRE(parser.Next());
  REQUIRE_FALSE(parser.Next());
  CHECK_FALSE(parser.Finish());
}

TEST_CASE("SseParser: a line longer than the limit ends the stream", "[sse]") {
  SseParser parser(/*max_event_bytes=*/32);
  const std::string piece(20, 'x');
  parser.Feed(piece);
  CHECK_FALSE(parser.Next());
  CHECK_FALSE(parser.overflowed());
  parser.Feed(piece);
  CHECK_FALSE(parser.Next());
  CHECK(parser.overflowed());
  parser.Feed("\n\ndata: x\n\n");
  CHECK_FALSE(parser.Next());
  CHECK_FALSE(parser.Finish());
}

TEST_CASE("SseParser: an event of many short lines longer than the limit ends the stream", "[sse]") {
  SseParser parser(/*max_event_bytes=*/32);
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(parser.overflowed());
    parser.Feed("data: 123456789\n");
    CHECK_FALSE(parser.Next());
  }
  CHECK(parser.overflowed());
}

TEST_CASE("SseParser: an event as long as the limit is read", "[sse]") {
  const std::string value(SseParser::kMaxEventBytes - 16, 'x');
  CHECK(ParsePieces({"data: ", value, "\n\n"}) == Events{{"", value}});
}

TEST_CASE("SseParser: events per second", "[.bench]") {
  const std::string event =
      "data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" hello\"}}]}" +
      std::string(110, ' ') + "\n\n";
  std::string piece;
  while (piece.size() < 16 * 1024) piece += event;
  SseParser parser;
  std::size_t events = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20000; ++i) {
    parser.Feed(piece);
    while (parser.Next()) ++events;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  WARN(static_cast<double>(events) / took.count() << " events/s of " << event.size() << " bytes");
}

}  // namespace
TEST_CASE("SseParser: the last event's id and the delay before connecting again", "[base]") {
  SseParser parser;
  CHECK(parser.last_event_id().empty());
  CHECK_FALSE(parser.retry().has_value());
  parser.Feed(
      "id: 1\nretry: 500\ndata: \n\nid: 2\n\ndata: x\n\nretry: soon\nid: a\0b\ndata: y\n\nid: 3\ndata: torn\n"sv);
  REQUIRE(parser.Next().has_value());
  CHECK(parser.last_event_id() == "1");
  CHECK(parser.retry() == std::chrono::milliseconds(500));
  REQUIRE(parser.Next()->data == "x");
  CHECK(parser.last_event_id() == "2");
  REQUIRE(parser.Next()->data == "y");
  CHECK(parser.last_event_id() == "2");
  CHECK(parser.retry() == std::chrono::milliseconds(500));
  CHECK_FALSE(parser.Next().has_value());
  CHECK(parser.last_event_id() == "2");
}

}  // namespace reprise::sse_parser_test
