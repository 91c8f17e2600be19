#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Starting, editing, regenerating, cancelling and watching interactions.
void AddRunRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
