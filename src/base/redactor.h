#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// What stands in place of that which nobody is to see.
inline constexpr std::string_view kRedacted = "[redacted]";

// Takes secrets out of texts: each occurrence becomes kRedacted. Immutable, thread-safe.
class Redactor {
 public:
  // Secrets of less than eight characters are left alone: they would be found where they are not meant.
  explicit Redactor(std::vector<std::string> secrets);

  bool empty() const { return secrets_.empty(); }
  std::string Redacted(std::string text) const;
  // For a text that comes in pieces: what can be shown of it so far. What may be the beginning of a secret is held
  // back. Must not outlive this.
  std::function<std::string(std::string_view)> ForPieces() const;

 private:
  std::vector<std::string> secrets_;  // the longest first
};

}  // namespace reprise
