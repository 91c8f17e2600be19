#pragma once

#include "http/router.h"
#include "http/routes.h"

namespace reprise {

// Speech into text, text into speech.
void AddAudioRoutes(Router& router, const HandlerContext& context);

}  // namespace reprise
