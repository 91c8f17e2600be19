#include "model/provider_response.h"

#include <utility>

#include "model/provider_error.h"

namespace reprise {

void ProviderResponse::EndBatch() {
  if (std::exchange(handed_over_, false)) stream_.OnBatchEnd();
}

void ProviderResponse::AddText(std::string_view text) {
  if (text.empty() || !HasRoomFor(text.size())) return;
  has_text_ = true;
  handed_over_ = true;
  stream_.OnText(text);
}

bool ProviderResponse::AddThinking(std::string_view text) {
  if (text.empty()) return true;
  if (!HasRoomFor(text.size())) return false;
  handed_over_ = true;
  stream_.OnThinking(text);
  return true;
}

void ProviderResponse::Reject(Error error) {
  if (!error_) error_ = std::move(error);
}

bool ProviderResponse::HasRoomFor(std::size_t bytes) {
  if (bytes > source_.max_bytes - bytes_) {
    Reject(TooLargeError(/*of_interaction=*/source_.max_bytes < kMaxResponseBytes));
    return false;
  }
  bytes_ += bytes;
  progressed_ = progressed_ || bytes > 0;
  return true;
}

}  // namespace reprise
