#include "mcp/server_eras.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxErasFile = 1u << 20;
constexpr const char* kHandshake = "handshake";
constexpr const char* kStateless = "stateless";

McpEra EraOf(const std::string& name) {
  if (name == kHandshake) return McpEra::kHandshake;
  return name == kStateless ? McpEra::kStateless : McpEra::kUnknown;
}

}  // namespace

void ServerEras::ReadOnce() {
  if (std::exchange(read_, true)) return;
  const auto text = file_system_.ReadFile(path_, kMaxErasFile);
  if (!text && IsNotFound(text.error())) return;
  const auto json = text ? ParseJson(*text) : Result<Json>(Fail(text.error()));
  if (!json || MemberOf(*json, "schema") != 1 || !MemberOf(*json, "servers").is_object()) {
    return LogWarning("what was known of the MCP servers cannot be read; each is asked anew", {{"file", path_}});
  }
  for (const auto& [name, each] : (*json)["servers"].items()) {
    KnownServer known{.launch = TextMember(each, "launch"),
                      .era = EraOf(TextMember(each, "era")),
                      .version = TextMember(each, "version")};
    const bool is_configured = std::ranges::find(servers_, name) != servers_.end();
    if (is_configured && known.era != McpEra::kUnknown) known_[name] = std::move(known);
  }
}

std::optional<KnownServer> ServerEras::Look(const std::string& server, const std::string& launch) {
  const MutexLock lock(mutex_);
  ReadOnce();
  const auto found = known_.find(server);
  if (found == known_.end() || found->second.launch != launch) return std::nullopt;
  return found->second;
}

void ServerEras::Keep(const std::string& server, KnownServer known) {
  const MutexLock lock(mutex_);
  ReadOnce();
  if (known_[server] == known) return;
  known_[server] = std::move(known);
  Write();
}

void ServerEras::Forget(const std::string& server) {
  const MutexLock lock(mutex_);
  ReadOnce();
  if (known_.erase(server) > 0) Write();
}

void ServerEras::Write() {
  Json servers = Json::object();
  for (const auto& [name, known] : known_) {
    servers[name] = {{"launch", known.launch},
                     {"era", known.era == McpEra::kHandshake ? kHandshake : kStateless},
                     {"version", known.version}};
  }
  const std::string text = DumpJsonPretty({{"schema", 1}, {"servers", std::move(servers)}}) + "\n";
  // Not synced, because entries lost by a power failure are only detected again.
  if (auto kept = ReplaceFile(file_system_, path_, text, Durability::kUnsynced); !kept) {
    LogWarning("the protocol of an MCP server could not be stored", {{"file", path_}, {"error", kept.error().message}});
  }
}

}  // namespace reprise
