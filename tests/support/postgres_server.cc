#include "support/postgres_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/unprivileged.h"

namespace reprise::test {
namespace {

// The folder of the newest version installed from Debian.
std::string FindPrograms() {
  std::string newest;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", failed)) {
    const std::string programs = entry.path().string() + "/bin";
    if (std::filesystem::exists(programs + "/postgres") && programs > newest) newest = programs;
  }
  return newest;
}

bool Accepts(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool accepts = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return accepts;
}

}  // namespace

PostgresServer* PostgresServer::Get() {
  static const std::unique_ptr<PostgresServer> server = [] {
    const std::string programs = FindPrograms();
    if (programs.empty()) {
      std::fprintf(stderr, "\n*** PostgreSQL is not installed (scripts/deps test): NOTHING is tested against it\n\n");
      return std::unique_ptr<PostgresServer>();
    }
    return std::unique_ptr<PostgresServer>(new PostgresServer(programs));
  }();
  return server.get();
}

PostgresServer::PostgresServer(std::string programs) : programs_(std::move(programs)) {
  const std::string folder = folder_.path();
  GiveToNobody(folder);
  const int made =
      AwaitEnd(StartUnprivileged({programs_ + "/initdb", "-D", folder + "/data", "-A", "trust", "--no-sync", "-U",
                                  "reprise", "-E", "UTF8", "--locale=C", "--wal-segsize=1"},
                                 folder + "/log"));
  if (made != 0) throw std::runtime_error("initdb failed: see " + folder + "/log");
  url_ = "postgresql://reprise@/postgres?host=" + folder;
  Start();
}

void PostgresServer::Start() {
  const std::string folder = folder_.path();
  pid_ =
      StartUnprivileged({programs_ + "/postgres", "-D", folder + "/data", "-c", "listen_addresses=", "-c",
                         "unix_socket_directories=" + folder, "-c", "max_connections=60", "-c", "shared_buffers=32MB"},
                        folder + "/log");
  // It listens before it is ready, and clients that connect earlier wait for the rest.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!Accepts(folder + "/.s.PGSQL.5432")) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("no PostgreSQL: see " + folder + "/log");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

PostgresServer::~PostgresServer() { End(pid_, SIGQUIT); }

void PostgresServer::Crash() {
  // Its children notice and end, too.
  End(pid_, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove(folder_.path() + "/data/postmaster.pid", ignored);
  Start();
}

}  // namespace reprise::test
