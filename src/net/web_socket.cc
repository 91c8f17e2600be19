#include "net/web_socket.h"

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace reprise {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using ErrorOf = beast::error_code;

constexpr std::size_t kWriteBytes = 64 << 10;

// A stream for Beast whose two ends are buffers in memory. A write is done at once. A read waits until Feed or End.
class Pipe {
 public:
  using executor_type = asio::io_context::executor_type;

  explicit Pipe(asio::io_context& context) : context_(context) {}
  executor_type get_executor() { return context_.get_executor(); }

  template <typename Buffers, typename Handler>
  auto async_read_some(const Buffers& buffers, Handler&& token) {
    return asio::async_initiate<Handler, void(ErrorOf, std::size_t)>(
        [this](auto handler, const Buffers& into) {
          reading_ = std::make_unique<ReadInto<Buffers, decltype(handler)>>(into, std::move(handler));
        },
        token, buffers);
  }
  template <typename Buffers, typename Handler>
  auto async_write_some(const Buffers& buffers, Handler&& token) {
    return asio::async_initiate<Handler, void(ErrorOf, std::size_t)>(
        [this](auto handler, const Buffers& from) {
          const std::size_t bytes = asio::buffer_size(from), before = outgoing.size();
          outgoing.resize(before + bytes);
          asio::buffer_copy(asio::buffer(outgoing.data() + before, bytes), from);
          asio::post(context_, beast::bind_front_handler(std::move(handler), ErrorOf(), bytes));
        },
        token, buffers);
  }

  // Does all that can be done with the bytes that have come.
  void Run() {
    do {
      context_.restart();
      context_.poll();
    } while (EndReading());
  }

  std::string incoming, outgoing;
  bool is_over = false;  // no more bytes come

 private:
  struct Reading {
    virtual ~Reading() = default;
    virtual void End(const ErrorOf& error, std::string& incoming) = 0;
  };
  template <typename Buffers, typename Handler>
  struct ReadInto final : Reading {
    ReadInto(const Buffers& into, Handler of) : buffers(into), handler(std::move(of)) {}
    void End(const ErrorOf& error, std::string& incoming) override {
      const std::size_t bytes = error ? 0 : asio::buffer_copy(buffers, asio::buffer(incoming));
      incoming.erase(0, bytes);
      handler(error, bytes);
    }
    const Buffers buffers;
    Handler handler;
  };

  // Whether a read could end.
  bool EndReading() {
    if (!reading_ || (incoming.empty() && !is_over)) return false;
    const auto reading = std::exchange(reading_, nullptr);
    reading->End(incoming.empty() ? ErrorOf(asio::error::eof) : ErrorOf(), incoming);
    return true;
  }

  asio::io_context& context_;
  std::unique_ptr<Reading> reading_;
};

// What Beast asks of a stream beyond reading and writing: the caller closes the connection.
void beast_close_socket(Pipe&) {}
template <typename Handler>
void async_teardown(beast::role_type, Pipe& pipe, Handler&& handler) {
  asio::post(pipe.get_executor(), beast::bind_front_handler(std::forward<Handler>(handler), ErrorOf()));
}

struct Address {
  std::string host, target;
};

// REQUIRES: an http or https URL (CheckRequest).
Address AddressIn(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  const std::size_t end = std::min(url.find_first_of("/?#"), url.size());
  std::string_view host = url.substr(0, end), target = url.substr(end);
  if (const std::size_t at = host.rfind('@'); at != host.npos) host.remove_prefix(at + 1);
  target = target.substr(0, target.find('#'));
  return {std::string(host), (target.starts_with('/') ? "" : "/") + std::string(target)};
}

}  // namespace

struct WebSocket::Connection {
  Connection(OnHead on_head, OnMessage on_message)
      : tell_head(std::move(on_head)), tell_message(std::move(on_message)) {}

  void Begin(const HttpRequest& request) {
    stream.set_option(websocket::stream_base::decorator([headers = request.headers](websocket::request_type& head) {
      head.set("User-Agent", "reprise");
      for (const auto& [name, value] : headers) head.set(name, value);
    }));
    stream.read_message_max(kMaxMessageBytes);
    stream.write_buffer_bytes(kWriteBytes);
    stream.auto_fragment(false);
    stream.text(true);
    const Address address = AddressIn(request.url);
    stream.async_handshake(response, address.host, address.target, [this](ErrorOf error) { TakeHead(error); });
    pipe.Run();
  }

  void TakeHead(ErrorOf error) {
    if (error && error != websocket::error::upgrade_declined) return Lose(error);
    HttpHeaders headers;
    for (const auto& field : response) {
      headers.emplace_back(LowerCase(std::string(field.name_string())), std::string(field.value()));
    }
    tell_head(error ? static_cast<int>(response.result_int()) : 200, std::move(headers), response.body());
    if (error) return End({});
    Write();
    Read();
  }

  void Write() {
    if (next == messages.size() || result) return;
    stream.async_write(asio::buffer(messages[next]), [this](ErrorOf error, std::size_t) {
      if (error) return Lose(error);
      std::string().swap(messages[next++]);
      Write();
    });
  }

  void Read() {
    stream.async_read(message, [this](ErrorOf error, std::size_t) {
      if (error == websocket::error::closed) return End({});
      if (error) return Lose(error);
      const auto bytes = message.data();
      const bool more = tell_message({static_cast<const char*>(bytes.data()), bytes.size()});
      message.consume(message.size());
      if (more) return Read();
      End({});
      stream.async_close(websocket::close_code::normal, [](ErrorOf) {});
    });
  }

  void Lose(const ErrorOf& error) {
    const bool is_lost = error == asio::error::eof || error == beast::http::error::end_of_stream;
    End(Fail(Reason::kConnectionLost,
             is_lost ? "the connection to the server was lost" : "the server did not keep to the WebSocket protocol",
             error.message()));
  }

  void End(Result<void> how) {
    if (!result) result = std::move(how);
  }

  const OnHead tell_head;
  const OnMessage tell_message;
  asio::io_context context{1};
  Pipe pipe{context};
  websocket::stream<Pipe&> stream{pipe};
  websocket::response_type response;
  beast::flat_buffer message;
  std::vector<std::string> messages;  // to be sent
  std::size_t next = 0;
  std::size_t sent = 0;  // of pipe.outgoing
  std::optional<Result<void>> result;
};

WebSocket::WebSocket(const HttpRequest& request, OnHead on_head, OnMessage on_message)
    : connection_(std::make_unique<Connection>(std::move(on_head), std::move(on_message))) {
  connection_->messages = request.messages;
  connection_->Begin(request);
}

WebSocket::~WebSocket() = default;

void WebSocket::Take(std::string_view bytes) {
  if (connection_->result) return;
  connection_->pipe.incoming += bytes;
  connection_->pipe.Run();
}

void WebSocket::TakeEnd() {
  connection_->pipe.is_over = true;
  connection_->pipe.Run();
}

std::string_view WebSocket::to_send() const {
  return std::string_view(connection_->pipe.outgoing).substr(connection_->sent);
}

// A long message leaves in many pieces, which must not move the rest each time.
void WebSocket::Sent(std::size_t bytes) {
  connection_->sent += bytes;
  if (!to_send().empty()) return;
  std::string().swap(connection_->pipe.outgoing);
  connection_->sent = 0;
}

const std::optional<Result<void>>& WebSocket::ended() const { return connection_->result; }

}  // namespace reprise
