#include "model/provider_response.h"

#include <utility>

#include "model/provider_error.h"

namespace reprise {

void ProviderResponse::EndBatch() {
  if (std::exchange(handed_over_, false)) stream_.OnBatchEnd();
}

void ProviderResponse::AddText(std::string_view text) {
  if (text.empty() || !HasRoomFor(text.size())) return;
  text_bytes_ += text.size();
  has_text_ = true;
  handed_over_ = true;
  stream_.OnText(text);
}

void ProviderResponse::AddThinking(std::string_view text) {
  if (text.empty() || !HasRoomFor(text.size())) return;
  text_bytes_ += text.size();
  handed_over_ = true;
  stream_.OnThinking(text);
}

void ProviderResponse::Reject(Error error) {
  if (!error_) error_ = std::move(error);
}

bool ProviderResponse::HasRoomFor(std::size_t bytes) {
  if (text_bytes_ + bytes <= kMaxTextBytes) return true;
  Reject(ProtocolError("The model provider's answer is too long"));
  return false;
}

}  // namespace reprise
