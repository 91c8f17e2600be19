#include "wire/message.h"

#include <algorithm>

#include "base/text.h"
#include "wire/error_response.h"

namespace reprise {

namespace {

// Calls `use` with the undecoded value of each query parameter with this name, until it returns true.
template <typename Use>
void AnyQueryPart(std::string_view target, std::string_view name, Use use) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return;
  AnyPart(target.substr(mark + 1), '&', [&](std::string_view part) {
    const std::size_t equals = part.find('=');
    if (PercentDecoded(part.substr(0, equals), /*plus_is_space=*/true) != std::string(name)) return false;
    return use(equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1));
  });
}

// True if this part of an Accept header says "q=0", which refuses it (RFC 9110, section 12.4.2).
bool IsRefused(std::string_view part) {
  const std::size_t parameters = part.find(';');
  if (parameters == std::string_view::npos) return false;
  return AnyPart(part.substr(parameters + 1), ';', [](std::string_view parameter) {
    parameter = TrimBlanks(parameter);
    return (parameter.starts_with("q=0") || parameter.starts_with("Q=0")) &&
           parameter.find_first_not_of("0.", 2) == std::string_view::npos;
  });
}

// True if a header with this name lists `value` itself and does not refuse it.
bool IsListed(const RequestHead& head, std::string_view name, std::string_view value) {
  return std::ranges::any_of(head.headers, [&](const auto& header) {
    return header.first == name && AnyPart(header.second, ',', [&](std::string_view part) {
             return EqualsIgnoringCase(TrimBlanks(part.substr(0, part.find(';'))), value) && !IsRefused(part);
           });
  });
}

}  // namespace

const std::string* RequestHead::Find(std::string_view name) const {
  const auto found = std::ranges::find_if(headers, [&](const auto& each) { return each.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

std::size_t RequestHead::Count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(headers, [&](const auto& h) { return h.first == name; }));
}

std::optional<std::string> Request::Query(std::string_view name) const {
  std::optional<std::string> value;
  AnyQueryPart(head.target, name, [&](std::string_view raw) {
    // A value that cannot be decoded is returned as it is written, so that its reader refuses it.
    value = PercentDecoded(raw, /*plus_is_space=*/true).value_or(std::string(raw));
    return true;
  });
  return value;
}

std::vector<std::string> Request::QueryAll(std::string_view name) const {
  std::vector<std::string> values;
  AnyQueryPart(head.target, name, [&](std::string_view raw) {
    values.push_back(PercentDecoded(raw, /*plus_is_space=*/true).value_or(std::string(raw)));
    return false;
  });
  return values;
}

std::size_t Request::QueryCount(std::string_view name) const { return QueryAll(name).size(); }

bool Request::Accepts(std::string_view media_type) const { return IsListed(head, "accept", media_type); }

bool Request::AcceptsEncoding(std::string_view coding) const { return IsListed(head, "accept-encoding", coding); }

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

std::string_view TrimBlanks(std::string_view text) { return Trimmed(text, " \t"); }

std::string_view StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

namespace {

// "bytes=FIRST-[LAST]" or "bytes=-COUNT", before it is compared with the size.
struct RangeSpec {
  std::optional<std::uint64_t> first = std::nullopt, last = std::nullopt;
};

std::optional<RangeSpec> ParseRange(std::string_view value) {
  constexpr std::string_view kUnit = "bytes=";
  if (!EqualsIgnoringCase(value.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  value = TrimBlanks(value.substr(kUnit.size()));
  const std::size_t dash = value.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = value.substr(0, dash), last = value.substr(dash + 1);
  RangeSpec range{.first = ParseNumber<std::uint64_t>(first), .last = ParseNumber<std::uint64_t>(last)};
  if (!first.empty() && !range.first) return std::nullopt;
  if (!last.empty() && !range.last) return std::nullopt;
  if (!range.first && !range.last) return std::nullopt;
  if (range.first && range.last && *range.last < *range.first) return std::nullopt;
  return range;
}

// The part [first, second) of `size` bytes; nullopt if it does not exist.
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
  // An empty file has no part to send, and a client that resumes at its beginning has it all.
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
