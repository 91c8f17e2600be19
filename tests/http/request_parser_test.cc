#include "http/request_parser.h"

#include "support/test.h"

using namespace reprise;

namespace {

const HttpLimits kLimits;

// The status that a head alone is refused with; 200: taken, 0: not complete.
int StatusOfHead(std::string_view text) {
  HeadScan scan = ScanHead(text, 0, kLimits);
  if (scan.refusal) return scan.refusal->status;
  if (!scan.end) return 0;
  RequestParser parser(kLimits);
  const auto refusal = parser.TakeHead(text.substr(0, *scan.end));
  return refusal ? refusal->status : 200;
}
int StatusOfFields(const std::string& fields, const char* version = "1.1") {
  return StatusOfHead("POST /x HTTP/" + std::string(version) + "\r\nHost: a\r\n" + fields + "\r\n");
}

struct Chunked {
  Chunked() {
    const std::string head = "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    REQUIRE_FALSE(parser.TakeHead(head));
  }
  RequestParser parser{kLimits};
};

}  // namespace

TEST_CASE("RequestParser: a plain head is taken with its names in lower case", "[http]") {
  RequestParser parser(kLimits);
  REQUIRE_FALSE(parser.TakeHead("GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-Odd:  spaced \r\n\r\n"));
  CHECK(parser.head().method == "GET");
  CHECK(parser.head().target == "/a?b=c");
  REQUIRE(parser.head().Find("x-odd") != nullptr);
  CHECK(*parser.head().Find("x-odd") == "spaced");
  CHECK_FALSE(parser.has_body());
  CHECK(parser.done());
  CHECK(parser.keep_alive());
}

TEST_CASE("RequestParser: a length that can be read in two ways is refused", "[http]") {
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 6\r\n",
                             "Content-Length: 5, 5\r\n",
                             "Content-Length: abc\r\n",
                             "Content-Length: -1\r\n",
                             "Content-Length: +5\r\n",
                             "Content-Length: 0x5\r\n",
                             "Content-Length:\r\n",
                             "Content-Length: 99999999999999999999\r\n",
                             "Content-Length : 5\r\n",
                             " Content-Length: 5\r\n",
                             "X: y\r\n Content-Length: 5\r\n",
                             "Transfer-Encoding: gzip, chunked\r\n",
                             "Transfer-Encoding: chunked, gzip\r\n",
                             "Transfer-Encoding: identity\r\n",
                             "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                             "Transfer-Encoding:\r\n"}) {
    INFO(fields);
    CHECK(StatusOfFields(fields) == 400);
  }
  CHECK(StatusOfFields("Transfer-Encoding: chunked\r\n", "1.0") == 400);
  CHECK(StatusOfFields("Content-Length: 5\r\n") == 200);
  CHECK(StatusOfFields("Transfer-Encoding: Chunked\r\n") == 200);
}

TEST_CASE("RequestParser: lines that parsers disagree about are refused", "[http]") {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"GET / HTTP/1.1\nHost: a\n\n"sv, "GET / HTTP/1.1\r\nHost: a\n\r\n"sv, "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n"sv,
        "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n"sv, "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n"sv,
        "GET / HTTP/1.1\r\nno colon\r\n\r\n"sv, "GET / HTTP/1.1\r\n: empty\r\n\r\n"sv, "GET  / HTTP/1.1\r\n\r\n"sv,
        "GET / HTTP/2.0\r\n\r\n"sv, "GET /\r\n\r\n"sv, "GET / HTTP/1.1 x\r\n\r\n"sv, "G@T / HTTP/1.1\r\n\r\n"sv,
        "GET http://evil/ HTTP/1.1\r\n\r\n"sv, "OPTIONS * HTTP/1.1\r\n\r\n"sv, "CONNECT a:1 HTTP/1.1\r\n\r\n"sv,
        "GET /a#b HTTP/1.1\r\n\r\n"sv, "\x16\x03\x01\r\n\r\n"sv}) {
    INFO(text);
    CHECK(StatusOfHead(text) == 400);
  }
}

