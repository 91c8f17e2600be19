#pragma once

#include <sys/types.h>

#include <string>

#include "support/temp_directory.h"

namespace reprise::test {

// A real PostgreSQL for the tests of one program: unprivileged, on a socket of its own, gone with the program.
class PostgresServer {
 public:
  // Starts it at the first call. Null if PostgreSQL is not installed, which is said once, loudly.
  static PostgresServer* Get();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  const std::string& url() const { return url_; }
  // Ends it without any warning, and starts it again.
  void Crash();

 private:
  explicit PostgresServer(std::string programs);
  void Start();

  const std::string programs_;  // the folder they are in
  const TempDirectory folder_;
  std::string url_;
  pid_t pid_ = -1;
};

}  // namespace reprise::test
