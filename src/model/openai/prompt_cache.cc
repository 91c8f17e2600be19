#include "model/openai/prompt_cache.h"

#include "base/json.h"
#include "domain/codec.h"
#include "model/endpoint.h"

namespace reprise {
namespace {

bool IsAt(std::string_view host, std::string_view domain) {
  return host == domain || (host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.');
}

bool IsThisMachine(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

CacheMembers CacheMembersFor(PromptCache cache, std::string_view base_url, std::string_view model) {
  if (cache == PromptCache::kNone) return {};
  const std::string host = ServiceAt({}, base_url).address;
  const bool is_router = IsAt(host, "openrouter.ai");
  const bool takes_it = is_router || IsAt(host, "openai.com") || IsAt(host, "azure.com") || IsThisMachine(host);
  if (cache == PromptCache::kDefault && !takes_it) return {};
  const bool is_claude = model.find("claude") != std::string_view::npos;
  return {.has_key = !(is_router && is_claude),
          .has_control = is_router && is_claude,
          .is_long = cache == PromptCache::kLong};
}

void AppendCacheMembers(std::string& out, const ModelRequest& request, const CacheMembers& members,
                        const std::set<std::string, std::less<>>& refused, std::set<std::string, std::less<>>* sent) {
  const auto begin = [&](std::string_view name) {
    if (refused.contains(name)) return false;
    if (sent != nullptr) sent->emplace(name);
    out += ",\"";
    out += name;
    out += "\":";
    return true;
  };
  if (members.has_key && begin(kPromptCacheKey)) AppendJsonString(out, PromptCacheKey(request));
  if (members.has_key && members.is_long && begin(kPromptCacheRetention)) out += R"("24h")";
  if (members.has_control && begin(kCacheControl)) {
    out += members.is_long ? R"({"type":"ephemeral","ttl":"1h"})" : R"({"type":"ephemeral"})";
  }
}

std::string PromptCacheKey(const ModelRequest& request) {
  std::string_view begin;
  for (const Message& message : request.messages) {
    if (message.role != Role::kUser) continue;
    if (message.content) begin = *message.content;
    break;
  }
  const std::string digest = ArgumentsDigest(std::string(begin));
  return "reprise-" + digest.substr(digest.find(':') + 1, 32);
}

}  // namespace reprise
