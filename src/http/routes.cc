#include "http/routes.h"

#include <memory>

#include "doors/conversations.h"
#include "http/agui_handlers.h"
#include "http/approval_handlers.h"
#include "http/audio_handlers.h"
#include "http/chat_handlers.h"
#include "http/editor_handlers.h"
#include "http/feed_handlers.h"
#include "http/file_handlers.h"
#include "http/grant_handlers.h"
#include "http/import_handlers.h"
#include "http/instruction_handlers.h"
#include "http/mcp_handlers.h"
#include "http/openai_handlers.h"
#include "http/page_handlers.h"
#include "http/run_handlers.h"
#include "http/service_handlers.h"
#include "http/workspace_handlers.h"

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
