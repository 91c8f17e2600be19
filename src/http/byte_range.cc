#include "http/byte_range.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "http/error_response.h"

namespace reprise {
namespace {

// "bytes=FIRST-[LAST]" or "bytes=-COUNT", as it stands there.
struct RangeSpec {
  std::optional<std::uint64_t> first = std::nullopt, last = std::nullopt;
};

std::optional<std::uint64_t> ParseOffset(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<RangeSpec> ParseRange(std::string_view value) {
  constexpr std::string_view kUnit = "bytes=";
  if (!EqualsIgnoringCase(value.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  value = TrimBlanks(value.substr(kUnit.size()));
  const std::size_t dash = value.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = value.substr(0, dash), last = value.substr(dash + 1);
  RangeSpec range{.first = ParseOffset(first), .last = ParseOffset(last)};
  if (!first.empty() && !range.first) return std::nullopt;
  if (!last.empty() && !range.last) return std::nullopt;
  if (!range.first && !range.last) return std::nullopt;
  if (range.first && range.last && *range.last < *range.first) return std::nullopt;
  return range;
}

// The part [first, second) of `size` bytes; nullopt if there is none.
std::optional<std::pair<std::uint64_t, std::uint64_t>> PartOf(const RangeSpec& range, std::uint64_t size) {
  if (!range.first) {
    if (*range.last == 0) return std::nullopt;
    return std::pair(size - std::min(size, *range.last), size);
  }
  if (*range.first >= size) return std::nullopt;
  return std::pair(*range.first, range.last ? std::min(*range.last, size - 1) + 1 : size);
}

}  // namespace

Reply InRange(const Request& request, Reply whole, std::string_view etag) {
  whole.headers.emplace_back("Accept-Ranges", "bytes");
  whole.headers.emplace_back("ETag", etag);
  // An empty file has no part; whoever continues at its beginning has it all.
  if (request.head.method != "GET" || request.head.Count("range") != 1 || whole.body.empty()) return whole;
  const std::string* condition = request.head.Find("if-range");
  if (condition != nullptr && (request.head.Count("if-range") != 1 || *condition != etag)) return whole;
  const auto range = ParseRange(*request.head.Find("range"));
  if (!range) return whole;
  const std::string size = std::to_string(whole.body.size());
  const auto part = PartOf(*range, whole.body.size());
  if (!part) {
    Reply refusal = ProtocolErrorReply(416, "range_not_satisfiable", "the file has no such part");
    refusal.headers.emplace_back("Content-Range", "bytes */" + size);
    return refusal;
  }
  const auto [first, end] = *part;
  whole.status = 206;
  whole.headers.emplace_back("Content-Range",
                             "bytes " + std::to_string(first) + "-" + std::to_string(end - 1) + "/" + size);
  whole.body = whole.body.substr(first, end - first);
  return whole;
}

}  // namespace reprise
