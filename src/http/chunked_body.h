#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace reprise {

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

}  // namespace reprise
