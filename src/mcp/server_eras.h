#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "mcp/client.h"
#include "reprise/file_system.h"

namespace reprise {

// How a server was last spoken to.
struct KnownServer {
  std::string launch;  // how it was run or reached then; see LaunchDigest
  McpEra era = McpEra::kUnknown;
  std::string version;  // its name and version, as it has said
  bool operator==(const KnownServer&) const = default;
};

// Which era each MCP server turned out to be of, kept in a file of the data folder (schemas/FILES.md) over restarts, so
// that a server need not be asked again. Only a hint: who uses it tries once more without it. A file that cannot be
// read holds nothing. Thread-safe.
class ServerEras {
 public:
  // `servers` are those that are configured: of others nothing is kept. `file_system` must outlive the object. The file
  // is read at the first look.
  ServerEras(FileSystem& file_system, std::string path, const std::vector<std::string>& servers)
      : file_system_(file_system), path_(std::move(path)), servers_(servers) {}

  // nullopt: nothing is known of this server, run or reached in this way.
  std::optional<KnownServer> Look(const std::string& server, const std::string& launch);
  // From now on this is known of it, as far as the disk can take it. Writes only what is new.
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
