#include "tools/network/handshakes.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/text.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxHead = 64 * 1024, kMaxHello = 64 * 1024, kMaxLine = 16 * 1024;
constexpr std::uint16_t kHttpPort = 80;

ProxyRequest Refuse(std::string why) { return {.reading = Reading::kRefused, .why = std::move(why)}; }

struct Head {
  Reading reading = Reading::kMore;
  std::string method{}, uri{}, version{};
  std::vector<std::pair<std::string, std::string_view>> fields{};  // names in lower case
  std::size_t size = 0;
};

// A line ends with CR LF alone, and no line continues another: servers differ in how they read such heads.
Head ReadHead(std::string_view bytes) {
  Head head;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == bytes.npos) {
    head.reading = bytes.size() > kMaxHead ? Reading::kRefused : Reading::kMore;
    return head;
  }
  head.size = end + 4;
  head.reading = Reading::kRefused;
  std::string_view rest = bytes.substr(0, end + 2);
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos) return head;
    if (is_first) {
      const std::size_t one = line.find(' '), two = line.rfind(' ');
      if (one == line.npos || one == two || one == 0) return head;
      head.method = line.substr(0, one);
      head.uri = line.substr(one + 1, two - one - 1);
      head.version = line.substr(two + 1);
      if (head.uri.find(' ') != std::string::npos || !head.version.starts_with("HTTP/1.")) return head;
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::string name = LowerCase(line.substr(0, colon));
    if (colon == line.npos || name.empty() || name.find_first_of(" \t") != std::string::npos) return head;
    head.fields.emplace_back(name, Trimmed(line.substr(colon + 1), " \t"));
  }
  head.reading = Reading::kDone;
  return head;
}

// Whether each Host field, if any, names the target, and there is at most one.
bool HostFits(const Head& head, const HostPort& target, std::uint16_t usual_port) {
  std::size_t count = 0;
  for (const auto& [name, value] : head.fields) {
    if (name != "host") continue;
    const auto host = ParseHostPort(value, usual_port);
    if (++count > 1 || !host || host->host != target.host) return false;
  }
  return true;
}

bool IsForProxyAlone(const std::string& name) {
  constexpr auto kNames = std::to_array<std::string_view>({"host", "connection", "proxy-connection", "keep-alive",
                                                           "proxy-authorization", "upgrade", "te", "http2-settings"});
  return std::ranges::find(kNames, name) != kNames.end();
}

ProxyRequest PlainHttp(const Head& head) {
  constexpr std::string_view kScheme = "http://";
  if (LowerCase(std::string_view(head.uri).substr(0, kScheme.size())) != kScheme) {
    return Refuse("only http:// can be asked for without CONNECT");
  }
  const std::string_view rest = std::string_view(head.uri).substr(kScheme.size());
  const std::size_t end = std::min(rest.find_first_of("/?#\\"), rest.size());
  const auto target = ParseHostPort(rest.substr(0, end), kHttpPort);
  if (!target) return Refuse("the address has no host that can be understood");
  if (!HostFits(head, *target, kHttpPort)) return Refuse("the Host header is not the host of the address");
  std::string path(rest.substr(end));
  if (!path.starts_with('/')) path.insert(0, "/");
  // One request for each connection, so that no other follows unseen.
  ProxyRequest request{.reading = Reading::kDone, .target = *target, .is_tunnel = false, .size = head.size};
  request.forwarded = head.method + " " + path + " HTTP/1.1\r\nHost: " +
                      (target->port == kHttpPort ? target->str().substr(0, target->str().rfind(':')) : target->str()) +
                      "\r\n";
  for (const auto& [name, value] : head.fields) {
    if (!IsForProxyAlone(name)) request.forwarded.append(name).append(": ").append(value).append("\r\n");
  }
  request.forwarded += "Connection: close\r\n\r\n";
  return request;
}

