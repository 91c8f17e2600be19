#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// GET / and GET /assets/NAME.
void AddPageRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
