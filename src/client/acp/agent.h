#pragma once

#include "client/server_link.h"

namespace reprise::acp {

// An agent of the Agent Client Protocol, version 1 (agentclientprotocol.com): JSON-RPC messages, one per line. A
// running server does all the work; this has no agent loop and no rules of its own. Returns the exit status when the
// client closes its end or stops reading.
int RunAgent(ServerLink& link, int in, int out);

}  // namespace reprise::acp
