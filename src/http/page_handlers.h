#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// GET /, GET /assets/NAME and POST /login.
void AddPageRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
