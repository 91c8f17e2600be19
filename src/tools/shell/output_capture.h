#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace reprise {

// Gathers what a command prints: the beginning and the end of it, and how much is missing between. Passes the first
// part on while it comes in, in whole characters.
class OutputCapture {
 public:
  // `on_output` may be empty. It gets at most `max_bytes` in all.
  OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output);

  void Add(std::string_view bytes);
  // No more will come. Valid UTF-8.
  std::string Finish();

 private:
  void Stream(std::string_view bytes);

  const std::size_t max_head_, max_tail_, max_streamed_;
  const std::function<void(std::string_view)> on_output_;
  std::string head_, tail_;
  std::uint64_t total_ = 0;
  std::size_t streamed_ = 0;
  std::string held_back_;  // the beginning of a character
};

}  // namespace reprise
