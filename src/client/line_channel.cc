#include "client/line_channel.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace reprise {

void LineChannel::Read() {
  std::array<char, 65536> bytes;
  const ssize_t size = ::read(in_, bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    input_ended_ = true;
  } else {
    received_.append(bytes.data(), static_cast<std::size_t>(size));
  }
}

std::optional<LineChannel::Line> LineChannel::Next() {
  for (;;) {
    const std::size_t end = received_.find('\n', looked_at_);
    if (end == std::string::npos && !(input_ended_ && !received_.empty())) {
      looked_at_ = received_.size();
      if (received_.size() <= kMaxLine) return std::nullopt;
      const bool is_first = !std::exchange(skipping_, true);
      received_.clear();
      looked_at_ = 0;
      if (!is_first) return std::nullopt;
      return Line{.text = {}, .too_long = true};
    }
    Line line{.text = received_.substr(0, end)};
    received_.erase(0, end == std::string::npos ? end : end + 1);
    looked_at_ = 0;
    if (std::exchange(skipping_, false)) continue;  // the end of a line reported as too long
    if (line.text.size() > kMaxLine) return Line{.text = {}, .too_long = true};
    if (line.text.find_first_not_of(" \t\r") != std::string::npos) return line;
  }
}

void LineChannel::Send(const Json& message) {
  if (is_broken_) return;
  unsent_ += DumpJson(message);
  unsent_ += '\n';
}

// A pipe that poll reports as writable takes PIPE_BUF bytes at once; more could block.
void LineChannel::Flush() {
  while (has_unsent() && !is_broken_) {
    pollfd out{out_, POLLOUT, 0};
    if (::poll(&out, 1, 0) <= 0 || out.revents == 0) break;
    const std::size_t size = std::min<std::size_t>(unsent_.size() - written_, PIPE_BUF);
    const ssize_t written = ::write(out_, unsent_.data() + written_, size);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) {
      is_broken_ = true;
      break;
    }
    written_ += static_cast<std::size_t>(written);
  }
  if (is_broken_ || !has_unsent()) {
    unsent_.clear();
    written_ = 0;
  } else if (written_ > kManyUnsent) {
    unsent_.erase(0, written_);
    written_ = 0;
  }
}

void LineChannel::FlushLast() {
  constexpr int kMostWaitMs = 1000;
  pollfd out{out_, POLLOUT, 0};
  while (has_unsent() && ::poll(&out, 1, kMostWaitMs) > 0) Flush();
}

}  // namespace reprise
