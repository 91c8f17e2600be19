#include "wire/router.h"

#include <algorithm>

#include "base/text.h"
#include "wire/error_response.h"

namespace reprise {

namespace {

// "/a/b" -> {"a", "b"}; "/a/" ends with an empty segment, which matches no route.
std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const std::size_t end = path.find('/');
    segments.push_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view{} : path.substr(end);
  }
  return segments;
}

bool Matches(const Route& route, const std::vector<std::string>& segments) {
  const std::size_t size = route.pattern.size();
  const bool takes_rest = size > 0 && route.pattern.back() == "**";
  if (takes_rest ? segments.size() < size : segments.size() != size) return false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool is_open = i >= size || route.pattern[i].starts_with('*');
    if (is_open ? segments[i].empty() : route.pattern[i] != segments[i]) return false;
  }
  return true;
}

std::vector<std::string> Captures(const Route& route, std::vector<std::string> segments) {
  std::vector<std::string> captures;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (i >= route.pattern.size()) {
      captures.back() += "/" + segments[i];
    } else if (route.pattern[i].starts_with('*')) {
      captures.push_back(std::move(segments[i]));
    }
  }
  return captures;
}

}  // namespace

void Router::Add(std::string method, std::string_view path, Handler handler, Lane lane, BodyKind body, Access access) {
  Route route{.method = std::move(method),
              .path = std::string(path),
              .pattern = {},
              .handler = std::move(handler),
              .lane = lane,
              .body = body,
              .access = access};
  for (const std::string_view segment : Split(path)) route.pattern.emplace_back(segment);
  routes_.push_back(std::move(route));
}

Router::Match Router::Find(std::string_view method, std::string_view target) const {
  std::vector<std::string> segments;
  for (const std::string_view raw : Split(target.substr(0, target.find('?')))) {
    auto segment = PercentDecoded(raw);
    if (!segment) return {.refusal = ProtocolErrorReply(400, "bad_request", "malformed percent-encoding in the path")};
    segments.push_back(std::move(*segment));
  }
  // A route without open segments wins: "/a/b" does not match "/a/*" if "/a/b" itself is a route.
  const auto is_named = [](const Route& route) { return route.path.find('*') == std::string::npos; };
  const bool has_name =
      std::ranges::any_of(routes_, [&](const Route& route) { return is_named(route) && Matches(route, segments); });
  std::string allowed;
  for (const Route& route : routes_) {
    if ((has_name && !is_named(route)) || !Matches(route, segments)) continue;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) {
      return {.route = &route, .captures = Captures(route, std::move(segments)), .refusal = {}};
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (allowed.empty()) return {.refusal = ProtocolErrorReply(404, "not_found", "there is no such resource")};
  Reply refusal = ProtocolErrorReply(405, "method_not_allowed", "the resource does not know this method");
  refusal.headers.emplace_back("Allow", std::move(allowed));
  return {.refusal = std::move(refusal)};
}

void Router::SetErrorForm(std::string prefix, ErrorForm form) { error_forms_.emplace_back(std::move(prefix), form); }

ErrorForm Router::ErrorFormOf(std::string_view target) const {
  for (const auto& [prefix, form] : error_forms_) {
    if (target.starts_with(prefix)) return form;
  }
  return nullptr;
}

}  // namespace reprise
