#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <random>
#include <vector>

namespace reprise {

void FillRandom(void* data, std::size_t size) {
  for (std::size_t have = 0; have < size;) {
    const ssize_t n = ::getrandom(static_cast<unsigned char*>(data) + have, size - have, 0);
    if (n < 0 && errno != EINTR) std::abort();
    if (n > 0) have += static_cast<std::size_t>(n);
  }
}

std::string RandomHex(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  FillRandom(raw.data(), raw.size());
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes);
  for (const unsigned char c : raw) {
    text += kHex[c >> 4];
    text += kHex[c & 15];
  }
  return text;
}

bool IsRandomHex(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

double RandomFraction() {
  static thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

}  // namespace reprise
