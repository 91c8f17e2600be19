#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "mcp/client.h"
#include "reprise/file_system.h"

namespace reprise {

// How a server was last used.
struct KnownServer {
  std::string launch;  // the digest of its command or address then; see LaunchDigest
  McpEra era = McpEra::kUnknown;
  std::string version;  // its name and version, as given by the server
  bool operator==(const KnownServer&) const = default;
};

// The detected era of each MCP server, kept in a file of the data folder (schemas/FILES.md), so that it need not be
// detected again after a restart. Only a hint: if it fails, the user of it tries again without it. A file that cannot
// be read counts as empty. Thread-safe.
class ServerEras {
 public:
  // `servers` are the configured ones; entries of others in the file are dropped. `file_system` must outlive the
  // object. The file is read at the first use.
  ServerEras(FileSystem& file_system, std::string path, const std::vector<std::string>& servers)
      : file_system_(file_system), path_(std::move(path)), servers_(servers) {}

  // nullopt if nothing is known about this server with this launch.
  std::optional<KnownServer> Look(const std::string& server, const std::string& launch);
  // Stores this, if it is new. A disk error is only logged.
  void Keep(const std::string& server, KnownServer known);
  void Forget(const std::string& server);

 private:
  void ReadOnce() REQUIRES(mutex_);
  void Write() REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  const std::vector<std::string> servers_;
  Mutex mutex_;
  bool read_ GUARDED_BY(mutex_) = false;
  std::map<std::string, KnownServer> known_ GUARDED_BY(mutex_);  // by the server's name
};

}  // namespace reprise
