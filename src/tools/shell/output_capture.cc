#include "tools/shell/output_capture.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace reprise {

OutputCapture::OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output)
    : max_head_(max_bytes / 2),
      max_tail_(max_bytes - max_bytes / 2),
      max_streamed_(max_bytes),
      on_output_(std::move(on_output)) {}

void OutputCapture::Add(std::string_view bytes) {
  total_ += bytes.size();
  if (on_output_) Stream(bytes);
  const std::size_t for_head = std::min(bytes.size(), max_head_ - head_.size());
  head_ += bytes.substr(0, for_head);
  tail_ += bytes.substr(for_head);
  // Cut seldom, so that each byte is moved once on average.
  if (tail_.size() > 2 * max_tail_) tail_.erase(0, tail_.size() - max_tail_);
}

void OutputCapture::Stream(std::string_view bytes) {
  const std::size_t room = max_streamed_ - streamed_;
  if (room == 0) return;
  streamed_ += std::min(room, bytes.size());
  held_back_ += bytes.substr(0, room);
  const std::size_t whole = held_back_.size() - IncompleteUtf8Tail(held_back_);
  if (whole > 0) on_output_(ToValidUtf8(std::string_view(held_back_).substr(0, whole)));
  held_back_.erase(0, whole);
}

std::string OutputCapture::Finish() {
  // What was held back in mid-stream is cut there; at the true end it is a broken character and shown as one.
  if (!held_back_.empty() && streamed_ == total_) on_output_(ToValidUtf8(held_back_));
  held_back_.clear();
  if (tail_.size() > max_tail_) tail_.erase(0, tail_.size() - max_tail_);
  const std::uint64_t cut = total_ - head_.size() - tail_.size();
  if (cut == 0) return ToValidUtf8(head_ + tail_);
  const std::string_view head = std::string_view(head_).substr(0, head_.size() - IncompleteUtf8Tail(head_));
  return ToValidUtf8(head) + "\n(... " + std::to_string(cut) + " bytes cut ...)\n" + ToValidUtf8(FromUtf8Start(tail_));
}

}  // namespace reprise
