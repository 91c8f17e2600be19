#include "remote/redis/redis_connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "base/authorities.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr int kMostPort = 65535;

bool IsNumber(std::string_view text, std::size_t most_digits) {
  return !text.empty() && text.size() <= most_digits && text.find_first_not_of("0123456789") == text.npos;
}

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const int high = text[at] == '%' && at + 2 < text.size() ? HexDigit(text[at + 1]) : -1;
    const int low = high < 0 ? -1 : HexDigit(text[at + 2]);
    if (low >= 0) at += 2;
    decoded += low >= 0 ? static_cast<char>(high * 16 + low) : text[at];
  }
  return decoded;
}

tl::unexpected<Error> Unusable(std::string_view why) {
  return Fail(
      ErrorCode::kInvalidArgument,
      "the address of Redis must be redis://[user:password@]host[:port][/db], or rediss://: " + std::string(why));
}

}  // namespace

Result<RedisUrl> RedisUrl::Parse(std::string_view url) {
  RedisUrl parsed;
  if (url.starts_with("rediss://")) {
    parsed.is_tls = true;
  } else if (!url.starts_with("redis://")) {
    return Unusable("it has another scheme");
  }
  url.remove_prefix(url.find("//") + 2);
  if (const auto at = url.rfind('@'); at != url.npos) {
    const std::string_view who = url.substr(0, at);
    const auto colon = who.find(':');
    if (colon == who.npos) return Unusable("a user needs a password");
    parsed.user = Decoded(who.substr(0, colon));
    parsed.password = Decoded(who.substr(colon + 1));
    url.remove_prefix(at + 1);
  }
  if (const auto slash = url.find('/'); slash != url.npos) {
    parsed.database = url.substr(slash + 1);
    if (!parsed.database.empty() && !IsNumber(parsed.database, 5)) return Unusable("the part after / must be a number");
    url = url.substr(0, slash);
  }
  const auto bracket = url.find(']');  // the end of an IPv6 address
  if (const auto colon = url.rfind(':'); colon != url.npos && (bracket == url.npos || colon > bracket)) {
    parsed.port = url.substr(colon + 1);
    if (!IsNumber(parsed.port, 5) || std::stoi(parsed.port) > kMostPort)
      return Unusable("the port is a number up to 65535");
    url = url.substr(0, colon);
  }
  if (url.starts_with('[') && url.ends_with(']')) url = url.substr(1, url.size() - 2);
  if (url.empty()) return Unusable("it names no host");
  parsed.host = url;
  return parsed;
}

namespace {

template <typename Library>
Result<const Library*> LoadOnce(Reason reason, const std::string& what) {
  static const Library library;
  if (library.problem().empty()) return &library;
  return Fail(reason, "the " + what + ") is not available; install it", library.problem());
}

}  // namespace

Result<const HiredisLibrary*> HiredisLibrary::Load() {
  return LoadOnce<HiredisLibrary>(Reason::kNoRedisLibrary,
                                  std::string("Redis client library (hiredis, ") + kHiredisLibrary);
}

Result<const SslLibrary*> SslLibrary::Load() {
  return LoadOnce<SslLibrary>(Reason::kNoTlsLibrary, std::string("TLS library (OpenSSL, ") + kSslLibrary);
}

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 64 * 1024;

Error NotReached(std::string detail) {
  return Refused(Reason::kRedisUnavailable, "Redis cannot be reached", std::move(detail));
}

Error Lost() { return NotReached(std::generic_category().message(errno)); }

void SetOption(int fd, int level, int option, int value) {
  static_cast<void>(::setsockopt(fd, level, option, &value, sizeof value));
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

Result<void> WaitFor(int fd, short events, std::chrono::steady_clock::time_point until, int stop) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Fail(NotReached("it did not answer in time"));
    pollfd fds[] = {{.fd = fd, .events = events, .revents = 0}, {.fd = stop, .events = POLLIN, .revents = 0}};
    if (::poll(fds, std::size(fds), static_cast<int>(left)) < 0 && errno != EINTR) return Fail(Lost());
    if (fds[1].revents != 0) return Fail(NotReached("stopping"));
    if (fds[0].revents != 0) return {};
  }
}

