#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/error.h"
#include "reprise/message.h"
#include "reprise/tool.h"

namespace reprise {

// What the offline model says in one round, worked out before any of it is streamed.
struct OfflineResponse {
  std::string thinking = {};
  std::string text = {};
  std::vector<ToolCall> tool_calls = {};
  std::chrono::milliseconds pause{};  // between two words; zero: all at once
  std::optional<Error> failure = {};  // how it ends, after what it says
  bool fails_first_attempt = false;   // with `failure` and not a word; the second attempt says all and does not fail
};

// What the offline model says and plays: data.json, which the build puts into the binary (data.cc.in).
const Json& OfflineData();
// The lines that it has under this name.
std::string OfflineText(std::string_view name);

// What the offline model shows without a tool; see OfflineHelp.

OfflineResponse ThinkAbout(std::string text);

// Ends as `reason` says: "once" fails the first attempt alone, others play a failure of a provider, every time. What is
// no reason is answered with those there are.
OfflineResponse FailFor(std::string_view reason);

// The first attempt of a request is answered with this; the second may pass.
Error FailedOnce(std::string message);

// The demonstration: a story in rounds. It follows from the messages since the user's (`turn`) and the tools there are
// alone, so it survives a restart, an edit and a replay. What is rejected, fails or is not there is left out, and the
// story goes on. It writes one file, reprise-demo.txt in the workspace, and never over one that it did not make.
// `asks_people`: whether somebody is there to answer; otherwise it asks no question.
OfflineResponse NextOfDemo(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people);

// Behind the answer to a message with attached files: their names and sizes. Empty if it has none.
std::string TellAttachments(std::string_view message);

// How many words a text has: the offline model counts tokens so.
std::int64_t CountWords(std::string_view text);

}  // namespace reprise
