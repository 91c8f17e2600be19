#pragma once

#include <sys/types.h>

#include <string>

#include "support/temp_directory.h"

namespace reprise::test {

// A real PostgreSQL for the tests of one program: unprivileged, on its own socket, ends with the program.
class PostgresServer {
 public:
  // Starts it at the first call. Null if PostgreSQL is not installed; a loud message says so once.
  static PostgresServer* Get();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  const std::string& url() const { return url_; }
  // Kills it without warning and restarts it.
  void Crash();

 private:
  explicit PostgresServer(std::string programs);
  void Start();

  const std::string programs_;  // their folder
  const TempDirectory folder_;
  std::string url_;
  pid_t pid_ = -1;
};

}  // namespace reprise::test
