#include "http/routes.h"

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
  AddWorkspaceRoutes(router, context);
  AddImportRoutes(router, context);
  AddFeedRoutes(router, context);
  // One for all doors: they lead to the same chats.
  const auto conversations = std::make_shared<Conversations>(context.engine);
  AddOpenAiRoutes(router, context, conversations);
  AddAgUiRoutes(router, context, conversations);
  AddMcpRoutes(router, context, conversations);
  AddPageRoutes(router, context);
  AddServiceRoutes(router, context);
  AddInstructionRoutes(router, context);
  return router;
}

}  // namespace reprise
