#include "support/pgbouncer_server.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/postgres_server.h"
#include "support/unprivileged.h"

namespace reprise::test {
namespace {

constexpr const char* kProgram = "/usr/sbin/pgbouncer";

std::string HostOf(const std::string& url) { return url.substr(url.find("host=") + 5); }

}  // namespace

PgbouncerServer* PgbouncerServer::Get() {
  static const std::unique_ptr<PgbouncerServer> server = [] {
    if (PostgresServer::Get() == nullptr) return std::unique_ptr<PgbouncerServer>();
    if (::access(kProgram, X_OK) != 0) {
      std::fprintf(stderr, "\n*** pgbouncer is not installed (scripts/deps test): NOTHING is tested through it\n\n");
      return std::unique_ptr<PgbouncerServer>();
    }
    return std::unique_ptr<PgbouncerServer>(new PgbouncerServer);
  }();
  return server.get();
}

PgbouncerServer::PgbouncerServer() {
  const std::string folder = folder_.path(), settings = folder + "/pgbouncer.ini";
  std::ofstream(settings) << "[databases]\n"
                          << "* = host=" << HostOf(PostgresServer::Get()->url()) << " user=reprise\n"
                          << "[pgbouncer]\npool_mode = transaction\nauth_type = any\nlisten_port = 6432\n"
                          << "default_pool_size = 10\nmax_client_conn = 300\nunix_socket_dir = " << folder << "\n";
  ::chmod(settings.c_str(), 0644);
  GiveToNobody(folder);
  url_ = "postgresql://reprise@/postgres?host=" + folder + "&port=6432";
  pid_ = StartUnprivileged({kProgram, settings}, folder + "/log");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (::access((folder + "/.s.PGSQL.6432").c_str(), F_OK) != 0) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("no pgbouncer: see " + folder + "/log");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

PgbouncerServer::~PgbouncerServer() { End(pid_, SIGKILL); }

}  // namespace reprise::test
