#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/message.h"

namespace reprise {

// Selects the threads that run a handler. Approvals and cancellation (kControl) have their own, so slow reads never
// delay them. So do handlers that ask other servers (kRemote), and file handlers (kFiles) if files are in a bucket;
// otherwise files share the threads of kWork. Handlers that may take seconds (kLong) use these threads too, but have a
// line of their own, so they delay no other work of the same person.
enum class Lane { kWork, kLong, kControl, kRemote, kFiles };

// What the body of a request may be.
enum class BodyKind {
  kJson,          // application/json
  kFile,          // any type, as large as a file
  kAudio,         // any type, as large as a recording
  kChat,          // application/json, as large as a whole chat
  kConversation,  // application/json, as large as the messages that a foreign client sends each time
};

// Who may use a route. A single user (no `people`) may use all routes.
enum class Access {
  kTenant,         // users, and the operator, each for what is their own
  kTenantOrAdmin,  // the same, and with ?user=NAME an admin of that user's org
  kOrgAdmin,       // org admins and the operator
  kOperator,       // the operator, for what concerns the whole server
  kAnybody,        // everybody, because the route shows no user data
};

struct Route {
  std::string method;
  std::string path;                  // as it was added; the log names the route so
  std::vector<std::string> pattern;  // "*" captures one segment, a last "**" all that follow
  Handler handler;
  Lane lane = Lane::kWork;
  BodyKind body = BodyKind::kJson;
  Access access = Access::kTenant;
};

// Rewrites an error reply into the form that the clients of some routes expect.
using ErrorForm = void (*)(Reply&);

// Finds the route of a request by the segments of its path. Immutable after the last Add, and thread-safe from then on.
class Router {
 public:
  // `path` is written like "/chats/*/interactions".
  void Add(std::string method, std::string_view path, Handler handler, Lane lane = Lane::kWork,
           BodyKind body = BodyKind::kJson, Access access = Access::kTenant);

  struct Match {
    const Route* route = nullptr;
    std::vector<std::string> captures = {};
    std::optional<Reply> refusal = {};  // 400, 404 or 405 if no route matches
  };
  // GET routes answer HEAD too.
  Match Find(std::string_view method, std::string_view target) const;

  // Sends errors in this form for all paths that begin with `prefix`, even if no route matches.
  void SetErrorForm(std::string prefix, ErrorForm form);
  // The form of errors for this request; null if they stay as they are.
  ErrorForm ErrorFormOf(std::string_view target) const;

 private:
  std::vector<Route> routes_;
  std::vector<std::pair<std::string, ErrorForm>> error_forms_;  // by prefix
};

// Makes handlers from functions whose first parameter is `of`. `of` must outlive the handlers.
template <typename Of>
auto HandlersOf(Of& of) {
  return [&of](Result<Outcome> (*handler)(Of&, const Request&)) -> Handler {
    return [&of, handler](const Request& request) { return handler(of, request); };
  };
}

}  // namespace reprise
