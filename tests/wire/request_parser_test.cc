#include "wire/request_parser.h"

#include <algorithm>

#include "support/test.h"

namespace reprise::request_parser_test {
namespace {

const HttpLimits kLimits;

// The status of the refusal of a head; 200: accepted, 0: not complete.
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

TEST_CASE("RequestParser: reads a plain head, with names in lower case", "[wire]") {
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

TEST_CASE("RequestParser: refuses a length that can be read in two ways", "[wire]") {
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

TEST_CASE("RequestParser: refuses lines that parsers read differently", "[wire]") {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"GET / HTTP/1.1\nHost: a\n\n"sv, "GET / HTTP/1.1\r\nHost: a\n\r\n"sv, "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n"sv,
        "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n"sv, "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n"sv,
        "GET / HTTP/1.1\r\nno colon\r\n\r\n"sv, "GET / HTTP/1.1\r\n: empty\r\n\r\n"sv, "GET  / HTTP/1.1\r\n\r\n"sv,
        "GET / HTTP/x.1\r\n\r\n"sv, "GET /\r\n\r\n"sv, "GET / HTTP/1.1 x\r\n\r\n"sv, "G@T / HTTP/1.1\r\n\r\n"sv,
        "GET http://evil/ HTTP/1.1\r\n\r\n"sv, "OPTIONS * HTTP/1.1\r\n\r\n"sv, "CONNECT a:1 HTTP/1.1\r\n\r\n"sv,
        "GET /a#b HTTP/1.1\r\n\r\n"sv, "\x16\x03\x01\r\n\r\n"sv}) {
    INFO(text);
    CHECK(StatusOfHead(text) == 400);
  }
}

TEST_CASE("RequestParser: answers other versions of HTTP with 505, even the first line of HTTP/2", "[wire]") {
  CHECK(StatusOfHead("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == 505);
  CHECK(StatusOfHead("GET / HTTP/2.0\r\nHost: a\r\n\r\n") == 505);
  CHECK(StatusOfHead("GET / HTTP/3\r\n\r\n") == 505);
  CHECK(StatusOfHead("GET / HTTP/0.9\r\n\r\n") == 505);
  CHECK(StatusOfHead("GET / HTTP/1.0\r\n\r\n") == 200);
}

TEST_CASE("RequestParser: limits the head's length, its lines and its target", "[wire]") {
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

TEST_CASE("ScanHead: a head may be as large as the limit, and bytes beyond the limit are ignored", "[wire]") {
  HttpLimits limits;
  limits.head_bytes = 64;
  const std::string start = "GET / HTTP/1.1\r\nX: ";
  const auto head = [&](std::size_t size) { return start + std::string(size - start.size() - 4, 'x') + "\r\n\r\n"; };
  const HeadScan fits = ScanHead(head(64) + "\n", 0, limits);
  REQUIRE(fits.end);
  CHECK(*fits.end == 64);
  for (const std::string& text : {head(65), start + std::string(50, 'x'), start + std::string(50, 'x') + "\n\0"}) {
    const HeadScan longer = ScanHead(text, 0, limits);
    REQUIRE(longer.refusal);
    CHECK(longer.refusal->status == 431);
    CHECK(ScanHead(text, 60, limits).refusal->status == 431);
  }
}

TEST_CASE("ScanHead: finds the end however the head is split", "[wire]") {
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

TEST_CASE("RequestParser: reads a chunked body however it is split", "[wire]") {
  const std::string body = "5\r\nhello\r\n006\r\n world\r\nA\r\n0123456789\r\n0\r\n\r\n";
  for (std::size_t cut = 0; cut <= body.size(); ++cut) {
    INFO(cut);
    Chunked request;
    auto fed = request.parser.TakeBody(std::string_view(body).substr(0, cut));
    REQUIRE_FALSE(fed.refusal);
    REQUIRE(fed.used == cut);
    fed = request.parser.TakeBody(body.substr(cut) + "GET");
    REQUIRE_FALSE(fed.refusal);
    REQUIRE(request.parser.done());
    CHECK(fed.used == body.size() - cut);
    CHECK(request.parser.ReleaseBody() == "hello world0123456789");
  }
}

TEST_CASE("RequestParser: refuses a chunked body at the limit, before it is complete", "[wire]") {
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

TEST_CASE("RequestParser: refuses ambiguous chunks at the first byte that two parsers could read differently",
          "[wire]") {
  using namespace std::string_view_literals;
  for (const std::string_view body :
       {// sizes
        "x"sv, "-"sv, "+5"sv, " 5"sv, "5 "sv, "5\t"sv, "0x"sv, "\r"sv, "\n"sv, "fffffffffffffffff"sv,
        "00000000000000000"sv,
        // line ends
        "5\n"sv, "5\r5"sv, "5\r\r"sv, "5\0"sv, "5\r\nhello\n"sv, "5\r\nhelloX"sv, "5\r\nhello\rX"sv, "0\n"sv,
        "0\r\n\n"sv,
        // extensions
        "5;"sv, "5;x=y"sv, "5;x=\"a\nb\""sv, "5;x=\"\0\""sv, "5;x=\"never closed"sv, "5 ;x"sv, "0;x"sv,
        // trailers
        "0\r\nX-Late: 1"sv, "0\r\nX: y\r\n folded"sv, "0\r\n X"sv, "0\r\n:"sv, "0\r\nOrigin: http://evil.example"sv,
        "0\r\nContent-Length: 5"sv, "0\r\n\r\r"sv}) {
    INFO(body);
    Chunked request;
    const auto fed = request.parser.TakeBody(body);
    REQUIRE(fed.refusal);
    CHECK(fed.refusal->status == 400);
    CHECK_FALSE(request.parser.done());
  }
  for (const char* body : {"7fffffff\r\n", "ffffffffffffffff\r\n", "100001\r\n"}) {
    INFO(body);
    Chunked huge;
    CHECK(huge.parser.TakeBody(body).refusal->status == 413);
  }
}

TEST_CASE("InputBuffer: keeps the bytes in order, and taking them one by one costs no more", "[wire]") {
  InputBuffer buffer;
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string part(static_cast<std::size_t>(i), static_cast<char>('a' + i % 26));
    buffer.Append(part);
    all += part;
    const std::size_t taken = std::min<std::size_t>(buffer.size(), 30);
    CHECK(buffer.view() == all);
    buffer.Consume(taken);
    all.erase(0, taken);
  }
  CHECK(buffer.view() == all);
  // Moving the rest for each byte would be 10^15 moves.
  buffer.Append(std::string(32 << 20, 'x'));
  std::size_t count = 0;
  for (; !buffer.empty(); ++count) buffer.Consume(1);
  CHECK(count == (32 << 20) + all.size());
}

TEST_CASE("RequestParser: a body of known length ends before the next request", "[wire]") {
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

}  // namespace reprise::request_parser_test
