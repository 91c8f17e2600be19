// The load client: N streams at once, each of several turns. A chunk's latency is the time from its writing by the
// provider to its reading here.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/loop.h"
#include "bench/programs.h"

namespace reprise::bench {
namespace {

// Decodes the chunked transfer coding and passes on whole event blocks.
class EventReader {
 public:
  // False once the last chunk has been read.
  template <typename F>
  bool Feed(std::string_view data, const F& on_block) {
    while (!data.empty()) {
      if (left_ > 0) {
        const std::size_t size = std::min(left_, data.size());
        text_ += data.substr(0, size);
        data.remove_prefix(size);
        left_ -= size;
        if (left_ == 0) skip_ = 2;
      } else if (skip_ > 0) {
        const std::size_t size = std::min(skip_, data.size());
        data.remove_prefix(size);
        skip_ -= size;
        if (skip_ == 0 && last_) return Blocks(on_block), false;
      } else if (!ReadLine(data)) {
        break;
      }
    }
    Blocks(on_block);
    return true;
  }

  int status() const { return status_; }
  void Reset() { *this = EventReader(); }

 private:
  // Reads a head line or a chunk's size.
  bool ReadLine(std::string_view& data) {
    const std::size_t end = data.find('\n');
    line_ += data.substr(0, end == std::string_view::npos ? end : end + 1);
    if (end == std::string_view::npos) return false;
    data.remove_prefix(end + 1);
    if (in_head_) {
      if (status_ == 0) status_ = std::atoi(line_.c_str() + 9);
      if (line_ == "\r\n") in_head_ = false;
    } else {
      left_ = std::strtoul(line_.c_str(), nullptr, 16);
      if (left_ == 0) last_ = true, skip_ = 2;
    }
    line_.clear();
    return true;
  }

  template <typename F>
  void Blocks(const F& on_block) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text_.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
      on_block(std::string_view(text_).substr(begin, end - begin));
    }
    text_.erase(0, begin);
  }

  std::string line_, text_;
  std::size_t left_ = 0, skip_ = 0;
  bool in_head_ = true, last_ = false;
  int status_ = 0;
};

struct Totals {
  std::vector<std::int64_t> latencies;
  std::vector<std::int64_t> durations;  // of turns
  long errors = 0, turns = 0;
};

std::string PostRequest(const std::string& path, const std::string& body, const std::string& header = {}) {
  return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n" + header +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string WithPort(std::string request, int port) {
  return request.replace(request.find("PORT"), 4, std::to_string(port));
}

std::string StartBody(const std::string& directive) { return "{\"user_message\":\"[[bench " + directive + "]]\"}"; }

std::string OpenAiBody(const std::string& directive) {
  return R"({"model":"reprise","stream":true,"messages":[{"role":"user","content":"[[bench )" + directive + R"(]]"}]})";
}

// True for our deltas, chunks of the OpenAI door, and the provider's chunks from the relay, but not for the answer,
// which repeats the text.
bool CarriesNewText(std::string_view block) {
  return block.find("event: text_delta") != std::string_view::npos || block.starts_with("data: {\"id\":\"chatcmpl_") ||
         block.starts_with("data: {\"id\":\"b\"");
}

class Streamer {
 public:
  Streamer(Loop& loop, const Load& load, int number, Totals& totals, std::function<void()> on_done)
      : load_(load),
        number_(number),
        totals_(totals),
        peer_(
            loop, Connect(load.port), [this] { OnReadable(); }, nullptr),
        on_done_(std::move(on_done)),
        expected_(std::strtol(load.directive.c_str() + load.directive.find("n=") + 2, nullptr, 10)) {
    Next();
  }

 private:
  void Next() {
    std::string chat = load_.prefix + std::to_string(number_);
    if (load_.fresh) chat += "-" + std::to_string(turn_);
    reader_.Reset();
    received_ = 0;
    started_ = Now();
    peer_.Send(WithPort(
        load_.openai ? PostRequest("/v1/chat/completions", OpenAiBody(load_.directive), "X-Chat-Id: " + chat + "\r\n")
                     : PostRequest("/chats/" + chat + "/interactions", StartBody(load_.directive)),
        load_.port));
  }

  void OnReadable() {
    std::string data;
    if (!peer_.Receive(data)) return Finish(/*lost=*/true);
    const std::int64_t now = Now();
    if (reader_.Feed(data, [&](std::string_view block) { OnBlock(block, now); })) return;
    totals_.durations.push_back(Now() - started_);
    ++totals_.turns;
    if (reader_.status() != 200 || received_ != expected_) ++totals_.errors;
    if (++turn_ == load_.turns) return Finish(/*lost=*/false);
    Next();
  }

