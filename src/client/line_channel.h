#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace reprise {

// Messages of JSON, one a line, from and to two descriptors that belong to somebody else. For one thread, which waits
// for both itself: nothing here blocks.
class LineChannel {
 public:
  static constexpr std::size_t kMaxLine = 32 << 20;  // pictures come in base64
  static constexpr std::size_t kManyUnsent = 4 << 20;

  LineChannel(int in, int out) : in_(in), out_(out) {}

  // What came of a line: its text, or that it is longer than kMaxLine.
  struct Line {
    std::string text;
    bool too_long = false;
  };
  // Reads what `in` has. REQUIRES: it is readable.
  void Read();
  // The next whole line that is not blank; what stands behind the last line end counts when the input has ended.
  std::optional<Line> Next();
  bool input_ended() const { return input_ended_; }

  // Written when `out` takes it.
  void Send(const Json& message);
  void Flush();
  bool has_unsent() const { return written_ < unsent_.size(); }
  // The reader is slow: whoever can should not add to what waits.
  bool is_crowded() const { return unsent_.size() - written_ > kManyUnsent; }
  // Nobody reads any more.
  bool is_broken() const { return is_broken_; }

  int in() const { return in_; }
  int out() const { return out_; }

 private:
  const int in_, out_;
  std::string received_;
  std::size_t looked_at_ = 0;  // of received_: has no line end
  bool skipping_ = false;      // the rest of a line that is too long
  bool input_ended_ = false, is_broken_ = false;
  std::string unsent_;
  std::size_t written_ = 0;  // of unsent_
};

}  // namespace reprise
