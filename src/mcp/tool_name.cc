#include "mcp/tool_name.h"

#include <algorithm>

#include "base/ascii.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kDigestDigits = 8;
constexpr std::string_view kBetween = "__";

}  // namespace

std::string McpToolName(std::string_view server, std::string_view tool) {
  std::string name = std::string(server) + std::string(kBetween) + std::string(tool);
  // The first "__" must be the one between the two.
  const bool one_reading = server.find(kBetween) == std::string_view::npos && !server.ends_with('_');
  if (one_reading && !tool.empty() && name.size() <= kMaxName &&
      std::all_of(name.begin(), name.end(), IsToolNameCharacter)) {
    return name;
  }
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsToolNameCharacter(c); }, '_');
  name.resize(std::min(name.size(), kMaxName - kDigestDigits - 1));
  const std::string digest = Sha256Digest({server, std::string_view("\0", 1), tool});
  return name + "_" + digest.substr(digest.find(':') + 1, kDigestDigits);
}

}  // namespace reprise
