#include "model/endpoint.h"

#include <algorithm>
#include <charconv>

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

ModelService ServiceAt(std::string provider, std::string_view base_url) {
  ModelService service{.provider = std::move(provider), .port = base_url.starts_with("http://") ? 80 : 443};
  if (const std::size_t scheme = base_url.find("://"); scheme != std::string_view::npos) {
    base_url.remove_prefix(scheme + 3);
  }
  std::string_view host = base_url.substr(0, base_url.find_first_of("/?#"));
  if (const std::size_t user = host.rfind('@'); user != std::string_view::npos) host.remove_prefix(user + 1);
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  if (has_port) {
    std::from_chars(host.data() + colon + 1, host.data() + host.size(), service.port);
    host = host.substr(0, colon);
  }
  service.address = host;
  return service;
}

void AskForStream(HttpRequest& http, const ModelRequest& request) {
  http.method = "POST";
  http.headers.emplace_back("Content-Type", "application/json");
  http.headers.emplace_back("Accept", "text/event-stream");
  if (!request.traceparent.empty()) http.headers.emplace_back("traceparent", request.traceparent);
}

void AddHeaders(HttpRequest& request, const EndpointAdditions& additions) {
  std::erase_if(request.headers, [&](const auto& ours) {
    return std::any_of(additions.headers.begin(), additions.headers.end(),
                       [&](const auto& header) { return IsSameName(header.first, ours.first); });
  });
  request.headers.insert(request.headers.end(), additions.headers.begin(), additions.headers.end());
}

}  // namespace reprise