// A view of big-endian numbers and of texts with their length before them. Everything fails after the first failure.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::size_t Number(std::size_t bytes) {
    std::size_t number = 0;
    for (const char c : Take(bytes)) number = number << 8 | static_cast<unsigned char>(c);
    return number;
  }
  std::string_view Take(std::size_t bytes) {
    if (bytes > rest_.size()) failed_ = true;
    if (failed_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view Counted(std::size_t bytes) { return Take(Number(bytes)); }
  bool is_empty() const { return rest_.empty() || failed_; }
  bool failed() const { return failed_; }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// The text of the first handshake message, from as many records as it needs; nullopt if it is not there yet.
// `malformed` if these are no such records.
std::optional<std::string> Hello(std::string_view bytes, bool& malformed) {
  constexpr std::size_t kRecordHead = 5, kMessageHead = 4;
  constexpr char kHandshake = 22, kClientHello = 1;
  std::string message;
  while (bytes.size() >= kRecordHead) {
    Reader head(bytes.substr(1, kRecordHead - 1));
    const std::size_t version = head.Number(2), size = head.Number(2);
    malformed = bytes.front() != kHandshake || version >> 8 != 3 || size == 0;
    if (malformed || bytes.size() < kRecordHead + size) return std::nullopt;
    message.append(bytes.substr(kRecordHead, size));
    bytes.remove_prefix(kRecordHead + size);
    malformed = message.front() != kClientHello;
    if (malformed) return std::nullopt;
    if (message.size() < kMessageHead) continue;
    const std::size_t whole = Reader(std::string_view(message).substr(1, 3)).Number(3);
    if (message.size() >= kMessageHead + whole) return message.substr(kMessageHead, whole);
  }
  return std::nullopt;
}

FirstBytes CheckHello(std::string_view bytes, const HostPort& target) {
  bool malformed = false;
  const auto hello = Hello(bytes, malformed);
  const FirstBytes bad{Reading::kRefused, "the TLS handshake cannot be understood"};
  if (malformed || bytes.size() > kMaxHello) return bad;
  if (!hello) return {};
  constexpr std::size_t kServerName = 0, kEncryptedHello = 0xFE0D, kVersionAndRandom = 34;
  Reader reader(*hello);
  reader.Take(kVersionAndRandom);
  reader.Counted(1);
  reader.Counted(2);
  reader.Counted(1);
  std::optional<std::string> name;
  Reader extensions(reader.is_empty() ? std::string_view() : reader.Counted(2));
  while (!extensions.is_empty()) {
    const std::size_t type = extensions.Number(2);
    const std::string_view content = extensions.Counted(2);
    if (extensions.failed()) return bad;
    if (type == kEncryptedHello) return {Reading::kRefused, "the TLS handshake hides its server name (ECH)"};
    if (type != kServerName) continue;
    Reader list(Reader(content).Counted(2));
    const std::size_t kind = list.Number(1);
    const std::string_view text = list.Counted(2);
    if (name || list.failed() || kind != 0 || !list.is_empty()) return bad;
    name = CanonicalHost(text).value_or("");
  }
  if (reader.failed() || !reader.is_empty()) return bad;
  const bool fits = name ? *name == target.host : IsAddress(target.host);
  if (fits) return {.reading = Reading::kDone};
  return {Reading::kRefused, "the server name in the TLS handshake is not " + target.host};
}

}  // namespace

ProxyRequest ReadHttpProxyRequest(std::string_view bytes) {
  const Head head = ReadHead(bytes);
  if (head.reading == Reading::kMore) return {};
  if (head.reading == Reading::kRefused) return Refuse("the request cannot be understood");
  if (head.method != "CONNECT") return PlainHttp(head);
  const auto target = ParseHostPort(head.uri, 0);
  if (!target) return Refuse("CONNECT needs HOST:PORT with a host that can be understood");
  return {.reading = Reading::kDone, .target = *target, .size = head.size};
}

ProxyRequest ReadSocksRequest(std::string_view bytes) {
  constexpr std::size_t kHead = 4, kPort = 2;
  constexpr char kConnect = 1, kV4 = 1, kName = 3, kV6 = 4;
  if (bytes.size() <= kHead) return {};
  if (bytes[0] != 5 || bytes[1] != kConnect) return Refuse("only SOCKS5 CONNECT is known");
  const char kind = bytes[3];
  const std::size_t size = kind == kV4     ? 4
                           : kind == kV6   ? 16
                           : kind == kName ? static_cast<unsigned char>(bytes[4])
                                           : 0;
  if (size == 0) return Refuse("an unknown kind of address");
  const std::size_t begin = kind == kName ? kHead + 1 : kHead;
  if (bytes.size() < begin + size + kPort) return {};
  const std::string host(bytes.substr(begin, size));
  std::string text = host;
  if (kind != kName) {
    std::array<char, INET6_ADDRSTRLEN> written{};
    text = ::inet_ntop(kind == kV4 ? AF_INET : AF_INET6, host.data(), written.data(), written.size());
  }
  auto canonical = CanonicalHost(text);
  const auto port = static_cast<std::uint16_t>(Reader(bytes.substr(begin + size, kPort)).Number(kPort));
  if (!canonical || port == 0) return Refuse("the host cannot be understood");
  return {.reading = Reading::kDone, .target = {*std::move(canonical), port}, .size = begin + size + kPort};
}

FirstBytes CheckFirstBytes(std::string_view bytes, const HostPort& target) {
  constexpr char kHandshake = 22;
  if (bytes.empty()) return {};
  if (bytes.front() == kHandshake) return CheckHello(bytes, target);
  // The old hello of SSL 2 also offered TLS, without a server name.
  if ((bytes.front() & 0x80) != 0) return {Reading::kRefused, "the first bytes are not those of a known protocol"};
  const std::size_t line = bytes.find_first_of("\r\n");
  if (line == 0) return {Reading::kRefused, "the first bytes are an empty line"};  // which HTTP servers skip
  if (!IsAsciiLetter(bytes.front()) || (line == bytes.npos && bytes.size() > kMaxLine)) {
    return {.reading = Reading::kDone};
  }
  if (line == bytes.npos) return {};
  if (bytes.substr(0, line).find(" HTTP/") == bytes.npos) return {.reading = Reading::kDone};
  const Head head = ReadHead(bytes);
  if (head.reading == Reading::kMore) return {};
  const bool fits = head.reading == Reading::kDone && HostFits(head, target, target.port);
  if (fits) return {.reading = Reading::kDone};
  return {Reading::kRefused, "the Host header is not " + target.host};
}

}  // namespace reprise
