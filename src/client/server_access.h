#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/system.h"
#include "client/archive/chat_names.h"
#include "client/server_client.h"
#include "reprise/ids.h"
#include "reprise/options.h"
#include "reprise/result.h"

// How commands find the server that uses a data folder.
namespace reprise {

struct RunningServer {
  std::string url;         // without a final slash
  std::string pid{};       // of its process; empty: unknown
  std::string settings{};  // digest of the settings that turns must run with; empty: any
};

// The server named by --url or REPRISE_URL, whether it runs or not; nullopt if none is named. kInvalidArgument if the
// text is not the URL of a server.
Result<std::optional<RunningServer>> NamedServer(const std::string& url, const Environment& environment);

// The server that uses the data folder, read from the lock file; nullopt if none does. kConflict (reason
// "store_locked") if the process that has the folder does not listen, such as an import or a server that just starts.
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

// A client that sends the token of the configured file, if there is one. Fails as ReadToken does.
Result<std::unique_ptr<ServerClient>> ConnectTo(const RunningServer& server, const Options& options);

// A client of the named server, or else of the one that uses the data folder; null if there is neither. Waits for a
// server that is ending.
Result<std::unique_ptr<ServerClient>> OpenServer(const std::string& url, const Options& options,
                                                 const Environment& environment);

// Reads GET /chats page by page through `get`, newest first, until `visit` returns false. The failures of `get`.
Result<void> ForEachChat(const std::function<Result<Json>(const std::string& path)>& get,
                         const std::function<bool(const Json& chat)>& visit);
// The ids of the server's chats, sorted.
Result<std::vector<ChatId>> ChatsAt(ServerClient& server);
// Their names, read through `get`, which the result keeps.
ChatNames NamesAt(const std::function<Result<Json>(const std::string& path)>& get, const std::string& where);
// The same of a server, which must outlive the result. Fails as NotAnswering.
ChatNames NamesAt(ServerClient& server);

// `error` of a call. If no connection was made or a token is missing, the message names the URL and the next step.
Error NotAnswering(Error error, const ServerClient& server);

}  // namespace reprise
