#include "base/sse_parser.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// Larger buffers are freed, because a stream lives for minutes and its largest event is rare.
constexpr std::size_t kKeptCapacity = 16 * 1024;

void Reset(std::string& buffer) {
  if (buffer.capacity() > kKeptCapacity) {
    std::string().swap(buffer);
  } else {
    buffer.clear();
  }
}

const char* Find(std::string_view text, char c) {
  return text.empty() ? nullptr : static_cast<const char*>(std::memchr(text.data(), c, text.size()));
}

}  // namespace

void SseParser::Feed(std::string_view bytes) {
  Forget();
  rest_ = bytes;
  line_feed_ = nullptr;
  if (byte_order_mark_ >= 0) SkipByteOrderMark();
}

void SseParser::SkipByteOrderMark() {
  while (!rest_.empty() && byte_order_mark_ < 3) {
    if (rest_.front() != kByteOrderMark[byte_order_mark_]) {
      line_.append(kByteOrderMark, 0, byte_order_mark_);  // it only looked like one
      byte_order_mark_ = -1;
      return;
    }
    ++byte_order_mark_;
    rest_.remove_prefix(1);
  }
  if (byte_order_mark_ == 3) byte_order_mark_ = -1;
}

std::optional<SseEvent> SseParser::Next() {
  Forget();
  while (!overflowed_) {
    const auto line = NextLine();
    if (!line) {
      KeepViews();
      return std::nullopt;
    }
    if (line->empty()) {
      if (auto event = TakeEvent()) return event;
    } else if (!TakeLine(*line)) {
      overflowed_ = true;
    }
  }
  return std::nullopt;
}

std::optional<SseEvent> SseParser::Finish() {
  Forget();
  if (overflowed_) return std::nullopt;
  if (!line_.empty()) {
    const std::string line = std::exchange(line_, {});
    overflowed_ = !TakeLine(line);
    KeepViews();
  }
  return overflowed_ ? std::nullopt : TakeEvent();
}

// Drops the buffers behind the views of the last call.
void SseParser::Forget() {
  if (std::exchange(line_taken_, false)) Reset(line_);
  if (std::exchange(event_taken_, false)) {
    Reset(buffer_);
    type_.clear();
  }
}

// The next complete line without its end; keeps an incomplete one for later.
std::optional<std::string_view> SseParser::NextLine() {
  if (std::exchange(line_taken_, false)) Reset(line_);
  if (rest_.empty()) return std::nullopt;
  if (std::exchange(skip_line_feed_, false) && rest_.front() == '\n') {
    rest_.remove_prefix(1);
    if (rest_.empty()) return std::nullopt;
  }
  const std::size_t end = FindLineEnd();
  if (line_.size() + std::min(end, rest_.size()) > max_event_bytes_) {
    overflowed_ = true;
    return std::nullopt;
  }
  if (end == std::string_view::npos) {
    line_ += rest_;
    rest_ = {};
    return std::nullopt;
  }
  std::string_view line = rest_.substr(0, end);
  if (rest_[end] == '\r') {
    if (end + 1 == rest_.size()) {
      skip_line_feed_ = true;
      rest_.remove_prefix(end + 1);
    } else {
      rest_.remove_prefix(rest_[end + 1] == '\n' ? end + 2 : end + 1);
    }
  } else {
    rest_.remove_prefix(end + 1);
  }
  if (line_.empty()) return line;
  line_ += line;
  line_taken_ = true;
  return line_;
}

// The index in rest_ of the first '\n' or '\r', or npos. The position of the next '\n' is remembered, because a piece
// with only '\r' would otherwise be searched to its end for each line.
std::size_t SseParser::FindLineEnd() {
  const char* const end = rest_.data() + rest_.size();
  if (line_feed_ == nullptr || line_feed_ < rest_.data()) {
    const char* found = Find(rest_, '\n');
    line_feed_ = found != nullptr ? found : end;
  }
  const std::string_view before(rest_.data(), static_cast<std::size_t>(line_feed_ - rest_.data()));
  if (const char* carriage_return = Find(before, '\r')) return static_cast<std::size_t>(carriage_return - rest_.data());
  return line_feed_ == end ? std::string_view::npos : before.size();
}

// False if the event grows beyond the limit. A line without a colon is a field without a value; a comment is a field
// without a name. A line of bare JSON, with which some servers report an error at the end, counts as data; no field
// name begins like that.
bool SseParser::TakeLine(std::string_view line) {
  const std::size_t colon = line.front() == '{' ? 0 : line.find(':');
  const std::string_view name = line.front() == '{' ? "data" : line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (line.front() == '{') value = line;
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (data_.size() + value.size() + 1 > max_event_bytes_) return false;
    AddData(value);
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) id_ = value;
  } else if (name == "retry") {
    if (const auto number = ParseNumber<std::uint32_t>(value)) retry_ = std::chrono::milliseconds(*number);
  }
  return true;
}

void SseParser::AddData(std::string_view value) {
  if (has_data_) {
    KeepViews();
    buffer_ += '\n';
    buffer_ += value;
    data_ = buffer_;
    return;
  }
  has_data_ = true;
  if (line_taken_) {  // the line lies in line_, which the next line needs; swapping avoids a copy
    const auto begin = static_cast<std::size_t>(value.data() - line_.data());
    buffer_.swap(line_);
    buffer_.erase(0, begin);
    line_.clear();
    line_taken_ = false;
    data_ = buffer_;
  } else {
    data_ = value;
  }
}

// Copies the gathered data out of the current piece, which is about to go.
void SseParser::KeepViews() {
  if (has_data_ && data_.data() != buffer_.data()) {
    buffer_ = data_;
    data_ = buffer_;
  }
}

// The gathered event, if it has data; one without is dropped together with its type.
std::optional<SseEvent> SseParser::TakeEvent() {
  if (id_) last_event_id_ = *std::exchange(id_, std::nullopt);
  if (!std::exchange(has_data_, false)) {
    type_.clear();
    return std::nullopt;
  }
  event_taken_ = true;
  return SseEvent{type_, std::exchange(data_, {})};
}

}  // namespace reprise
