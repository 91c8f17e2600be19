#pragma once

#include <string>

#include "http/message.h"
#include "http/routes.h"

namespace reprise {

// Where the page is, as this client reaches us; empty: there is none. REQUIRES: the gate has let the host pass.
std::string PageAddress(const HandlerContext& context, const Request& request);

}  // namespace reprise
