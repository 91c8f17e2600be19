#include "http/page_address.h"

namespace reprise {

std::string PageAddress(const HandlerContext& context, const Request& request) {
  const std::string* host = request.head.Find("host");
  if (context.shared.page.empty() || host == nullptr) return {};
  const std::string* scheme = request.head.Find("x-forwarded-proto");
  return (scheme != nullptr && *scheme == "https" ? "https://" : "http://") + *host + "/";
}

}  // namespace reprise
