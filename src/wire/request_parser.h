#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace reprise {

// Bytes received and not used yet. Consume moves no bytes, so many small requests in one read cost no more than in many
// reads. Not thread-safe.
class InputBuffer {
 public:
  std::string_view view() const { return std::string_view(bytes_).substr(begin_); }
  std::size_t size() const { return bytes_.size() - begin_; }
  bool empty() const { return size() == 0; }

  void Append(std::string_view bytes) {
    // Drops the used bytes once they outnumber the rest, so each byte is moved once at most.
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

// Reads a chunked body (RFC 9112, section 7.1) more strictly than usual: a size has hexadecimal digits only, every line
// ends with CRLF, and there are no extensions or trailers. No client of this server needs those, and two parsers on the
// way may disagree about them and so about the end of a request. Each byte costs the same, however the bytes are split.
// Not thread-safe.
class ChunkedBody {
 public:
  struct Fed {
    std::size_t used = 0;  // the rest belongs to the next request
    std::optional<Reply> refusal = std::nullopt;
  };
  // Appends the chunks' content to `body`, which may grow to `most` bytes. Refuses a chunk that would not fit (413)
  // before its bytes arrive.
  Fed Take(std::string_view bytes, std::string& body, std::size_t most);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kSizeEnd, kData, kDataCr, kDataLf, kLastCr, kLastLf, kDone };
  std::optional<Reply> TakeByte(char byte, std::size_t taken, std::size_t most);

  State state_ = State::kSize;
  int digits_ = 0;          // of the size being read
  std::uint64_t size_ = 0;  // of the chunk, later the bytes of it that are missing
};

struct HttpLimits {
  std::size_t head_bytes = 16 * 1024;  // request line and headers
  std::size_t headers = 100;
  std::size_t target_bytes = 2 * 1024;
  std::size_t body_bytes = 1024 * 1024;
  std::size_t file_bytes = 10 * 1024 * 1024;          // an uploaded file, without its framing
  std::size_t chat_bytes = 128 * 1024 * 1024;         // a whole chat to import
  std::size_t conversation_bytes = 32 * 1024 * 1024;  // the messages that a foreign client sends, with their images
  std::size_t uploads_bytes = 64 * 1024 * 1024;       // of all large bodies in memory together
};

// Whether the head is complete. ScanHead looks at the raw bytes before any parser does and refuses what two parsers may
// read differently, because request smuggling relies on that: bare CR or LF, NUL and folded lines.
struct HeadScan {
  std::optional<std::size_t> end;  // the head is bytes [0, end)
  std::optional<Reply> refusal;
};
// The first `known` bytes were scanned before, without a result.
HeadScan ScanHead(std::string_view bytes, std::size_t known, const HttpLimits& limits);

// Parses one request: Boost.Beast's parser reads the head, and the body is counted as it arrives. Not thread-safe.
class RequestParser {
 public:
  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();

  // Takes a head that ScanHead found complete. Returns a refusal if it is malformed or its framing is ambiguous.
  std::optional<Reply> TakeHead(std::string_view head);
  // Sets the body's limit in place of HttpLimits::body_bytes.
  void LimitBody(std::size_t bytes);
  // Takes bytes of the body and returns how many it used; the rest belongs to the next request. A refusal ends the
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
