#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/checks.h"
#include "app/factories.h"
#include "app/keys.h"
#include "app/options.h"
#include "approval/rules.h"
#include "base/authorities.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/shared_library.h"
#include "base/system.h"
#include "base/text.h"
#include "store/data_folder.h"
#include "store/file_names.h"
#include "tools/documents/sandboxed_reader.h"
#include "tools/shell/sandbox.h"

namespace reprise {
namespace {

Finding Passed(std::string check, std::string words) { return {std::move(check), Verdict::kOk, std::move(words)}; }
Finding Doubtful(std::string check, std::string words) {
  return {std::move(check), Verdict::kWarning, std::move(words)};
}
Finding Failed(std::string check, std::string words) { return {std::move(check), Verdict::kFailure, std::move(words)}; }

Finding CheckKeyFile(const Options& options) {
  const std::string path = KeyFileOf(options);
  PosixFileSystem disk;
  // Does not prompt: without a passphrase file it is enough that the key file needs one.
  const auto keys =
      LoadKeyFile(path, disk, options.passphrase_file.empty() ? PassphraseSource() : PassphraseFrom(options));
  const FolderMode mode = options.plain ? FolderMode::kPlain : FolderMode::kSealed;
  const bool open = options.plain || keys || keys.error().code == ErrorCode::kNotFound;
  if (open) {
    const auto found = ReadFolderKeys(options.data_dir, mode, keys ? &*keys : nullptr, disk);
    if (!found) return Failed("key file", found.error().message);
    if (auto sound = CheckFolderKeys(*found, mode, options.data_dir, path); !sound) {
      return Failed("key file", sound.error().message);
    }
    const auto sound = CheckKeysOfDatabase(options, keys ? &*keys : nullptr);
    // Another check tells whether the database can be reached.
    if (!sound && sound.error().code == ErrorCode::kForbidden) return Failed("key file", sound.error().message);
  }
  if (options.plain) return Doubtful("key file", "chats are stored unencrypted (plain), so no key is needed");
  if ((keys || keys.error().Is(Reason::kPassphraseNeeded)) && OthersMayReplace(path)) {
    return Doubtful("key file", "other users may replace " + path + "; make its folder yours alone (chmod 700)");
  }
  if (keys) {
    return Passed("key file",
                  path + " holds " + CountOf(keys->keys().size(), "key") + ", and only its owner can read it");
  }
  if (keys.error().code == ErrorCode::kNotFound) {
    return Doubtful("key file", path + " is not there yet; the first start creates it");
  }
  if (keys.error().Is(Reason::kPassphraseNeeded)) return Passed("key file", path + " is protected by a passphrase");
  return Failed("key file", keys.error().message);
}

Finding CheckToken(const Options& options) {
  if (options.token_file.empty() && options.auth.has_people())
    return Passed("token", "every request must show the token of a user (\"auth\"), and there is none for an operator");
  if (options.token_file.empty())
    return Passed("token", "the server asks for none, and only programs of its own user on this machine can connect");
  const auto token = ReadToken(options.token_file);
  return token ? Passed("token", options.token_file + " can be read by its owner only")
               : Failed("token", token.error().message);
}

// Why a start could not make the folder; empty: it could. Tries it with another name, which is removed at once: what
// the modes say is not all (/proc, a file system that is mounted read-only).
std::string WhyNotMade(const std::string& path) {
  const std::string above = NearestThere(ParentDirectory(FullPath(path)));
  std::string probe = above + (above.ends_with('/') ? "" : "/") + ".reprise-probe.XXXXXX";
  if (::mkdtemp(probe.data()) != nullptr) {
    ::rmdir(probe.c_str());
    return {};
  }
  return path + " is not there, and cannot be made: no folder can be made in " + above + " (" + std::strerror(errno) +
         "); name another one with --data-dir";
}

Finding CheckDataFolder(const Options& options) {
  struct stat status {};
  if (::stat(options.data_dir.c_str(), &status) != 0) {
    if (errno == ENOENT) {
      std::string why = WhyNotMade(options.data_dir);
      return why.empty() ? Passed("data folder", options.data_dir + " is not there yet; the first start creates it")
                         : Failed("data folder", std::move(why));
    }
    return Failed("data folder", options.data_dir + " cannot be used: " + std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode))
    return Failed("data folder", options.data_dir + " is not a folder; name another one with --data-dir");
  if (::access(options.data_dir.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Failed(
        "data folder",
        options.data_dir + " cannot be written by this user; change its mode, or name another one with --data-dir");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Doubtful(
        "data folder",
        options.data_dir + " can be entered by other users, who see the names of the chats; run chmod 700 on it");
  }
  return Passed("data folder", options.data_dir + " is there, and only its owner can enter it");
}

Finding CheckLock(const Options& options) {
  const std::string path = LockFile(options.data_dir);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return Passed("data folder lock", "no server is using this folder");
  // A shared lock for a moment is refused exactly while a server holds its exclusive one.
  const bool free = ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0;
  return free ? Passed("data folder lock", "no server is using this folder")
              : Doubtful("data folder lock", "a server is using this folder now; stop it before you start another one");
}

Finding CheckWorkspace(const Options& options) {
  if (!options.has_workspace()) {
    return Passed("workspace",
                  "there is none (workspace_mode), so no tool uses files of this machine or runs commands");
  }
  if (const auto path = WorkspaceOf(options); !path) return Failed("workspace", path.error().message);
  return Passed("workspace", options.workspace + " is there");
}

// Folders of PATH whose programs sandboxed commands cannot find, because they lie in the home and are not configured.
std::string UnseenFolders(const Options& options) {
  const char* const path = std::getenv("PATH");
  const char* const home = std::getenv("HOME");
  if (path == nullptr || home == nullptr || *home != '/') return {};
  std::vector<std::string> seen = options.tools.sandbox_read;
  seen.insert(seen.end(), options.tools.sandbox_write.begin(), options.tools.sandbox_write.end());
  seen.push_back(FullPath(options.workspace));
  std::set<std::string> unseen;
  for (const std::filesystem::path& folder : SearchFolders(path)) {
    std::error_code error;
    if (!LiesBeneath(folder, home) || !std::filesystem::is_directory(folder, error)) continue;
    if (std::ranges::any_of(seen, [&](const auto& each) { return LiesBeneath(folder, each); })) continue;
    unseen.insert(folder.string());
  }
  return Joined(unseen, ", ");
}

Finding CheckSandbox(const Options& options) {
  const char* const home = std::getenv("HOME");
  const Sandbox sandbox({.workspace = Resolved(FullPath(options.workspace)).string(),
                         .home = home == nullptr ? "" : home,
                         .readable_paths = options.tools.sandbox_read,
                         .writable_paths = options.tools.sandbox_write,
                         .limits = options.tools.limits});
  if (!options.has_workspace()) {
    // Documents are read in it all the same.
    const std::string& missing = sandbox.state().missing;
    return missing.empty() ? Passed("sandbox", "bubblewrap works; no commands run, because there is no workspace")
                           : Doubtful("sandbox", "documents cannot be read, because the sandbox lacks " + missing);
  }
  if (const Sandbox::State state = sandbox.state(); !state.missing.empty()) {
    return Doubtful("sandbox", (state.available ? "the sandbox for commands lacks " : "commands have no sandbox: ") +
                                   state.missing +
                                   "; so each command is asked about, whatever mode or rule. Install bubblewrap, and "
                                   "allow users to make user namespaces");
  }
  const std::string unseen = UnseenFolders(options);
  if (unseen.empty()) return Passed("sandbox", "bubblewrap works, and shell commands run in it");
  return Passed("sandbox", "bubblewrap works, and shell commands run in it; they do not see " + unseen +
                               " of PATH: name what they need under tools.sandbox_paths");
}

Finding CheckDocuments() {
  const char* const path = std::getenv("PATH");
  const bool reads_pdf = !FindPdfReader(path == nullptr ? "" : path).empty(),
             reads_others = !FindOfficeReader().empty();
  if (!reads_others) {
    return Doubtful("documents",
                    "reprise-document is missing beside reprise, so models get no text of docx, xlsx, pptx, "
                    "odt and HTML; install Reprise as a whole");
  }
  if (!reads_pdf) {
    return Doubtful("documents",
                    "pdftotext is not installed, so models that take no PDF get no text of them; install "
                    "poppler-utils");
  }
  return Passed("documents", "text of PDF and office documents can be read, in the sandbox");
}

// The libraries that are loaded when they are needed.
Finding CheckLibraries() {
  const auto loads = [](const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL) != nullptr; };
  if (!loads(kCurlLibrary)) {
    return Failed("libraries",
                  std::string(kCurlLibrary) + " cannot be loaded, so no provider can be reached; install libcurl");
  }
  std::string missing;
  const std::pair<const char*, std::string> others[] = {{kEditLibrary, "the terminal client"},
                                                        {kYamlLibrary, "skills"},
                                                        {kSqliteLibrary, "sessions of goose, opencode"},
                                                        {kPostgresLibrary, "chats in PostgreSQL"},
                                                        {kHiredisLibrary, "Redis"},
                                                        {kSslLibrary, "Redis over TLS"}};
  for (const auto& [name, purpose] : others) {
    if (!loads(name)) missing += (missing.empty() ? "" : ", ") + (name + (" (" + purpose + ")"));
  }
  if (missing.empty()) return Passed("libraries", "all that are loaded when needed can be loaded");
  return Doubtful("libraries", "cannot be loaded: " + missing + "; install those whose purpose you have");
}

Finding CheckAuthorities() {
  const std::string file = AuthoritiesFile();
  if (file.empty()) {
    return Doubtful("certificates",
                    "no certificate authorities are found, so HTTPS fails; install ca-certificates, or name a file in "
                    "SSL_CERT_FILE");
  }
  return ::access(file.c_str(), R_OK) == 0 ? Passed("certificates", "HTTPS trusts those of " + file)
                                           : Failed("certificates", file + " cannot be read, so HTTPS fails");
}

Finding CheckModelSetting(const Options& options) {
  if (options.model == "offline") {
    return Doubtful("model",
                    "the offline model answers, which is a demonstration; set OPENAI_API_KEY or ANTHROPIC_API_KEY, "
                    "or choose another one with --model PROVIDER/NAME");
  }
  return Passed("model", options.model + " is chosen");
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
  if (!endpoint) return Failed("address", "the host " + options.host + " is not an IP address; give one with --host");
  const UniqueFd fd(::socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Failed("address", name + " cannot be used: " + std::strerror(errno));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // as the server does; a failure shows in bind
  const auto* address = reinterpret_cast<const sockaddr*>(&endpoint->address);
  const bool bound = ::bind(fd.get(), address, endpoint->length) == 0 && ::listen(fd.get(), 1) == 0;
  const int error = errno;
  if (bound) return Passed("address", name + " is free");
  if (error == EADDRINUSE)
    return Doubtful("address",
                    name + " is in use, perhaps by a running server; stop that, or choose another port with --port");
  return Failed("address", name + " cannot be used: " + std::strerror(error));
}

// The checked tools are not called, so they need no network.
class NoTransport final : public Transport {
 public:
  void Send(HttpRequest, HttpResponseHandler&, std::stop_token, Done done) override {
    done(Fail(ErrorCode::kUnavailable, "there is no network here"));
  }
};

std::optional<Finding> CheckToolRules(const Options& options) {
  const auto& rules = options.tools.rules;
  if (rules.empty()) return std::nullopt;
  NoTransport transport;
  ToolOptions tools{.workspace_directory = options.workspace, .transport = transport};
  tools.allow = options.tools.allow;
  tools.deny = options.tools.deny;
  const ToolCatalog catalog(std::move(tools));
  if (const auto checked = CheckRules(rules, *catalog.Current(), NamesOfServers(options)); !checked) {
    return Failed("tool rules", checked.error().message);
  }
  std::string words;
  for (const RuleAction action : {RuleAction::kDeny, RuleAction::kAsk, RuleAction::kAllow}) {
    for (const ToolRule& rule : rules) {
      if (rule.action != action) continue;
      words += (words.empty() ? "" : "; ") + std::string(ToString(action)) + " " + rule.tool +
               (rule.pattern ? " (" + *rule.pattern + ")" : "");
    }
  }
  return Passed("tool rules", "in force: " + words);
}

}  // namespace

std::vector<Finding> CheckHealth(const Options& options) {
  std::vector<Finding> findings = {CheckKeyFile(options),      CheckToken(options),     CheckDataFolder(options),
                                   CheckLock(options),         CheckWorkspace(options), CheckSandbox(options),
                                   CheckDocuments(),           CheckLibraries(),        CheckAuthorities(),
                                   CheckModelSetting(options), CheckPort(options)};
  if (auto rules = CheckToolRules(options)) findings.push_back(*std::move(rules));
  return findings;
}

}  // namespace reprise
