#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Listing and answering approvals.
void AddApprovalRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
