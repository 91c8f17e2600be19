#include "support/test.h"
#include "wire/message.h"

namespace reprise::byte_range_test {
namespace {

constexpr std::string_view kTag = "\"abc\"";

std::string HeaderOf(const Reply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return {};
}

Reply Ask(HeaderList headers, std::string body = "0123456789", std::string method = "GET") {
  const Request request{.head = {.method = std::move(method), .target = "/", .headers = std::move(headers)}};
  return InRange(request, Reply{.body = std::move(body), .content_type = "text/plain"}, kTag);
}

}  // namespace

TEST_CASE("InRange: one range gets that part", "[wire]") {
  struct Case {
    const char *range, *body, *content_range;
  };
  for (const Case& each : {Case{"bytes=0-0", "0", "bytes 0-0/10"}, Case{"bytes=2-4", "234", "bytes 2-4/10"},
                           Case{"bytes=7-", "789", "bytes 7-9/10"}, Case{"bytes=9-9", "9", "bytes 9-9/10"},
                           Case{"bytes=5-99", "56789", "bytes 5-9/10"}, Case{"bytes=-3", "789", "bytes 7-9/10"},
                           Case{"bytes=-99", "0123456789", "bytes 0-9/10"}, Case{"Bytes= 1-2", "12", "bytes 1-2/10"},
                           Case{"bytes=3-18446744073709551615", "3456789", "bytes 3-9/10"}}) {
    INFO(each.range);
    const Reply reply = Ask({{"range", each.range}});
    CHECK(reply.status == 206);
    CHECK(reply.body == each.body);
    CHECK(HeaderOf(reply, "Content-Range") == each.content_range);
    CHECK(HeaderOf(reply, "ETag") == kTag);
    CHECK(reply.content_type == "text/plain");
  }
}

TEST_CASE("InRange: a part that does not exist gets 416 with the size of the file", "[wire]") {
  for (const char* range : {"bytes=10-", "bytes=10-20", "bytes=99-", "bytes=-0", "bytes=18446744073709551615-"}) {
    INFO(range);
    const Reply reply = Ask({{"range", range}});
    CHECK(reply.status == 416);
    CHECK(HeaderOf(reply, "Content-Range") == "bytes */10");
    CHECK(reply.content_type == "application/json");
  }
}

TEST_CASE("InRange: anything but a single range of bytes gets the whole file", "[wire]") {
  for (const char* range :
       {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=4-2", "bytes=0-1,3-4", "bytes=-1-",
        "bytes=+1-2", "bytes=0x1-2", "bytes=1-18446744073709551616", "lines=1-2", "bytes 1-2"}) {
    INFO(range);
    const Reply reply = Ask({{"range", range}});
    CHECK(reply.status == 200);
    CHECK(reply.body == "0123456789");
    CHECK(HeaderOf(reply, "Accept-Ranges") == "bytes");
    CHECK(HeaderOf(reply, "Content-Range").empty());
  }
  CHECK(Ask({}).status == 200);
  CHECK(Ask({{"range", "bytes=0-1"}, {"range", "bytes=2-3"}}).status == 200);
  CHECK(Ask({{"range", "bytes=0-1"}}, "0123456789", "HEAD").status == 200);
  CHECK(Ask({{"range", "bytes=0-"}}, "").status == 200);
}

TEST_CASE("InRange: a client whose copy is of another version gets the whole file", "[wire]") {
  CHECK(Ask({{"range", "bytes=1-2"}, {"if-range", std::string(kTag)}}).status == 206);
  for (const char* other : {"\"abd\"", "W/\"abc\"", "abc", "Sun, 22 Nov 2026 14:00:00 GMT", ""}) {
    INFO(other);
    CHECK(Ask({{"range", "bytes=1-2"}, {"if-range", other}}).status == 200);
  }
}

}  // namespace reprise::byte_range_test
