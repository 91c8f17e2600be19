// The scripted provider. The last user message describes the answer: "[[bench n=500 us=20000 pad=32 batch=1 lines=0
// tool=0 changes=-1]]" means 500 chunks, one every 20 ms, 32 bytes of padding, sent one by one; us=0: as fast as the
// reader takes them; batch=B: B chunks in one write; lines=1: each ends a line; tool=1: first a call of write_file;
// changes=C: first a command that changes C files. Each chunk contains "~<time>~", the time of its writing.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "bench/loop.h"
#include "bench/programs.h"

namespace reprise::bench {
namespace {

struct Script {
  long n = 1, us = 0, pad = 32, batch = 1, lines = 0, tool = 0, changes = -1;
};

long Number(std::string_view text, std::string_view key, long otherwise) {
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? otherwise : std::strtol(text.data() + at + key.size(), nullptr, 10);
}

Script ReadScript(const std::string& body) {
  const std::size_t at = body.rfind("[[bench ");
  if (at == std::string::npos) return {};
  const std::string text = body.substr(at, body.find("]]", at) - at);
  Script script{.n = Number(text, " n=", 1),
                .us = Number(text, " us=", 0),
                .pad = Number(text, " pad=", 32),
                .batch = Number(text, " batch=", 1),
                .lines = Number(text, " lines=", 0),
                .tool = Number(text, " tool=", 0),
                .changes = Number(text, " changes=", -1)};
  // The second round of a turn: the tool's result follows the message.
  if (body.find("\"tool_call_id\"", at) != std::string::npos) script.tool = 0, script.changes = -1;
  return script;
}

std::string Chunk(const std::string& data) {
  char size[24];
  std::snprintf(size, sizeof(size), "%zx\r\n", data.size());
  return size + data + "\r\n";
}

std::string Delta(const std::string& members, const char* finish) {
  return Chunk(
      "data: "
      "{\"id\":\"b\",\"object\":\"chat.completion.chunk\",\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{" +
      members + "},\"finish_reason\":" + finish + "}]}\n\n");
}

std::string Call(const std::string& name, const std::string& arguments) {
  return Delta("\"tool_calls\":[{\"index\":0,\"id\":\"call_b\",\"type\":\"function\",\"function\":{\"name\":\"" + name +
                   "\",\"arguments\":\"" + arguments + "\"}}]",
               "null");
}

std::string CommandThatChanges(long files) {
  std::string command = "date +%s%N";
  if (files > 0) command += " | tee";
  for (long i = 0; i < files; ++i) command += " d" + std::to_string(i) + "/f0";
  return "{\\\"command\\\":\\\"" + command + "\\\"}";
}

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

class Conversation {
 public:
  Conversation(Loop& loop, int fd, std::function<void()> on_end)
      : loop_(loop),
        peer_(
            loop, fd, [this] { OnReadable(); }, [this] { Continue(); }),
        on_end_(std::move(on_end)) {}
  ~Conversation() { *alive_ = false; }

 private:
  void OnReadable() {
    if (!peer_.Receive(input_)) {
      const auto end = on_end_;  // a copy, because the call destroys this object
      return end();
    }
    Request request;
    while (!writing_ && TakeRequest(input_, request)) Start(request);
  }

  void Start(const Request& request) {
    script_ = ReadScript(request.body);
    sent_ = 0;
    writing_ = true;
    padding_ = std::string(static_cast<std::size_t>(script_.pad), 'x') + (script_.lines != 0 ? "\\n" : "");
    started_ = Now();
    peer_.Send(kHead);
    if (script_.tool != 0) {
      peer_.Send(Call("write_file", "{\\\"path\\\":\\\"bench.txt\\\",\\\"content\\\":\\\"x\\\"}"));
    } else if (script_.changes >= 0) {
      peer_.Send(Call("run_shell", CommandThatChanges(script_.changes)));
    } else {
      return Continue();
    }
    End("\"tool_calls\"");
  }

  std::string NextChunk() { return Delta("\"content\":\"~" + std::to_string(Now()) + "~" + padding_ + "\"", "null"); }

  void Continue() {
    if (!writing_) return;
    if (script_.us > 0) return Pace();
    while (sent_ < script_.n && !peer_.backed_up()) {
      std::string batch;
      for (long i = 0; i < script_.batch && sent_ < script_.n; ++i, ++sent_) batch += NextChunk();
      peer_.Send(batch);
    }
    if (sent_ == script_.n) End("\"stop\"");
  }

  void Pace() {
    // The schedule is fixed at the start, so a slow reader does not stretch it.
    while (sent_ < script_.n && started_ + sent_ * script_.us * 1000 <= Now()) {
      peer_.Send(NextChunk());
      ++sent_;
    }
    if (sent_ == script_.n) return End("\"stop\"");
    if (scheduled_) return;
    scheduled_ = true;
    loop_.At(started_ + sent_ * script_.us * 1000, [this, alive = alive_] {
      if (!*alive) return;
      scheduled_ = false;
      if (writing_) Pace();
    });
  }

  void End(const char* finish) {
    writing_ = false;
    peer_.Send(Delta("", finish) +
               Chunk("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n") +
               Chunk("data: [DONE]\n\n") + "0\r\n\r\n");
  }

  Loop& loop_;
  Script script_;
  std::string input_, padding_;
  long sent_ = 0;
  std::int64_t started_ = 0;
  bool writing_ = false, scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // a timer may outlive its connection
  Peer peer_;
  std::function<void()> on_end_;
};

}  // namespace

int RunProvider() {
  Loop loop;
  int port = 0;
  const int listener = Listen(0, port);
  std::map<int, std::unique_ptr<Conversation>> conversations;
  loop.Watch(listener, EPOLLIN, [&](std::uint32_t) {
    for (int fd = Accept(listener); fd >= 0; fd = Accept(listener)) {
      conversations[fd] = std::make_unique<Conversation>(loop, fd, [&conversations, fd] { conversations.erase(fd); });
    }
  });
  AnnouncePort(port);
  loop.Run();
  return 0;
}

}  // namespace reprise::bench
