#include "doors/api/routes.h"

#include <memory>

#include "doors/api/server.h"
#include "doors/door.h"

namespace reprise {

Router MakeRoutes(const HandlerContext& context) {
  Router router;
  AddRunRoutes(router, context);
  AddApprovalRoutes(router, context);
  AddGrantRoutes(router, context);
  AddChatRoutes(router, context);
  AddEditorRoutes(router, context);
  AddAudioRoutes(router, context);
  AddFileRoutes(router, context);
  AddJobRoutes(router, context);
  AddWorkspaceRoutes(router, context);
  AddImportRoutes(router, context);
  AddFeedRoutes(router, context);
  const Door door{.engine = context.engine,
                  .conversations = std::make_shared<Conversations>(context.engine),
                  .has_page = !context.shared.options.page.empty()};
  openai::AddRoutes(router, door);
  ag_ui::AddRoutes(router, door);
  mcp_door::AddRoutes(router, door);
  AddPageRoutes(router, context);
  AddPushRoutes(router, context);
  AddServiceRoutes(router, context);
  AddSettingsRoutes(router, context);
  AddInstructionRoutes(router, context);
  return router;
}

}  // namespace reprise