  void OnBlock(std::string_view block, std::int64_t now) {
    if (!CarriesNewText(block)) return;
    for (std::size_t at = block.find('~'); at != std::string_view::npos; at = block.find('~', at + 1)) {
      const std::size_t end = block.find('~', at + 1);
      if (end == std::string_view::npos) break;
      totals_.latencies.push_back(now - std::strtoll(block.data() + at + 1, nullptr, 10));
      ++received_;
      at = end;
    }
  }

  void Finish(bool lost) {
    if (finished_) return;
    finished_ = true;
    if (lost) ++totals_.errors;
    on_done_();
  }

  const Load& load_;
  const int number_;
  Totals& totals_;
  EventReader reader_;
  int turn_ = 0;
  long received_ = 0;
  bool finished_ = false;
  std::int64_t started_ = 0;
  Peer peer_;
  const std::function<void()> on_done_;
  const long expected_;
};

double Quantile(std::vector<std::int64_t>& values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return static_cast<double>(values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))]) / 1000;
}

// A connection that makes one request after the other and waits for each.
class Caller {
 public:
  explicit Caller(int port)
      : port_(port),
        peer_(
            loop_, Connect(port), [this] { OnReadable(); }, nullptr) {}
  void Send(const std::string& path, const std::string& body) {
    reader_.Reset();
    seen_.clear();
    peer_.Send(WithPort(PostRequest(path, body), port_));
  }
  // Reads until the raw bytes contain `text`. Returns the time at which it was read.
  std::int64_t Until(const std::string& text) {
    while (seen_.find(text) == std::string::npos) loop_.Run();
    return read_at_;
  }
  const std::string& seen() const { return seen_; }

 private:
  void OnReadable() {
    if (!peer_.Receive(seen_)) Die("connection lost");
    read_at_ = Now();
    loop_.Stop();
  }

  const int port_;
  Loop loop_;
  EventReader reader_;
  std::string seen_;
  std::int64_t read_at_ = 0;
  Peer peer_;
};

}  // namespace

int RunLoad(const Load& load) {
  Loop loop;
  Totals totals;
  int open = load.streams;
  std::vector<std::unique_ptr<Streamer>> streamers;
  const std::int64_t began = Now();
  for (int i = 0; i < load.streams; ++i) {
    streamers.push_back(std::make_unique<Streamer>(loop, load, i, totals, [&] {
      if (--open == 0) loop.Stop();
    }));
  }
  loop.Run();
  const double seconds = static_cast<double>(Now() - began) / 1e9;
  const auto chunks = static_cast<double>(totals.latencies.size());
  std::printf(
      "{\"chunks\":%.0f,\"turns\":%ld,\"errors\":%ld,\"seconds\":%.6f,\"chunks_per_s\":%.1f,\"turns_per_s\":%.2f,"
      "\"latency_us\":{\"p50\":%.1f,\"p99\":%.1f},\"turn_us\":{\"p50\":%.1f,\"max\":%.1f}}\n",
      chunks, totals.turns, totals.errors, seconds, chunks / seconds, static_cast<double>(totals.turns) / seconds,
      Quantile(totals.latencies, 0.5), Quantile(totals.latencies, 0.99), Quantile(totals.durations, 0.5),
      Quantile(totals.durations, 1));
  return 0;
}

int RunApprovals(const Load& load, int answer_port) {
  std::vector<std::int64_t> times;
  Caller stream(load.port), answer(answer_port);
  for (int turn = 0; turn < load.turns; ++turn) {
    stream.Send("/chats/" + load.prefix + std::to_string(turn) + "/interactions", StartBody("n=1 tool=1"));
    stream.Until("event: approval_required");
    stream.Until("\"approval_id\":\"approval_");
    const std::string& seen = stream.seen();
    const std::size_t at = seen.find("approval_", seen.find("\"approval_id\"") + 13);
    const std::string id = seen.substr(at, seen.find('"', at) - at);
    const std::int64_t began = Now();
    answer.Send("/approvals/" + id, "{\"approved\":true}");
    answer.Until("\r\n\r\n");
    if (answer.seen().find("HTTP/1.1 200 ") == std::string::npos) Die(answer.seen());
    answer.Until("processed");
    times.push_back(stream.Until("event: approved") - began);
    stream.Until("0\r\n\r\n");
  }
  std::printf("{\"approvals\":%zu,\"approve_us\":{\"p50\":%.1f,\"p99\":%.1f}}\n", times.size(), Quantile(times, 0.5),
              Quantile(times, 0.99));
  return 0;
}

}  // namespace reprise::bench
