#pragma once

#include <string>

namespace reprise {

// A call's arguments in a form that can be sent back: unchanged if they are a JSON object. Models also write nothing,
// truncated JSON, or other JSON, and many servers that parse it would reject the conversation from then on. So "" is
// sent as {}, and anything else as {"not_valid_json": "..."}.
std::string SentArguments(const std::string& arguments);

}  // namespace reprise
