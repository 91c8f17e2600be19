#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Listing and revoking what people have granted, in one chat and for always.
void AddGrantRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
