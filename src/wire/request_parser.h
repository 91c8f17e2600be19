#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace reprise {

// What has been received and not used yet. Taking from the front costs nothing by the byte that stays, so that many
// small requests in one read are no more work than in many. Not thread-safe.
class InputBuffer {
 public:
  std::string_view view() const { return std::string_view(bytes_).substr(begin_); }
  std::size_t size() const { return bytes_.size() - begin_; }
  bool empty() const { return size() == 0; }

  void Append(std::string_view bytes) {
    // What was used makes room when it is more than what is left: each byte is moved once at most.
    if (begin_ > size()) {
      bytes_.erase(0, begin_);
      begin_ = 0;
    }
    bytes_.append(bytes);
  }
  void Consume(std::size_t count) {
    begin_ += count;
    if (begin_ < bytes_.size()) return;
    bytes_.clear();
    begin_ = 0;
  }
  void Clear() {
    bytes_ = {};
    begin_ = 0;
  }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
};

// Reads a chunked body (RFC 9112, section 7.1) more strictly than a general parser does: a size is hexadecimal digits
// and nothing else, every line ends with CRLF, and there are neither extensions nor trailers. Nobody who speaks to this
// server needs those, and they are where two parsers along the way disagree about the end of a request. Costs the same
// for each byte however they arrive. Not thread-safe.
class ChunkedBody {
 public:
  struct Fed {
    std::size_t used = 0;  // the rest belongs to the next request
    std::optional<Reply> refusal = std::nullopt;
  };
  // Appends what the chunks hold to `body`, which may have `most` bytes: a chunk that would not fit is refused (413)
  // before its bytes have come.
  Fed Take(std::string_view bytes, std::string& body, std::size_t most);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kSizeEnd, kData, kDataCr, kDataLf, kLastCr, kLastLf, kDone };
  std::optional<Reply> TakeByte(char byte, std::size_t taken, std::size_t most);

  State state_ = State::kSize;
  int digits_ = 0;          // of the size that is being read
  std::uint64_t size_ = 0;  // of the chunk; what is still to come of it
};

struct HttpLimits {
  std::size_t head_bytes = 16 * 1024;  // request line and headers
  std::size_t headers = 100;
  std::size_t target_bytes = 2 * 1024;
  std::size_t body_bytes = 1024 * 1024;
  std::size_t file_bytes = 10 * 1024 * 1024;          // the body of an upload, its framing apart
  std::size_t chat_bytes = 128 * 1024 * 1024;         // a whole chat that comes in
  std::size_t conversation_bytes = 32 * 1024 * 1024;  // all messages of a foreign client's chat, with their images
  std::size_t uploads_bytes = 64 * 1024 * 1024;       // of all uploads and chats that are under way
};

// How far the head has arrived. Looks at raw bytes only, before any parser does, because what two parsers read
// differently is what request smuggling is made of: bare CR or LF, NUL, folded lines and blanks before a colon are
// refused.
struct HeadScan {
  std::optional<std::size_t> end;  // the head is bytes [0, end)
  std::optional<Reply> refusal;
};
// `known` bytes were scanned before without a result.
HeadScan ScanHead(std::string_view bytes, std::size_t known, const HttpLimits& limits);

// One request: its head read by Boost.Beast's parser, its body counted while it arrives. Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();

  // Takes a head that ScanHead found complete. A refusal if it is malformed or its framing is ambiguous.
  std::optional<Reply> TakeHead(std::string_view head);
  // From now on the body may have this many bytes instead of HttpLimits::body_bytes.
  void LimitBody(std::size_t bytes);
  // Takes bytes of the body; says how many were used (the rest belongs to the next request). A refusal ends the
  // request.
  struct Fed {
    std::size_t used = 0;
    std::optional<Reply> refusal;
  };
  Fed TakeBody(std::string_view bytes);

  const RequestHead& head() const;
  bool has_body() const;  // a body follows the head
  std::optional<std::uint64_t> content_length() const;
  bool done() const;
  bool keep_alive() const;

  RequestHead ReleaseHead();
  std::string ReleaseBody();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
