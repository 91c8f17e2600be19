#include "net/web_socket.h"

#include <boost/beast/core/detail/base64.hpp>
#include <boost/beast/core/detail/sha1.hpp>
#include <vector>

#include "base/text.h"
#include "support/test.h"

namespace reprise::web_socket_test {
namespace {

HttpRequest MakeRequest() {
  HttpRequest request;
  request.url = "http://127.0.0.1:9/v1/realtime?model=a";
  request.headers = {{"Authorization", "Bearer k"}};
  request.messages = {"one", "two"};
  return request;
}

// A socket, and the server at its other end.
struct Fixture {
  HttpRequest request = MakeRequest();
  int status = 0;
  HttpHeaders headers;
  std::string body;
  std::vector<std::string> heard;
  std::size_t wanted = 100;
  WebSocket socket{request,
                   [this](int got, HttpHeaders all, std::string_view text) {
                     status = got;
                     headers = std::move(all);
                     body = text;
                   },
                   [this](std::string_view message) {
                     heard.emplace_back(message);
                     return heard.size() < wanted;
                   }};

  std::string TakeSent() {
    std::string sent(socket.to_send());
    socket.Sent(sent.size());
    return sent;
  }
  // Answers the handshake, whose bytes it returns.
  std::string Open() {
    const std::string head = TakeSent();
    const std::size_t at = head.find("Sec-WebSocket-Key: ") + 19;
    const std::string key = head.substr(at, head.find("\r\n", at) - at) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    namespace detail = boost::beast::detail;
    detail::sha1_context context;
    detail::init(context);
    detail::update(context, key.data(), key.size());
    std::string digest(20, '\0');
    detail::finish(context, digest.data());
    std::string accept;
    AppendBase64(accept, digest);
    socket.Take(
        "HTTP/1.1 101 go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Request-Id: r\r\nSec-WebSocket-Accept: " +
        accept + "\r\n\r\n");
    return head;
  }
};

std::string Frame(std::string_view payload, int opcode = 0x81) {
  return std::string{static_cast<char>(opcode), static_cast<char>(payload.size())} + std::string(payload);
}

// The text of a short frame of the client.
std::string Unmasked(std::string_view& bytes) {
  const std::size_t size = static_cast<unsigned char>(bytes[1]) & 0x7f;
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(bytes[6 + i] ^ bytes[2 + i % 4]);
  bytes.remove_prefix(6 + size);
  return text;
}

}  // namespace

TEST_CASE("WebSocket: the messages follow the handshake, and the server's are handed over", "[net]") {
  Fixture f;
  const std::string head = f.Open();
  CHECK(head.starts_with("GET /v1/realtime?model=a HTTP/1.1\r\n"));
  CHECK(head.find("\r\nHost: 127.0.0.1:9\r\n") != head.npos);
  CHECK(head.find("\r\nAuthorization: Bearer k\r\n") != head.npos);
  CHECK(f.status == 200);
  const std::string sent = f.TakeSent();
  std::string_view rest = sent;
  CHECK(Unmasked(rest) == "one");
  CHECK(Unmasked(rest) == "two");
  CHECK(rest.empty());

  for (const char byte : Frame("a", 0x01) + Frame("", 0x89) + Frame("b", 0x80) + Frame("c")) f.socket.Take({&byte, 1});
  CHECK(f.heard == std::vector<std::string>{"ab", "c"});
  const std::string answer = f.TakeSent();
  CHECK(static_cast<unsigned char>(answer.at(0)) == 0x8a);  // to the ping
  CHECK_FALSE(f.socket.ended());
  f.socket.Take(Frame("", 0x88));
  REQUIRE(f.socket.ended());
  CHECK(*f.socket.ended());
}

TEST_CASE("WebSocket: it ends when no more is wanted, and says so to the server", "[net]") {
  Fixture f;
  f.wanted = 1;
  f.Open();
  f.TakeSent();
  f.socket.Take(Frame("a") + Frame("b"));
  CHECK(f.heard == std::vector<std::string>{"a"});
  REQUIRE(f.socket.ended());
  CHECK(*f.socket.ended());
  CHECK(static_cast<unsigned char>(f.TakeSent().at(0)) == 0x88);
}

TEST_CASE("WebSocket: a refused handshake is a response", "[net]") {
  Fixture f;
  f.TakeSent();
  f.socket.Take("HTTP/1.1 401 no\r\nContent-Length: 4\r\n\r\n");
  CHECK_FALSE(f.socket.ended());
  f.socket.Take("nope");
  CHECK(f.status == 401);
  CHECK(f.body == "nope");
  REQUIRE(f.socket.ended());
  CHECK(*f.socket.ended());
}

TEST_CASE("WebSocket: a lost connection and a broken protocol are failures", "[net]") {
  const std::string too_long = {'\x81', 127, 0, 0, 0, 0, 0, 80, 0, 0};
  for (const std::string& wrong : {std::string(), std::string("\x81\x85mask!"), std::string("\xf3\x01x"), too_long,
                                   Frame("\xff"), Frame("x", 0x80)}) {
    Fixture f;
    f.Open();
    CAPTURE(EncodeHex({reinterpret_cast<const unsigned char*>(wrong.data()), wrong.size()}));
    wrong.empty() ? f.socket.TakeEnd() : f.socket.Take(wrong);
    REQUIRE(f.socket.ended());
    REQUIRE_FALSE(*f.socket.ended());
    CHECK(f.socket.ended()->error().Is(Reason::kConnectionLost));
  }
  Fixture f;
  f.socket.Take("HTTP/1.1 101 go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n");
  REQUIRE(f.socket.ended());
}

}  // namespace reprise::web_socket_test
