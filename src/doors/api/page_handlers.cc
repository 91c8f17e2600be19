#include <zlib.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/try.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/api/server.h"
#include "wire/error_response.h"
#include "wire/gate.h"

namespace reprise {

namespace {

// Allows only what this server sends (and images as blob: or data:), no frame around the page, no inline script or
// style.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

// For the few clients that do not accept gzip. The build has compressed `gzip`.
std::string Unpacked(std::string_view gzip) {
  std::string text;
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (::inflateInit2(&stream, kGzipOnly) != Z_OK) return text;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t before = text.size();
    text.resize(before + 64 * 1024);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
    stream.avail_out = 64 * 1024;
    status = ::inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return text;
}

bool KnowsVersion(const Request& request, std::string_view etag) {
  const std::string* known = request.head.Find("if-none-match");
  return known && (*known == "*" || known->find(etag) != std::string::npos);
}

Outcome Show(const PageAsset& asset, const Request& request, bool changes) {
  const std::string etag = "\"" + std::string(asset.digest) + "\"";
  Reply reply{.content_type = std::string(asset.type)};
  reply.headers = {{"ETag", etag},
                   {"Cache-Control", changes ? "no-cache" : "public, max-age=31536000, immutable"},
                   {"Vary", "Accept-Encoding"},
                   {"Content-Security-Policy", std::string(kPolicy)},
                   {"Referrer-Policy", "no-referrer"},
                   {"X-DNS-Prefetch-Control", "off"},  // models write links, and a host name may leak a secret
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cross-Origin-Resource-Policy", "same-origin"},
                   {"X-Frame-Options", "DENY"}};
  if (KnowsVersion(request, etag)) {
    reply.status = 304;
  } else if (request.AcceptsEncoding("gzip")) {
    reply.headers.emplace_back("Content-Encoding", "gzip");
    reply.body = asset.gzip;
  } else {
    reply.body = Unpacked(asset.gzip);
  }
  return reply;
}

Result<Outcome> Asset(std::span<const PageAsset> page, const Request& request, std::string_view name) {
  const auto asset = std::find_if(page.begin(), page.end(), [&](const PageAsset& each) { return each.name == name; });
  if (asset != page.end()) return Show(*asset, request, /*changes=*/name == "index.html");
  return Fail(ErrorCode::kNotFound, page.empty() ? "this server was built without the page" : "there is no such file");
}

// A browser sends the token once, and afterwards the cookie and the page key that stand for it.
Result<Outcome> LogIn(const Gate& gate, const Request& request) {
  auto session = gate.LogIn(TRY(ParseLoginBody(request.body)), request.head);
  if (!session) {
    return Fail(Reason::kUnauthenticated, "this is no token of this server");
  }
  Reply reply{.status = 204};
  if (!session->page_key.empty()) {
    reply.headers.emplace_back("Set-Cookie", std::move(session->set_cookie));
    reply.headers.emplace_back(kPageKeyHeader, std::move(session->page_key));
  }
  return reply;
}

}  // namespace

void AddPageRoutes(Router& router, const HandlerContext& context) {
  const auto add = [&](std::string method, std::string_view path, Handler handler) {
    router.Add(std::move(method), path, std::move(handler), Lane::kWork, BodyKind::kJson, Access::kAnybody);
  };
  const std::span<const PageAsset> page = context.shared.options.page;
  add("GET", "/", [page](const Request& request) { return Asset(page, request, "index.html"); });
  add("GET", "/assets/*", [page](const Request& request) {
    return Asset(page, request, request.captures.at(0) == "index.html" ? "" : request.captures.at(0));
  });
  add("POST", "/login", [&gate = context.shared.gate](const Request& request) { return LogIn(gate, request); });
}

}  // namespace reprise
