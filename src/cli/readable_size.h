#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace reprise {

// "1.2 MB"
inline std::string ReadableSize(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KB", "MB", "GB", "TB"};
  double size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1000 && unit + 1 < kUnits.size(); ++unit) size /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || size >= 100 ? "%.0f %s" : "%.1f %s", size, kUnits[unit]);
  return text.data();
}

}  // namespace reprise
