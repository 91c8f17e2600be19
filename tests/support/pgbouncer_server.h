#pragma once

#include <sys/types.h>

#include <string>

#include "support/temp_directory.h"

namespace reprise::test {

// A real pgbouncer in front of the tests' PostgreSQL, in transaction mode: each statement may use another connection.
class PgbouncerServer {
 public:
  // Starts it at the first call. Null if it or PostgreSQL is not installed; a loud message says so once.
  static PgbouncerServer* Get();
  ~PgbouncerServer();
  PgbouncerServer(const PgbouncerServer&) = delete;
  PgbouncerServer& operator=(const PgbouncerServer&) = delete;

  const std::string& url() const { return url_; }

 private:
  PgbouncerServer();

  const TempDirectory folder_;
  std::string url_;
  pid_t pid_ = -1;
};

}  // namespace reprise::test
