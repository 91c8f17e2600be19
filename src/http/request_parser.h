#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace reprise {

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
