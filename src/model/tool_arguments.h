#pragma once

#include <string>

namespace reprise {

// A call's arguments as they can be sent back: byte for byte what the model wrote, if that is a JSON object. Models
// also write nothing, or JSON that is cut off or of another kind; many servers parse what they are sent, and would
// refuse the conversation from then on. So "" is sent as {}, and anything else as {"not_valid_json": "..."}.
std::string SentArguments(const std::string& arguments);

}  // namespace reprise
