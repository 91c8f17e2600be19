#include "http/message.h"

#include <algorithm>

#include "base/ascii.h"

namespace reprise {
namespace {

// Calls `use` with the value of each query parameter of that name, as it is written, until it returns true.
template <typename Use>
void AnyQueryPart(std::string_view target, std::string_view name, Use use) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return;
  AnyPart(target.substr(mark + 1), '&', [&](std::string_view part) {
    const std::size_t equals = part.find('=');
    if (PercentDecode(part.substr(0, equals), /*plus_is_space=*/true) != std::string(name)) return false;
    return use(equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1));
  });
}

// Whether a part of an Accept header says "q=0": not this one (RFC 9110, section 12.4.2).
bool IsRefused(std::string_view part) {
  const std::size_t parameters = part.find(';');
  if (parameters == std::string_view::npos) return false;
  return AnyPart(part.substr(parameters + 1), ';', [](std::string_view parameter) {
    parameter = TrimBlanks(parameter);
    return (parameter.starts_with("q=0") || parameter.starts_with("Q=0")) &&
           parameter.find_first_not_of("0.", 2) == std::string_view::npos;
  });
}

// Whether a header of that name lists `value` itself, and does not refuse it.
bool IsListed(const RequestHead& head, std::string_view name, std::string_view value) {
  return std::any_of(head.headers.begin(), head.headers.end(), [&](const auto& header) {
    return header.first == name && AnyPart(header.second, ',', [&](std::string_view part) {
             return EqualsIgnoringCase(TrimBlanks(part.substr(0, part.find(';'))), value) && !IsRefused(part);
           });
  });
}

}  // namespace

const std::string* RequestHead::Find(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return h.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

std::size_t RequestHead::Count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const auto& h) { return h.first == name; }));
}

std::optional<std::string> Request::Query(std::string_view name) const {
  std::optional<std::string> value;
  AnyQueryPart(head.target, name, [&](std::string_view raw) {
    // A value that cannot be decoded is handed on as it is, so that its reader refuses it.
    value = PercentDecode(raw, /*plus_is_space=*/true).value_or(std::string(raw));
    return true;
  });
  return value;
}

std::vector<std::string> Request::QueryAll(std::string_view name) const {
  std::vector<std::string> values;
  AnyQueryPart(head.target, name, [&](std::string_view raw) {
    values.push_back(PercentDecode(raw, /*plus_is_space=*/true).value_or(std::string(raw)));
    return false;
  });
  return values;
}

std::size_t Request::QueryCount(std::string_view name) const { return QueryAll(name).size(); }

bool Request::Accepts(std::string_view media_type) const { return IsListed(head, "accept", media_type); }

bool Request::AcceptsEncoding(std::string_view coding) const { return IsListed(head, "accept-encoding", coding); }

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

std::string_view TrimBlanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

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

}  // namespace reprise
