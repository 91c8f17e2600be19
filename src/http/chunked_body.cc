#include "http/chunked_body.h"

#include <algorithm>

#include "base/ascii.h"
#include "http/error_response.h"

namespace reprise {
namespace {

constexpr int kMaxDigits = 16;  // of 64 bits

Reply Malformed() {
  return ProtocolErrorReply(400, "bad_request", "malformed chunked body; extensions and trailers are not accepted");
}

}  // namespace

ChunkedBody::Fed ChunkedBody::Take(std::string_view bytes, std::string& body, std::size_t most) {
  Fed fed;
  while (fed.used < bytes.size() && !done()) {
    if (state_ == State::kData) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(size_, bytes.size() - fed.used));
      body.append(bytes.substr(fed.used, part));
      fed.used += part;
      size_ -= part;
      if (size_ == 0) state_ = State::kDataCr;
    } else {
      fed.refusal = TakeByte(bytes[fed.used++], body.size(), most);
      if (fed.refusal) return fed;
    }
  }
  return fed;
}

// A byte of the framing.
std::optional<Reply> ChunkedBody::TakeByte(char byte, std::size_t taken, std::size_t most) {
  const auto expect = [&](char wanted, State next) -> std::optional<Reply> {
    if (byte != wanted) return Malformed();
    state_ = next;
    return std::nullopt;
  };
  switch (state_) {
    case State::kSize:
      if (const int digit = HexDigit(byte); digit >= 0 && digits_ < kMaxDigits) {
        size_ = size_ * 16 + static_cast<unsigned>(digit);
        ++digits_;
        return std::nullopt;
      }
      if (digits_ == 0) return Malformed();
      return expect('\r', State::kSizeEnd);
    case State::kSizeEnd:
      if (size_ > most - taken) return BodyTooLarge(most);
      digits_ = 0;
      return expect('\n', size_ == 0 ? State::kLastCr : State::kData);
    case State::kDataCr:
      return expect('\r', State::kDataLf);
    case State::kDataLf:
      return expect('\n', State::kSize);
    case State::kLastCr:
      return expect('\r', State::kLastLf);
    case State::kLastLf:
      return expect('\n', State::kDone);
    case State::kData:
    case State::kDone:
      break;  // Take deals with them
  }
  return std::nullopt;
}

}  // namespace reprise
