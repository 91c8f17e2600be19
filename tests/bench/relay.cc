#include <fcntl.h>
#include <unistd.h>

#include <map>

#include "bench/loop.h"
#include "bench/programs.h"

namespace reprise::bench {
namespace {

// A client connection and its own connection to the provider, both reused for the next turn. Passes bytes unchanged.
class Pair {
 public:
  Pair(Loop& loop, int client, int provider_port, int log, std::function<void()> on_end)
      : log_(log),
        client_(
            loop, client, [this] { FromClient(); }, nullptr),
        provider_(
            loop, Connect(provider_port), [this] { FromProvider(); }, nullptr),
        on_end_(std::move(on_end)) {}

 private:
  void FromClient() {
    if (!client_.Receive(input_)) return End();
    Request request;
    while (TakeRequest(input_, request)) {
      provider_.Send(
          "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
          std::to_string(request.body.size()) + "\r\n\r\n" + request.body);
    }
  }

  void FromProvider() {
    std::string data;
    if (!provider_.Receive(data)) return End();
    if (log_ >= 0) Keep(data);
    client_.Send(data);
  }

  void Keep(const std::string& data) {
    turn_ += data;
    if (!turn_.ends_with("0\r\n\r\n")) return;
    if (write(log_, turn_.data(), turn_.size()) < 0 || fdatasync(log_) != 0) Die("log");
    turn_.clear();
  }

  void End() {
    const auto end = on_end_;  // a copy, because the call destroys this object
    end();
  }

  const int log_;
  std::string input_, turn_;
  Peer client_, provider_;
  const std::function<void()> on_end_;
};

}  // namespace

int RunRelay(int provider_port, const std::string& log_file) {
  Loop loop;
  int port = 0;
  const int listener = Listen(0, port);
  const int log = log_file.empty() ? -1 : open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (!log_file.empty() && log < 0) Die(log_file);
  std::map<int, std::unique_ptr<Pair>> pairs;
  loop.Watch(listener, EPOLLIN, [&](std::uint32_t) {
    for (int fd = Accept(listener); fd >= 0; fd = Accept(listener)) {
      pairs[fd] = std::make_unique<Pair>(loop, fd, provider_port, log, [&pairs, fd] { pairs.erase(fd); });
    }
  });
  AnnouncePort(port);
  loop.Run();
  return 0;
}

}  // namespace reprise::bench
