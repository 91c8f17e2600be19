#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/deflate.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
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
    "connect-src 'self'; frame-src 'self'; manifest-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

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
    reply.body = Inflate(asset.gzip, Packing::kGzip, asset.gzip.max_size()).value_or("");
  }
  return reply;
}

// `changes`: its name stays the same in other versions.
Result<Outcome> Asset(std::span<const PageAsset> page, const Request& request, std::string_view name, bool changes) {
  const auto asset = std::find_if(page.begin(), page.end(), [&](const PageAsset& each) { return each.name == name; });
  if (asset != page.end()) return Show(*asset, request, changes);
  return Fail(ErrorCode::kNotFound, page.empty() ? "this server was built without the page" : "there is no such file");
}

// A frame in which the page shows HTML that an agent wrote. Its own script may run, and hands what the page sends to an
// inner frame that may do nothing: no script, no request, no form, no window. Both have this policy, which alone holds
// the content. The script takes away what would be refused, and hints by which browsers look up names of hosts.
constexpr std::string_view kPreviewScript = R"(addEventListener('message', (e) => {
  if (e.source !== parent) return;
  const made = new DOMParser().parseFromString(e.data.replace(/<base\b/gi, '<x-base'), 'text/html');
  const local = /^\s*(#|data:image\/)/i, css = (text) => text.replace(/@import[^;]*;?|url\((?!\s*['"]?(#|data:))[^)]*\)/gi, '');
  for (const each of made.querySelectorAll('script,link,meta,base,iframe,frame,object,embed,form,audio,video,source,track')) each.remove();
  for (const style of made.querySelectorAll('style')) style.textContent = css(style.textContent);
  for (const each of made.querySelectorAll('*')) {
    for (const {name, value} of [...each.attributes]) {
      if (name === 'style') each.setAttribute(name, css(value));
      else if (/^on|^(ping|srcset|action|formaction|background|poster|target)$/i.test(name)) each.removeAttribute(name);
      else if (/(href|src)$/i.test(name) && !local.test(value)) each.removeAttribute(name);
    }
  }
  document.querySelector('iframe').srcdoc = '<!doctype html>' + made.documentElement.outerHTML;
});
parent.postMessage('ready', '*');)";
constexpr std::string_view kPreviewPolicy =
    "; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts";

Outcome ShowPreview() {
  const std::string script(kPreviewScript);
  const std::string digest = EncodeBase64(Sha256Bytes({script}));
  Reply reply{.body =
                  "<!doctype html><meta charset=\"utf-8\"><title>Preview</title><style>html,body,iframe{width:100%;"
                  "height:100%;margin:0;border:0;display:block}</style><iframe sandbox title=\"Preview\"></iframe>"
                  "<script>" +
                  script + "</script>",
              .content_type = "text/html; charset=utf-8"};
  reply.headers = {{"Cache-Control", "no-cache"},
                   {"Content-Security-Policy",
                    "default-src 'none'; script-src 'sha256-" + digest + "'" + std::string(kPreviewPolicy)},
                   {"Referrer-Policy", "no-referrer"},
                   {"X-DNS-Prefetch-Control", "off"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cross-Origin-Resource-Policy", "same-origin"}};
  return reply;
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
  const auto add_named = [&](std::string_view path, std::string_view name) {
    add("GET", path, [page, name](const Request& request) { return Asset(page, request, name, /*changes=*/true); });
  };
  add_named("/", "index.html");
  // At the root, because a service worker serves what is below it.
  add_named("/worker.js", "worker.js");
  add_named("/page.webmanifest", "page.webmanifest");
  add_named("/icon.svg", "icon.svg");
  // Their names are digests, so the others have no address here.
  add("GET", "/assets/*", [page](const Request& request) {
    const std::string& name = request.captures.at(0);
    const bool is_named =
        name == "index.html" || name == "worker.js" || name == "page.webmanifest" || name == "icon.svg";
    return Asset(page, request, is_named ? "" : name, /*changes=*/false);
  });
  add("GET", "/preview", [](const Request&) -> Result<Outcome> { return ShowPreview(); });
  add("POST", "/login", [&gate = context.shared.gate](const Request& request) { return LogIn(gate, request); });
}

}  // namespace reprise
