#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// GET /chats/{chat}/editor, PUT /chats/{chat}/editor, POST /chats/{chat}/editor/{request}: an editor's files
// count, with what nobody has saved, and its tools are the chat's.
void AddEditorRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
