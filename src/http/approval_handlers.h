#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Listing and answering approvals and questions of tools.
void AddApprovalRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
