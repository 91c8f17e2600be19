#include "client/server_access.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/private_file.h"
#include "base/try.h"
#include "store/data_folder.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kPatienceWithEnding{3};

}  // namespace

Result<std::optional<RunningServer>> NamedServer(const std::string& url, const Environment& environment) {
  const auto variable = environment("REPRISE_URL");
  std::string named = !url.empty() ? url : variable.value_or("");
  if (named.empty()) return std::nullopt;
  const std::string from = url.empty() ? "REPRISE_URL" : "--url";
  while (named.ends_with('/')) named.pop_back();
  const std::size_t scheme = named.find("://");
  const std::string protocol = named.substr(0, scheme);
  const bool whole =
      scheme != std::string::npos && named.size() > scheme + 3 && (protocol == "http" || protocol == "https");
  if (whole && named.find_first_of("?# ", scheme) == std::string::npos) return RunningServer{.url = std::move(named)};
  return Fail(ErrorCode::kInvalidArgument, from + " must be the URL of a server, like http://127.0.0.1:8000");
}

Result<std::optional<RunningServer>> FindServer(const Options& options) {
  auto holder = TRY(DirectoryLock::FindHolder(LockFile(options.data_dir)));
  if (!holder) return std::nullopt;
  if (!holder->url.empty()) return RunningServer{.url = std::move(holder->url), .pid = std::move(holder->pid)};
  const std::string& pid = holder->pid;
  return Fail(Refused(Reason::kStoreLocked, (pid.empty() ? "another process" : "process " + pid) +
                                                " uses the data folder " + options.data_dir +
                                                " and takes no requests yet; try again when it is ready or has ended"));
}

Result<std::unique_ptr<ServerClient>> ConnectTo(const RunningServer& server, const Options& options) {
  std::string token;
  if (!options.token_file.empty()) {
    token = TRY(ReadToken(options.token_file));
  }
  return std::make_unique<ServerClient>(server.url, std::move(token), server.settings);
}

Result<std::unique_ptr<ServerClient>> OpenServer(const std::string& url, const Options& options,
                                                 const Environment& environment) {
  if (const auto named = TRY(NamedServer(url, environment))) return ConnectTo(*named, options);
  const auto deadline = DirectoryLock::Clock::now() + kPatienceWithEnding;
  const std::string lock_file = LockFile(options.data_dir);
  for (bool has_settled = false;;) {
    const auto found = FindServer(options);
    if (!found && found.error().Is(Reason::kStoreLocked) && !std::exchange(has_settled, true) &&
        DirectoryLock::AwaitSettled(lock_file, deadline))
      continue;
    if (!found) return Fail(found.error());
    if (!*found) return nullptr;
    auto client = TRY(ConnectTo(**found, options));
    // A server that answers stays while this client is connected. One whose own client is gone may just be ending.
    const auto there = client->Call("GET", "/healthz");
    const Loss loss = there ? Loss::kNone : HowLost(there.error());
    const bool is_ending = loss == Loss::kNeverReached || loss == Loss::kEnding;
    if (!is_ending || !DirectoryLock::AwaitRelease(lock_file, deadline)) return client;
  }
}

Result<void> ForEachChat(const std::function<Result<Json>(const std::string& path)>& get,
                         const std::function<bool(const Json& chat)>& visit) {
  for (std::string next = "?limit=500"; !next.empty();) {
    const Json page = TRY(get("/chats" + next));
    for (const Json& chat : ListedIn(page, "chats")) {
      if (!visit(chat)) return {};
    }
    const std::string cursor = TextMember(page, "next");
    next = cursor.empty() ? "" : "?limit=500&cursor=" + cursor;
  }
  return {};
}

Result<std::vector<ChatId>> ChatsAt(ServerClient& server) {
  std::vector<ChatId> chats;
  const auto get = [&](const std::string& path) { return server.Call("GET", path); };
  TRY(ForEachChat(get, [&](const Json& chat) {
    if (auto id = ChatId::Parse(TextMember(chat, "id"))) chats.push_back(*std::move(id));
    return true;
  }));
  std::ranges::sort(chats);
  return chats;
}

ChatNames NamesAt(const std::function<Result<Json>(const std::string& path)>& get, const std::string& where) {
  const auto has = [get](const ChatId& chat) -> Result<bool> {
    auto said = get("/chats/" + chat.str() + "?limit=1&state=none");
    if (said || said.error().reason.starts_with("integrity_")) return true;
    if (said.error().Is(Reason::kNotFound)) return false;
    return Fail(std::move(said.error()));
  };
  const auto all = [get]() -> Result<std::vector<NamedChat>> {
    std::vector<NamedChat> chats;
    TRY(ForEachChat(get, [&](const Json& chat) {
      chats.push_back({TextMember(chat, "id"), TextMember(chat, "title")});
      return true;
    }));
    return chats;
  };
  return {.has = has, .all = all, .where = "in " + where};
}

ChatNames NamesAt(ServerClient& server) {
  return NamesAt(
      [&](const std::string& path) -> Result<Json> {
        auto said = server.Call("GET", path);
        if (!said) return Fail(NotAnswering(std::move(said.error()), server));
        return said;
      },
      server.url());
}

Loss HowLost(const Error& error) {
  for (const Reason reason :
       {Reason::kConnectionFailed, Reason::kConnectTimeout, Reason::kNameNotResolved, Reason::kTlsFailed}) {
    if (error.Is(reason)) return Loss::kNeverReached;
  }
  if (error.Is(Reason::kConnectionLost)) return Loss::kBroken;
  if (error.Is(Reason::kStopping)) return Loss::kEnding;
  if (error.Is(Reason::kIdleTimeout)) return Loss::kSilent;
  return Loss::kNone;
}

Error NotAnswering(Error error, const ServerClient& server) {
  // The server's messages are kept; the transport's do not name the URL.
  if (error.Is(Reason::kUnauthenticated)) {
    error.message = server.url() + " wants a token (--token-file names the file that has it)";
    return error;
  }
  if (HowLost(error) != Loss::kNeverReached) return error;
  error.message = "no Reprise server answers at " + server.url() + " (`reprise serve` starts one): " + error.message;
  return error;
}

}  // namespace reprise
