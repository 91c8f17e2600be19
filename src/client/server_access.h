#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "base/system.h"
#include "client/server_client.h"
#include "reprise/ids.h"
#include "reprise/options.h"
#include "reprise/result.h"

// How commands come to the server that uses a data folder.
namespace reprise {

struct RunningServer {
  std::string url;         // without a slash at its end
  std::string pid{};       // of its process; empty: it is not known
  std::string settings{};  // the digest of what turns must run with there; empty: as the server likes
};

// The server that was named, by --url or REPRISE_URL, whether it runs or not; nullopt: none was. kInvalidArgument if
// that is no URL of a server.
Result<std::optional<RunningServer>> NamedServer(const std::string& url, const Environment& environment);

// The server that uses the data folder, by what its lock file says; nullopt: none does. kConflict (reason
// "store_locked") if a process has the folder that does not listen: an import, say, or a server that just starts.
Result<std::optional<RunningServer>> FindServer(const Options& options);

// How a call lost its server.
enum class Loss {
  kNone,          // the server answered, if only with an error
  kNeverReached,  // no connection was made, so nothing of the request arrived
  kBroken,        // the connection broke, so the server may have done what was asked
  kEnding,        // the server refuses because it is stopping
  kSilent,        // the server sent nothing for too long
};
Loss HowLost(const Error& error);

// With the token of the configured file, if there is one; the failures of ReadToken.
Result<std::unique_ptr<ServerClient>> ConnectTo(const RunningServer& server, const Options& options);

// The server that was named, else the one that uses the data folder, ready to be called; null: neither.
Result<std::unique_ptr<ServerClient>> OpenServer(const std::string& url, const Options& options,
                                                 const Environment& environment);

// The ids of the chats of a server, sorted.
Result<std::vector<ChatId>> ChatsAt(ServerClient& server);

// `error` of a call; if it is that nobody answers there, one that names the URL and the next step.
Error NotAnswering(Error error, const ServerClient& server);

}  // namespace reprise
