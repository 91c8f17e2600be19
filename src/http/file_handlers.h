#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// The files of chats: /chats/{chat}/files.
void AddFileRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
