#pragma once

#include "reprise/engine.h"
#include "wire/router.h"

namespace reprise {

class ChatFeed;
class Gate;
class Site;
struct ServerOptions;

// Shared by the handlers of all tenants.
struct SharedContext {
  const ServerOptions& options;
  const Gate& gate;
  const Site& site;
};
// What the handlers of one tenant use; outlives the router.
struct HandlerContext {
  Engine& engine;
  ChatFeed& feed;
  const SharedContext& shared;
};

// The folder of ?chat_id=, or of ?workspace=; the server's without either.
Result<std::shared_ptr<const WorkspaceParts>> WorkspaceInQuery(const Engine& engine, const Request& request);

// All routes of the server.
Router MakeRoutes(const HandlerContext& context);

// Listing and answering approvals and questions of tools.
void AddApprovalRoutes(Router& router, const HandlerContext& context);

// Listing, creating, reading, renaming and deleting chats, and switching their branch.
void AddChatRoutes(Router& router, const HandlerContext& context);

// GET and PUT /chats/{chat}/editor, POST /chats/{chat}/editor/{request}: a connected editor serves files with their
// unsaved changes, and its tools belong to the chat.
void AddEditorRoutes(Router& router, const HandlerContext& context);

// GET /events and GET /search, which concern all chats.
void AddFeedRoutes(Router& router, const HandlerContext& context);

// The files of chats: /chats/{chat}/files.
void AddFileRoutes(Router& router, const HandlerContext& context);

// The background jobs of chats: /chats/{chat}/jobs.
void AddJobRoutes(Router& router, const HandlerContext& context);

// Listing and revoking grants, of one chat and standing ones.
void AddGrantRoutes(Router& router, const HandlerContext& context);

// POST /import, which takes a whole chat.
void AddImportRoutes(Router& router, const HandlerContext& context);

// Listing the workspace's files of instructions for agents, and allowing one of them.
void AddInstructionRoutes(Router& router, const HandlerContext& context);

// GET /, GET /assets/NAME and POST /login.
void AddPageRoutes(Router& router, const HandlerContext& context);

// The devices that are told when something waits: /push/devices.
void AddPushRoutes(Router& router, const HandlerContext& context);

// What the operator sees and changes in the page's settings: MCP servers, with log-ins there, and approval rules.
void AddSettingsRoutes(Router& router, const HandlerContext& context);

// Starting, editing, regenerating, cancelling and watching interactions.
void AddRunRoutes(Router& router, const HandlerContext& context);

// The server and its state: health, metrics, tools, models, usage, audit, users, the API's description.
void AddServiceRoutes(Router& router, const HandlerContext& context);

// Workspace files that a person names in a message: GET /workspace/files finds them, and POST
// /chats/{chat}/workspace/files copies one into the chat.
void AddWorkspaceRoutes(Router& router, const HandlerContext& context);

// /audio: speech to text and text to speech.
void AddAudioRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
