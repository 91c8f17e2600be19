#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/metrics.h"
#include "base/json.h"
#include "doors/conversations.h"
#include "doors/openai/request_notes.h"
#include "reprise/audio.h"
#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/tool.h"
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

 private:
  std::vector<Route> routes_;
};

class Gate;

class ChatFeed;
struct PageAsset;

// What the handlers of all tenants have in common.
struct SharedContext {
  const HttpMetrics& metrics;
  const std::string& openapi;
  const std::function<Result<void>()>& ready;
  const std::function<std::vector<Error>()>& failing;
  const Gate& gate;
  std::span<const PageAsset> page;                 // empty: there is none
  std::function<Engine::Counters()> counters;      // of all tenants
  std::function<std::vector<Principal>()> people;  // who have been here; null: there is one user
  ToolServerLogins* logins = nullptr;              // null: there are no servers of tools
};
// What the handlers of one work on; outlives the router.
struct HandlerContext {
  Engine& engine;
  ChatFeed& feed;
  const SharedContext& shared;
};

// Every route of the server (DESIGN section 6).
Router MakeRoutes(const HandlerContext& context);

// Listing and answering approvals and questions of tools.
void AddApprovalRoutes(Router& router, const HandlerContext& context);

// The chats, the newest first (schemas/chat_list.schema.json). `cursor`: "next" of the page before.
Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor);

// Listing, creating, reading, renaming and deleting chats, and switching their branch.
void AddChatRoutes(Router& router, const HandlerContext& context);

// GET /chats/{chat}/editor, PUT /chats/{chat}/editor, POST /chats/{chat}/editor/{request}: an editor's files
// count, with what nobody has saved, and its tools are the chat's.
void AddEditorRoutes(Router& router, const HandlerContext& context);

// Where a text was said (schemas/search_result.schema.json).
Result<Json> SearchResultOf(Engine& engine, const std::string& text, const std::optional<ChatId>& chat,
                            std::size_t limit);

// GET /events, and what else concerns all chats together.
void AddFeedRoutes(Router& router, const HandlerContext& context);

// The files of chats: /chats/{chat}/files.
void AddFileRoutes(Router& router, const HandlerContext& context);

// Listing and revoking what people have granted, in one chat and for always.
void AddGrantRoutes(Router& router, const HandlerContext& context);

// A whole chat that comes in: /import.
void AddImportRoutes(Router& router, const HandlerContext& context);

// What people have written down for agents that work in the workspace: which files there are, and allowing one.
void AddInstructionRoutes(Router& router, const HandlerContext& context);

// GET /, GET /assets/NAME and POST /login.
void AddPageRoutes(Router& router, const HandlerContext& context);

// Where the page is, as this client reaches us; empty: there is none. REQUIRES: the gate has let the host pass.
std::string PageAddress(const HandlerContext& context, const Request& request);

// Starting, editing, regenerating, cancelling and watching interactions.
void AddRunRoutes(Router& router, const HandlerContext& context);

// What the server is and how it is: health, metrics, tools, models, the API's description.
void AddServiceRoutes(Router& router, const HandlerContext& context);

// Files of the workspace that a person names in a message: GET /workspace/files finds them, and
// POST /chats/{chat}/workspace/files makes one a file of the chat.
void AddWorkspaceRoutes(Router& router, const HandlerContext& context);

// GET /chats/{chat_id}: a chat's history or a page of it, written out while it is read.
Result<Outcome> GetHistory(Engine& engine, const Request& request);
// GET /chats/{chat_id}/export.
Result<Outcome> Export(Engine& engine, const Request& request);

// AG-UI 1.0 (docs/ag-ui.md): POST /agui.
void AddAgUiRoutes(Router& router, const HandlerContext& context, std::shared_ptr<Conversations> conversations);

// The server's side of the Model Context Protocol (docs/mcp-server.md): /mcp.
void AddMcpRoutes(Router& router, const HandlerContext& context, std::shared_ptr<Conversations> conversations);

// OpenAI's interfaces (docs/openai.md): Chat Completions, Responses, models, audio.
void AddOpenAiRoutes(Router& router, const HandlerContext& context, std::shared_ptr<Conversations> conversations);

// OpenAI's Conversations (docs/openai.md): chats by that interface, and the items that responses are made of.
void AddConversationRoutes(Router& router, const HandlerContext& context, std::shared_ptr<RequestNotes> notes);

void AddAudioRoutes(Router& router, const HandlerContext& context);

// The same for routes of another form. `audio` may be null: kNotFound (reason "not_configured"). `content_type` is a
// constant.
Result<Outcome> AwaitTranscription(Audio* audio, TranscriptionRequest speech,
                                   const std::function<Reply(std::string)>& reply);
Result<Outcome> AwaitSpeech(Audio* audio, SpeechRequest text, std::string_view content_type);

}  // namespace reprise
