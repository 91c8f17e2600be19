#include "cli/health_checks.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/posix_file_system.h"
#include "cli/key_access.h"
#include "cli/private_file.h"
#include "store/file_names.h"

namespace reprise {
namespace {

Finding Ok(std::string check, std::string words) { return {std::move(check), Verdict::kOk, std::move(words)}; }
Finding Warn(std::string check, std::string words) { return {std::move(check), Verdict::kWarning, std::move(words)}; }
Finding Bad(std::string check, std::string words) { return {std::move(check), Verdict::kFailure, std::move(words)}; }

Finding CheckKeyFile(const Options& options) {
  if (options.plain) return Warn("key file", "not needed: chats are stored unencrypted (plain)");
  const std::string path = KeyFileOf(options);
  PosixFileSystem disk;
  // Asks nobody: without a passphrase file it is enough that there is a passphrase.
  const auto keys =
      LoadKeyFile(path, disk, options.passphrase_file.empty() ? PassphraseSource() : PassphraseFrom(options));
  if (keys)
    return Ok("key file", path + " holds " + std::to_string(keys->keys().size()) + " key(s), for its owner only");
  if (keys.error().code == ErrorCode::kNotFound) {
    return Warn("key file", path + " is not there yet; the first start creates it");
  }
  if (keys.error().reason == "passphrase_needed") return Ok("key file", path + " is protected by a passphrase");
  return Bad("key file", keys.error().message);
}

Finding CheckToken(const Options& options) {
  if (options.token_file.empty()) return Ok("token", "none asked for: only this machine's same user can connect");
  const auto token = ReadToken(options.token_file);
  return token ? Ok("token", options.token_file + " is readable by its owner only")
               : Bad("token", token.error().message);
}

Finding CheckDataFolder(const Options& options) {
  struct stat status {};
  if (::stat(options.data_dir.c_str(), &status) != 0) {
    if (errno == ENOENT) return Ok("data folder", options.data_dir + " is not there yet; the first start creates it");
    return Bad("data folder", options.data_dir + ": " + std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return Bad("data folder", options.data_dir + " is not a folder");
  if (::access(options.data_dir.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Bad("data folder", options.data_dir + " cannot be written by this user");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Warn("data folder", options.data_dir + " can be entered by other users; chmod 700 keeps the names private");
  }
  return Ok("data folder", options.data_dir + " is there, for its owner only");
}

Finding CheckLock(const Options& options) {
  const std::string path = LockFile(options.data_dir);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return Ok("data folder lock", "free");
  // A shared lock for a moment: refused exactly while a server holds its exclusive one.
  const bool free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
  ::close(fd);
  return free ? Ok("data folder lock", "free") : Warn("data folder lock", "a server is using this folder now");
}

Finding CheckWorkspace(const Options& options) {
  struct stat status {};
  if (::stat(options.workspace.c_str(), &status) != 0) {
    return Bad("workspace", options.workspace + ": " + std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) return Bad("workspace", options.workspace + " is not a folder");
  return Ok("workspace", options.workspace + " is there");
}

// The exit status of a command without input or output, or nothing if it could not be started.
std::optional<int> StatusOf(std::vector<const char*> arguments) {
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, const_cast<char* const*>(arguments.data()), environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
}

Finding CheckSandbox() {
  const auto status = StatusOf({"bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
                                "--dev", "/dev", "true"});
  if (!status || *status == 127) {
    return Warn("sandbox", "bubblewrap is not installed; shell commands run without a sandbox");
  }
  if (*status != 0) {
    return Warn("sandbox",
                "bubblewrap is installed but not usable here (user namespaces?); commands run without a sandbox");
  }
  return Ok("sandbox", "bubblewrap works; shell commands run in it");
}

Finding CheckCurl() {
  void* library = ::dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return Bad("curl library", "libcurl.so.4 cannot be loaded; no provider can be reached");
  ::dlclose(library);
  return Ok("curl library", "libcurl.so.4 can be loaded");
}

Finding CheckProvider(const Options& options) {
  if (options.model == "offline") {
    return Warn("model", "offline: no provider with a key is configured (set OPENAI_API_KEY, or see --config)");
  }
  const std::string name = options.model.substr(0, options.model.find('/'));
  for (const ProviderOptions& provider : options.providers) {
    if (provider.name != name) continue;
    return Ok("model", options.model + " at " + provider.base_url +
                           (provider.api_key.empty() ? ", without a key" : ", with a key"));
  }
  return Bad("model", options.model + ": there is no such provider");
}

struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;
};

std::optional<Endpoint> EndpointOf(const Options& options) {
  Endpoint endpoint;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const auto port = htons(static_cast<std::uint16_t>(options.port));
  auto* v4 = reinterpret_cast<sockaddr_in*>(&endpoint.address);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    endpoint.length = sizeof *v4;
    return endpoint;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&endpoint.address);
  endpoint.address = {};
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) != 1) return std::nullopt;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = port;
  endpoint.length = sizeof *v6;
  return endpoint;
}

Finding CheckPort(const Options& options) {
  const std::string name = options.host + " port " + std::to_string(options.port);
  const auto endpoint = EndpointOf(options);
  if (!endpoint) return Bad("address", options.host + " is not an address");
  const int fd = ::socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Bad("address", name + ": " + std::strerror(errno));
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // as the server does; a failure shows in bind
  const bool bound =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&endpoint->address), endpoint->length) == 0 && ::listen(fd, 1) == 0;
  const int error = errno;
  ::close(fd);
  if (bound) return Ok("address", name + " is free");
  if (error == EADDRINUSE) return Warn("address", name + " is taken (by a running server?)");
  return Bad("address", name + ": " + std::strerror(error));
}

}  // namespace

std::vector<Finding> CheckHealth(const Options& options) {
  return {CheckKeyFile(options), CheckToken(options),     CheckDataFolder(options),
          CheckLock(options),    CheckWorkspace(options), CheckSandbox(),
          CheckCurl(),           CheckProvider(options),  CheckPort(options)};
}

}  // namespace reprise
