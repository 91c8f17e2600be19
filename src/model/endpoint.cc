#include "model/endpoint.h"

#include <algorithm>
#include <charconv>

#include "base/public_address.h"
#include "base/text.h"

namespace reprise {
namespace {

bool IsSameName(std::string_view a, std::string_view b) { return LowerCase(a) == LowerCase(b); }

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
  const std::string_view host = HostOf(base_url), behind = base_url.substr(host.end() - base_url.begin());
  service.address = host;
  if (behind.starts_with(':')) std::from_chars(behind.data() + 1, behind.data() + behind.size(), service.port);
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
