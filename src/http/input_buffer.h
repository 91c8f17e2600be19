#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace reprise
