#pragma once

#include <memory>

#include "doors/conversations.h"
#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// AG-UI 1.0 (docs/ag-ui.md): POST /agui.
void AddAgUiRoutes(Router& router, const HandlerContext& context, std::shared_ptr<Conversations> conversations);

}  // namespace reprise
