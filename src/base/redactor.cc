#include "base/redactor.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace reprise {
namespace {

constexpr std::size_t kShortest = 8;

// In time linear in the text: what is kept is copied once.
std::string Without(const std::string& secret, std::string text) {
  std::size_t at = text.find(secret);
  if (at == std::string::npos) return text;
  std::string kept;
  std::size_t from = 0;
  for (; at != std::string::npos; at = text.find(secret, from)) {
    kept.append(text, from, at - from).append(kRedacted);
    from = at + secret.size();
  }
  return kept.append(text, from);
}

// How many bytes at the end of `text` may be the beginning of `secret`.
std::size_t BegunAtEnd(std::string_view text, std::string_view secret) {
  for (std::size_t size = std::min(text.size(), secret.size() - 1); size > 0; --size) {
    if (text.ends_with(secret.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

Redactor::Redactor(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {
  std::erase_if(secrets_, [](const std::string& secret) { return secret.size() < kShortest; });
  std::sort(secrets_.begin(), secrets_.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  secrets_.erase(std::unique(secrets_.begin(), secrets_.end()), secrets_.end());
}

std::string Redactor::Redacted(std::string text) const {
  for (const std::string& secret : secrets_) text = Without(secret, std::move(text));
  return text;
}

std::function<std::string(std::string_view)> Redactor::ForPieces() const {
  return [this, held = std::make_shared<std::string>()](std::string_view piece) {
    std::string text = Redacted(std::exchange(*held, {}).append(piece));
    std::size_t begun = 0;
    for (const std::string& secret : secrets_) begun = std::max(begun, BegunAtEnd(text, secret));
    *held = text.substr(text.size() - begun);
    text.resize(text.size() - begun);
    return text;
  };
}

}  // namespace reprise
