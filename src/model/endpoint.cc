#include "model/endpoint.h"

#include <algorithm>

namespace reprise {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool IsSameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return Lower(x) == Lower(y); });
}

}  // namespace

std::string UrlOf(std::string_view base_url, std::string_view path, const EndpointAdditions& additions) {
  std::string url(base_url);
  url += path;
  char before = path.find('?') == std::string_view::npos ? '?' : '&';
  for (const auto& [name, value] : additions.query) {
    url += before;
    url += name;
    url += '=';
    url += value;
    before = '&';
  }
  return url;
}

void AddHeaders(HttpRequest& request, const EndpointAdditions& additions) {
  std::erase_if(request.headers, [&](const auto& ours) {
    return std::any_of(additions.headers.begin(), additions.headers.end(),
                       [&](const auto& header) { return IsSameName(header.first, ours.first); });
  });
  request.headers.insert(request.headers.end(), additions.headers.begin(), additions.headers.end());
}

}  // namespace reprise