TEST_CASE("RequestParser: heads are bounded in length, lines and target", "[http]") {
  const std::string start = "GET / HTTP/1.1\r\n";
  CHECK(StatusOfHead(start + "X: " + std::string(20'000, 'x')) == 431);
  CHECK(StatusOfHead(start + "X: " + std::string(15'000, 'x') + "\r\n\r\n") == 200);
  std::string fields;
  for (int i = 0; i < 100; ++i) fields += "A: b\r\n";
  CHECK(StatusOfHead(start + fields + "\r\n") == 200);
  CHECK(StatusOfHead(start + fields + "A: b\r\n\r\n") == 431);
  CHECK(StatusOfHead("GET /" + std::string(2047, 'x') + " HTTP/1.1\r\n\r\n") == 200);
  CHECK(StatusOfHead("GET /" + std::string(2048, 'x') + " HTTP/1.1\r\n\r\n") == 414);
  CHECK(StatusOfHead("GET /" + std::string(10'000, 'x')) == 414);
}

TEST_CASE("ScanHead: finds the end however the head is cut", "[http]") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    INFO(cut);
    const HeadScan part = ScanHead(std::string_view(head).substr(0, cut), 0, kLimits);
    CHECK_FALSE(part.end);
    CHECK_FALSE(part.refusal);
    const HeadScan whole = ScanHead(head + "rest", cut, kLimits);
    REQUIRE(whole.end);
    CHECK(*whole.end == head.size());
  }
}

TEST_CASE("RequestParser: a chunked body is read however it is cut, and its trailers are dropped", "[http]") {
  const std::string body = "5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX-Late: 1\r\nOrigin: http://evil\r\n\r\n";
  for (std::size_t cut = 0; cut <= body.size(); ++cut) {
    INFO(cut);
    Chunked request;
    std::string pending = body.substr(0, cut);
    auto fed = request.parser.TakeBody(pending);
    REQUIRE_FALSE(fed.refusal);
    pending = pending.substr(fed.used) + body.substr(cut) + "GET";
    fed = request.parser.TakeBody(pending);
    REQUIRE_FALSE(fed.refusal);
    REQUIRE(request.parser.done());
    CHECK(pending.substr(fed.used) == "GET");
    CHECK(request.parser.ReleaseBody() == "hello world");
    CHECK(request.parser.head().headers.size() == 1);
  }
}

TEST_CASE("RequestParser: a chunked body is refused at the limit, before it is all there", "[http]") {
  Chunked request;
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  int status = 0;
  std::size_t sent = 0;
  std::string pending;
  while (status == 0 && sent < 100) {
    pending += chunk;
    ++sent;
    auto fed = request.parser.TakeBody(pending);
    pending.erase(0, fed.used);
    if (fed.refusal) status = fed.refusal->status;
  }
  CHECK(status == 413);
  CHECK(sent == 17);
}

TEST_CASE("RequestParser: bad chunks are refused", "[http]") {
  for (const char* body : {"x\r\n", "-1\r\n", "5\nhello", "5\r\nhelloXX", "fffffffffffffffff\r\n", "\r\n\r\n"}) {
    INFO(body);
    Chunked request;
    auto fed = request.parser.TakeBody(body);
    if (!fed.refusal) fed = request.parser.TakeBody(std::string(body).substr(fed.used) + "\r\n\r\n\r\n");
    CHECK(fed.refusal);
  }
  Chunked huge;
  CHECK(huge.parser.TakeBody("7fffffff\r\n").refusal->status == 413);
  Chunked endless;
  CHECK(endless.parser.TakeBody("5;" + std::string(20'000, 'x')).refusal->status == 400);
}

TEST_CASE("RequestParser: a body of known length leaves what follows alone", "[http]") {
  RequestParser parser(kLimits);
  REQUIRE_FALSE(parser.TakeHead("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n"));
  CHECK(parser.has_body());
  CHECK(parser.content_length() == 4);
  CHECK(parser.TakeBody("ab").used == 2);
  CHECK_FALSE(parser.done());
  CHECK(parser.TakeBody("cdGET / HTTP").used == 2);
  CHECK(parser.done());
  CHECK(parser.ReleaseBody() == "abcd");
}
