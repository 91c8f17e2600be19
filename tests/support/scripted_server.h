#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::test {

// A gate that a test opens when another thread may continue.
class Gate {
 public:
  void Open();
  // False if `stop` came first.
  bool Wait(std::stop_token stop = {});

 private:
  std::mutex mutex_;
  std::condition_variable_any opened_;
  bool open_ = false;
};

struct ReceivedRequest {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  // Empty if there is none.
  std::string Header(std::string_view lower_case_name) const;
};

// One connection, from the server's side. Every call ends early when the server is destroyed.
class ScriptedConnection {
 public:
  ScriptedConnection(int fd, std::size_t number, std::stop_token stop)
      : fd_(fd), number_(number), stop_(std::move(stop)) {}

  // Counts the server's connections from 0.
  std::size_t number() const { return number_; }
  std::stop_token stop() const { return stop_; }

  // The next request with its whole body (Content-Length); nullopt if the client has closed.
  std::optional<ReceivedRequest> ReadRequest();
  // Sends raw bytes, in one segment if they fit into one. False if the client is gone.
  bool Send(std::string_view bytes);
  // Sends the head of a chunked response, e.g. SendHead("200 OK", "text/event-stream").
  bool SendHead(std::string_view status, std::string_view content_type);
  bool SendChunk(std::string_view bytes);
  bool SendLastChunk() { return Send("0\r\n\r\n"); }
  // Sends a whole response with Content-Length.
  bool SendResponse(std::string_view status, std::string_view content_type, std::string_view body);
  // Closes our side: no more bytes will come from us.
  void FinishSending();
  // Breaks the connection with a TCP reset.
  void Reset();
  // Blocks until the client has closed or reset its side.
  void WaitForClose();

 private:
  bool ReadMore();

  const int fd_;
  const std::size_t number_;
  const std::stop_token stop_;
  std::string received_;
};

// A scripted server on a free port of 127.0.0.1: `script` is called once per connection, on its own thread, and the
// connection is closed when it returns.
class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedConnection&)>;
  explicit ScriptedServer(Script script);
  ~ScriptedServer();

  int port() const { return port_; }
  // "http://127.0.0.1:PORT" followed by the path.
  std::string Url(std::string_view path = "/") const;
  // The number of connections accepted so far.
  std::size_t connections() const;

 private:
  struct Peer {
    int fd;
    std::jthread thread;
  };
  void Accept(std::stop_token stop);

  const Script script_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;  // guarded by mutex_
  std::jthread acceptor_;
};

}  // namespace reprise::test
