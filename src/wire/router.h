#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/message.h"

namespace reprise {

// Which threads run a handler. Approvals and cancellation have their own, so that slow reads never hold them up; so has
// what waits for others' servers, so that it holds up nothing else. Files are work, unless they are in a bucket. What
// may take seconds waits in a line of its own, so that it holds up nothing else of the same person either.
enum class Lane { kWork, kLong, kControl, kRemote, kFiles };

// What a request's body may be.
enum class BodyKind {
  kJson,          // application/json
  kFile,          // anything, up to the size of a file
  kAudio,         // likewise of a recording
  kChat,          // application/json, up to the size of a whole chat
  kConversation,  // application/json, up to the size of what a foreign client tells of a chat with each request
};

// Who may use a route (beside the single user, who may use all).
enum class Access {
  kTenant,         // a user for what is the user's own, and the operator for what is the operator's
  kTenantOrAdmin,  // likewise, and with ?user=NAME an admin of the user's org
  kOrgAdmin,       // an admin of an org, and the operator
  kOperator,       // what is of the whole server
  kAnybody,        // what is nobody's
};

struct Route {
  std::string method;
  std::string path;                  // as it was added; what logs call the route
  std::vector<std::string> pattern;  // "*" is one segment that is captured
  Handler handler;
  Lane lane = Lane::kWork;
  BodyKind body = BodyKind::kJson;
  Access access = Access::kTenant;
};

// Changes the reply of an error into the form that some routes' clients expect.
using ErrorForm = void (*)(Reply&);

// Finds the handler of a request by the segments of its path. Immutable after the last Add, then thread-safe.
class Router {
 public:
  // `path` as "/chats/*/interactions".
  void Add(std::string method, std::string_view path, Handler handler, Lane lane = Lane::kWork,
           BodyKind body = BodyKind::kJson, Access access = Access::kTenant);

  struct Match {
    const Route* route = nullptr;
    std::vector<std::string> captures = {};
    std::optional<Reply> refusal = {};  // 400, 404 or 405, if there is no route
  };
  // HEAD is answered by the GET routes.
  Match Find(std::string_view method, std::string_view target) const;

  // Sends errors for paths that begin with `prefix` in this form, also if no route matches.
  void SetErrorForm(std::string prefix, ErrorForm form);
  // The form for errors of this request; null: unchanged.
  ErrorForm ErrorFormOf(std::string_view target) const;

 private:
  std::vector<Route> routes_;
  std::vector<std::pair<std::string, ErrorForm>> error_forms_;  // by prefix
};

// Makes handlers from functions whose first parameter is `of`, which must outlive the handlers.
template <typename Of>
auto HandlersOf(Of& of) {
  return [&of](Result<Outcome> (*handler)(Of&, const Request&)) -> Handler {
    return [&of, handler](const Request& request) { return handler(of, request); };
  };
}

}  // namespace reprise
