#include "support/postgres_server.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

namespace reprise::test {
namespace {

constexpr const char* kNobody = "65534";

// The newest that Debian has installed.
std::string FindPrograms() {
  std::string newest;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", failed)) {
    const std::string programs = entry.path().string() + "/bin";
    if (std::filesystem::exists(programs + "/postgres") && programs > newest) newest = programs;
  }
  return newest;
}

// PostgreSQL does not run as root.
std::vector<std::string> AsNobody(std::vector<std::string> command) {
  std::vector<std::string> all = {"setpriv", "--pdeathsig", "QUIT"};
  if (::geteuid() == 0) all.insert(all.end(), {"--reuid", kNobody, "--regid", kNobody, "--clear-groups"});
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

pid_t Run(const std::vector<std::string>& command, const std::string& log) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (std::freopen(log.c_str(), "a", stdout) != nullptr) ::dup2(1, 2);
  ::execvp(words[0], words.data());
  std::_Exit(127);
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
  if (::geteuid() == 0 && ::chown(folder.c_str(), 65534, 65534) != 0) throw std::runtime_error("chown " + folder);
  int status = 0;
  const pid_t made = Run(AsNobody({programs_ + "/initdb", "-D", folder + "/data", "-A", "trust", "--no-sync", "-U",
                                   "reprise", "-E", "UTF8", "--locale=C", "--wal-segsize=1"}),
                         folder + "/log");
  ::waitpid(made, &status, 0);
  if (status != 0) throw std::runtime_error("initdb failed: see " + folder + "/log");
  url_ = "postgresql://reprise@/postgres?host=" + folder;
  Start();
}

void PostgresServer::Start() {
  const std::string folder = folder_.path();
  pid_ = Run(AsNobody({programs_ + "/postgres", "-D", folder + "/data", "-c", "listen_addresses=", "-c",
                       "unix_socket_directories=" + folder, "-c", "max_connections=60", "-c", "shared_buffers=32MB"}),
             folder + "/log");
  // It listens before it takes what is asked, so who connects waits for the rest.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!Accepts(folder + "/.s.PGSQL.5432")) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("no PostgreSQL: see " + folder + "/log");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

PostgresServer::~PostgresServer() {
  ::kill(pid_, SIGQUIT);
  ::waitpid(pid_, nullptr, 0);
}

void PostgresServer::Crash() {
  // Its children see that it is gone, and go.
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove(folder_.path() + "/data/postmaster.pid", ignored);
  Start();
}

}  // namespace reprise::test
