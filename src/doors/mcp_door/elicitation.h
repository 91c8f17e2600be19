#pragma once

#include "base/json.h"
#include "doors/mcp_door/message.h"
#include "reprise/approval.h"
#include "reprise/result.h"

// Questions to a person as MCP's elicitations: forms that the client shows, or an address that it opens.
namespace reprise::mcp_door {

// The params of elicitation/create for an event approval_required or input_required.
Json ApprovalForm(const event::ApprovalRequired& asked);
Json InputForm(const event::InputRequired& asked, bool can_open_urls);

// The answer in the client's result {"action", "content"}. Dismissing a question is no agreement: the call is rejected,
// or the question declined. kInvalidArgument if the answer cannot be used; the question stays open.
Result<ApprovalAnswer> ApprovalIn(const event::ApprovalRequired& asked, const Json& result);
Result<InputAnswer> InputIn(const event::InputRequired& asked, const Json& result);

}  // namespace reprise::mcp_door