Result<UniqueFd> ConnectTo(const RedisUrl& url, std::chrono::steady_clock::time_point until, int stop) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); failed != 0) {
    return Fail(NotReached(::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  Error last = NotReached("it has no address");
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    UniqueFd fd(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol));
    // Without a socket, too: the system may lack IPv6, and the next address be of IPv4.
    if (!fd || (::connect(fd.get(), each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS)) {
      last = Lost();
      continue;
    }
    TRY(WaitFor(fd.get(), POLLOUT, until, stop));
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) {
      last = NotReached(std::generic_category().message(failure));
      continue;
    }
    SetOption(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    SetOption(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
    SetOption(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, 10);
    SetOption(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
    SetOption(fd.get(), IPPROTO_TCP, TCP_KEEPCNT, 3);
    return fd;
  }
  return Fail(std::move(last));
}

}  // namespace

// --- TLS -------------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const RedisTls>> RedisTls::Make(const std::string& ca_file) {
  const SslLibrary* const library = TRY(SslLibrary::Load());
  const std::shared_ptr<RedisTls> tls(new RedisTls(*library));
  tls->context_ = library->new_context(library->client_method());
  if (tls->context_ == nullptr) return Fail(ErrorCode::kInternal, "TLS cannot be used");
  library->control(tls->context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  library->set_verify(tls->context_, SSL_VERIFY_PEER, nullptr);
  library->trust_system(tls->context_);
  if (const std::string file = AuthoritiesFile(); !file.empty()) {
    library->trust_file(tls->context_, file.c_str(), nullptr);
  }
  if (!ca_file.empty() && library->trust_file(tls->context_, ca_file.c_str(), nullptr) != 1) {
    return Fail(ErrorCode::kInvalidArgument, "no certificates can be read from " + ca_file);
  }
  return std::shared_ptr<const RedisTls>(tls);
}

RedisTls::~RedisTls() {
  if (context_ != nullptr) library_.free_context(context_);
}

Result<void> RedisConnection::Handshake(const std::string& host, Clock::time_point until, int stop) {
  const SslLibrary& library = tls_->library_;
  ssl_ = library.create(tls_->context_);
  from_server_ = ::BIO_new(::BIO_s_mem());
  to_server_ = ::BIO_new(::BIO_s_mem());
  if (ssl_ == nullptr || from_server_ == nullptr || to_server_ == nullptr) {
    return Fail(ErrorCode::kInternal, "no memory for TLS");
  }
  library.set_bio(ssl_, from_server_, to_server_);
  X509_VERIFY_PARAM* const expected = library.parameters(ssl_);
  if (IsAddress(host)) {
    ::X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str());
  } else {
    ::X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);  // RFC 6125: no CN
    ::X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size());
    library.control_one(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
  }
  library.set_connect_state(ssl_);
  for (;;) {
    const int done = library.handshake(ssl_);
    TakeEncrypted();
    if (!Flush()) return Fail(Lost());
    if (done == 1) return {};
    if (library.get_error(ssl_, done) != SSL_ERROR_WANT_READ) {
      const long verified = library.verify_result(ssl_);
      return Fail(NotReached(verified != X509_V_OK ? ::X509_verify_cert_error_string(verified) : "no TLS with it"));
    }
    TRY(Wait(POLLIN, until, stop));
    char bytes[kReadBytes / 4];
    const ssize_t got = ::recv(fd(), bytes, sizeof bytes, 0);
    if (got == 0) return Fail(NotReached("it has closed the connection"));
    if (got < 0 && errno != EAGAIN && errno != EINTR) return Fail(Lost());
    if (got > 0) ::BIO_write(from_server_, bytes, static_cast<int>(got));
  }
}

bool RedisConnection::Encrypt(std::string_view bytes) {
  const bool done = tls_->library_.write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
  TakeEncrypted();
  return done;
}

void RedisConnection::TakeEncrypted() {
  char bytes[kReadBytes / 4];
  for (int got; (got = ::BIO_read(to_server_, bytes, sizeof bytes)) > 0;) {
    out_.append(bytes, static_cast<std::size_t>(got));
  }
}

// --- the connection --------------------------------------------------------------------------------------------------

RedisConnection::RedisConnection(const HiredisLibrary& library, std::shared_ptr<const RedisTls> tls, UniqueFd socket)
    : library_(library), tls_(std::move(tls)), socket_(std::move(socket)), reader_(library_.create_reader()) {}

RedisConnection::~RedisConnection() {
  if (ssl_ != nullptr) tls_->library_.free(ssl_);
  if (reader_ != nullptr) library_.free_reader(reader_);
}

