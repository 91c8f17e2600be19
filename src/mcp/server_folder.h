#pragma once

#include <string>

#include "reprise/result.h"

namespace reprise {

// A folder of its own (0700, a name that nobody knows before) for a server to start in: programs look there for what
// they load, so nobody else may have put anything there. It holds a package.json without anything in it, at which npm
// ends its search for packages in the folders above. Removed with all it holds at the end; links are not followed.
class ServerFolder {
 public:
  // Below `parent`, which is there and private.
  static Result<ServerFolder> Make(const std::string& parent, const std::string& name);
  ServerFolder(ServerFolder&& other) noexcept;
  ServerFolder& operator=(ServerFolder&&) = delete;
  ~ServerFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ServerFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

}  // namespace reprise
