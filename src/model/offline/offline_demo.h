#pragma once

#include <vector>

#include "model/offline/offline_response.h"
#include "reprise/tool.h"

namespace reprise {

// The demonstration: a story in rounds. It follows from the messages since the user's (`turn`) and the tools there are
// alone, so it survives a restart, an edit and a replay. What is rejected, fails or is not there is left out, and the
// story goes on. It writes one file, reprise-demo.txt in the workspace, and never over one that it did not make.
// `asks_people`: whether somebody is there to answer; otherwise it asks no question.
OfflineResponse NextOfDemo(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people);

}  // namespace reprise
