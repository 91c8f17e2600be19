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

// The offline model's output of one round, computed before streaming starts.
struct OfflineResponse {
  std::string thinking = {};
  std::string text = {};
  std::vector<ToolCall> tool_calls = {};
  std::chrono::milliseconds pause{};  // between two words; zero: all at once
  std::optional<Error> failure = {};  // the error after the text
  bool fails_first_attempt = false;   // with `failure` and no text: the second attempt says everything and succeeds
};

// The offline model's texts and scenes: data.json, which the build embeds (data.cc.in).
const Json& OfflineData();
// The lines stored under this name.
std::string OfflineText(std::string_view name);

// The offline model's answers without a tool; see OfflineHelp.

OfflineResponse ThinkAbout(std::string text);

// Fails as `reason` says: "once" fails only the first attempt, other reasons play a provider's failure every time. An
// unknown reason gets the list of reasons as the answer.
OfflineResponse FailFor(std::string_view reason);

// The error of a request's first attempt; the second may succeed.
Error FailedOnce(std::string message);

// The demonstration: a story in rounds. It depends only on the messages since the user's (`turn`) and the available
// tools, so it survives a restart, an edit and a replay. Rejected, failed and unavailable scenes are skipped, and the
// story continues. It writes one file, reprise-demo.txt in the workspace, and never overwrites a file that it did not
// make. `asks_people`: a person can answer; otherwise it asks no question.
OfflineResponse NextOfDemo(const Messages& turn, const std::vector<ToolSpec>& tools, bool asks_people);

// Follows the answer to a message with attached files: their names and sizes. Empty without files.
std::string TellAttachments(std::string_view message);

// Number of words in a text: the offline model's tokens.
std::int64_t CountWords(std::string_view text);

}  // namespace reprise
