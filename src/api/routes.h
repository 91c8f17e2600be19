#pragma once

#include "reprise/engine.h"
#include "wire/router.h"

namespace reprise {

class ChatFeed;
class Gate;
class Site;
struct ServerOptions;

// What the handlers of all tenants have in common.
struct SharedContext {
  const ServerOptions& options;
  const Gate& gate;
  const Site& site;
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

// Listing, creating, reading, renaming and deleting chats, and switching their branch.
void AddChatRoutes(Router& router, const HandlerContext& context);

// GET /chats/{chat}/editor, PUT /chats/{chat}/editor, POST /chats/{chat}/editor/{request}: an editor's files
// count, with what nobody has saved, and its tools are the chat's.
void AddEditorRoutes(Router& router, const HandlerContext& context);

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

// Starting, editing, regenerating, cancelling and watching interactions.
void AddRunRoutes(Router& router, const HandlerContext& context);

// What the server is and how it is: health, metrics, tools, models, the API's description.
void AddServiceRoutes(Router& router, const HandlerContext& context);

// Files of the workspace that a person names in a message: GET /workspace/files finds them, and
// POST /chats/{chat}/workspace/files makes one a file of the chat.
void AddWorkspaceRoutes(Router& router, const HandlerContext& context);

// /audio: recordings as text, text as speech.
void AddAudioRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
