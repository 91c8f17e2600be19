#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// One event of a stream. The views are valid until the parser's next call.
struct SseEvent {
  std::string_view type;  // empty if the stream gave none ("message")
  std::string_view data;
};

// Reads server-sent events (WHATWG HTML, section 9.2.6) from bytes in any pieces. It passes bytes on unchanged; invalid
// UTF-8 is the reader's problem. Not thread-safe.
//
//   parser.Feed(bytes);
//   while (auto event = parser.Next()) Use(event->data);
//
// An event within one piece is not copied.
class SseParser {
 public:
  static constexpr std::size_t kMaxEventBytes = 4u << 20;
  explicit SseParser(std::size_t max_event_bytes = kMaxEventBytes) : max_event_bytes_(max_event_bytes) {}

  // Takes the next piece. It must stay where it is until Next has returned nullopt.
  // REQUIRES: Next has returned nullopt since the last Feed.
  void Feed(std::string_view bytes);
  // The next complete event; nullopt if more bytes are needed, and always after overflowed().
  std::optional<SseEvent> Next();
  // The last event if the stream ended without its blank line. The standard drops it, but some servers end like this,
  // so a reader that can tell a complete event from a torn one may ask for it. REQUIRES: Next has returned nullopt.
  std::optional<SseEvent> Finish();
  // For reconnecting: the Last-Event-ID to send (the id of the last event that had one) and the delay that the server
  // asked for. As of the last event that Next returned.
  const std::string& last_event_id() const { return last_event_id_; }
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }
  // True after a line or an event longer than the limit.
  bool overflowed() const { return overflowed_; }

 private:
  void SkipByteOrderMark();
  std::optional<std::string_view> NextLine();
  std::size_t FindLineEnd();
  bool TakeLine(std::string_view line);
  void AddData(std::string_view value);
  std::optional<SseEvent> TakeEvent();
  void KeepViews();
  void Forget();

  const std::size_t max_event_bytes_;
  std::string_view rest_;            // not parsed by Next yet
  const char* line_feed_ = nullptr;  // the next '\n' in or after rest_, if already searched for
  std::string line_;                 // the beginning of a line that an earlier piece cut off
  bool line_taken_ = false;          // line_ was handed out and must be dropped
  bool skip_line_feed_ = false;      // the last line ended in '\r', whose '\n' may follow in the next piece
  int byte_order_mark_ = 0;          // how many bytes of it have matched; -1 after the start

  // The event being gathered. `data_` points into the current piece, or at `buffer_` when it could not stay there.
  bool has_data_ = false;
  std::string_view data_;
  std::string buffer_;
  std::string type_;
  std::optional<std::string> id_;
  bool event_taken_ = false;
  bool overflowed_ = false;

  std::string last_event_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace reprise