Result<std::unique_ptr<RedisConnection>> RedisConnection::Open(const RedisUrl& url,
                                                               const std::shared_ptr<const RedisTls>& tls,
                                                               Clock::time_point until, int stop) {
  const HiredisLibrary* const library = TRY(HiredisLibrary::Load());
  UniqueFd fd = TRY(ConnectTo(url, until, stop));
  std::unique_ptr<RedisConnection> connection(new RedisConnection(*library, url.is_tls ? tls : nullptr, std::move(fd)));
  if (url.is_tls) TRY(connection->Handshake(url.host, until, stop));
  TRY(connection->SignIn(url, until, stop));
  return connection;
}

// Ends with PING, so that missing rights show up now.
Result<void> RedisConnection::SignIn(const RedisUrl& url, Clock::time_point until, int stop) {
  std::vector<std::vector<std::string_view>> commands;
  if (!url.password.empty() && !url.user.empty()) commands.push_back({"AUTH", url.user, url.password});
  if (!url.password.empty() && url.user.empty()) commands.push_back({"AUTH", url.password});
  if (!url.database.empty() && url.database != "0") commands.push_back({"SELECT", url.database});
  commands.push_back({"PING"});
  for (const auto& command : commands) {
    if (!Send(command)) return Fail(Lost());
  }
  std::size_t answered = 0;
  std::optional<std::string> refused;
  while (answered < commands.size() && !refused) {
    TRY(Wait(static_cast<short>(POLLIN | (must_flush() ? POLLOUT : 0)), until, stop));
    if (!Flush()) return Fail(Lost());
    TRY(Receive([&](const redisReply& reply) {
      ++answered;
      if (reply.type == REDIS_REPLY_ERROR && !refused) refused = std::string(reply.str, reply.len);
    }));
  }
  if (refused) return Fail(NotReached("it refuses: " + *refused));
  return {};
}

Result<void> RedisConnection::Wait(short events, Clock::time_point until, int stop) const {
  return WaitFor(fd(), events, until, stop);
}

bool RedisConnection::Queue(const std::vector<std::string_view>& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : command) words.push_back(word.data()), sizes.push_back(word.size());
  char* formatted = nullptr;
  const int size = library_.format(&formatted, static_cast<int>(words.size()), words.data(), sizes.data());
  if (size < 0) return false;
  const std::unique_ptr<char, decltype(library_.free_command)> owner(formatted, library_.free_command);
  const std::string_view bytes(formatted, static_cast<std::size_t>(size));
  if (ssl_ != nullptr) return Encrypt(bytes);
  out_.append(bytes);
  return true;
}

bool RedisConnection::Flush() {
  while (must_flush()) {
    const ssize_t sent = ::send(fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

bool RedisConnection::Feed(std::string_view bytes) {
  return library_.feed(reader_, bytes.data(), bytes.size()) == REDIS_OK;
}

Result<void> RedisConnection::Receive(const std::function<void(const redisReply&)>& take) {
  char bytes[kReadBytes];
  const ssize_t got = ::recv(fd(), bytes, sizeof bytes, 0);
  if (got == 0) return Fail(NotReached("it has closed the connection"));
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Result<void>() : Fail(Lost());
  if (ssl_ == nullptr && !Feed({bytes, static_cast<std::size_t>(got)})) return Fail(NotReached("it is no Redis"));
  if (ssl_ != nullptr) {
    ::BIO_write(from_server_, bytes, static_cast<int>(got));
    for (;;) {
      const int read = tls_->library_.read(ssl_, bytes, sizeof bytes);
      if (read <= 0 && tls_->library_.get_error(ssl_, read) != SSL_ERROR_WANT_READ) {
        return Fail(NotReached("it ended TLS"));
      }
      if (read <= 0) break;
      if (!Feed({bytes, static_cast<std::size_t>(read)})) return Fail(NotReached("it is no Redis"));
    }
    TakeEncrypted();  // TLS itself may have data to send
    if (!Flush()) return Fail(Lost());
  }
  for (;;) {
    void* reply = nullptr;
    if (library_.get_reply(reader_, &reply) != REDIS_OK) return Fail(NotReached("it is no Redis"));
    if (reply == nullptr) return {};
    take(*static_cast<redisReply*>(reply));
    library_.free_reply(reply);
  }
}

}  // namespace reprise
