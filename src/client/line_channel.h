#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/json.h"

namespace reprise {

// Reads and writes JSON messages, one a line, on two borrowed descriptors. For one thread, which polls both itself:
// nothing here blocks.
class LineChannel {
 public:
  static constexpr std::size_t kMaxLine = 32 << 20;  // holds a picture in base64
  static constexpr std::size_t kManyUnsent = 4 << 20;

  LineChannel(int in, int out) : in_(in), out_(out) {}

  // The text of a line, or a note that it is longer than kMaxLine.
  struct Line {
    std::string text;
    bool too_long = false;
  };
  // Reads available bytes from `in`. REQUIRES: it is readable.
  void Read();
  // The next complete line that is not blank. When the input has ended, an unfinished last line counts as complete.
  std::optional<Line> Next();
  bool input_ended() const { return input_ended_; }

  // Queues the message; Flush writes as much as `out` accepts without blocking.
  void Send(const Json& message);
  void Flush();
  // Writes all, as long as `out` takes some within a second each time: the client has closed its end, and may read on.
  void FlushLast();
  bool has_unsent() const { return written_ < unsent_.size(); }
  // The reader is slow, so callers that can wait should not send more.
  bool is_crowded() const { return unsent_.size() - written_ > kManyUnsent; }
  // The reader has closed its end.
  bool is_broken() const { return is_broken_; }

  int in() const { return in_; }
  int out() const { return out_; }

 private:
  const int in_, out_;
  std::string received_;
  std::size_t looked_at_ = 0;  // bytes of received_ known to hold no line end
  bool skipping_ = false;      // drops the rest of a line that is too long
  bool input_ended_ = false, is_broken_ = false;
  std::string unsent_;
  std::size_t written_ = 0;  // bytes of unsent_
};

}  // namespace reprise
