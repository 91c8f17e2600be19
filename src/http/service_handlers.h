#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// What the server is and how it is: health, metrics, tools, models, the API's description.
void AddServiceRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
