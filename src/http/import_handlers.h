#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// A whole chat that comes in: /import.
void AddImportRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
