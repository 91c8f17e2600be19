#pragma once

#include <string>
#include <string_view>

#include "reprise/model_client.h"

namespace reprise {

// What the effort means for the thinking of a model: none of it with "none", as much as the model sees fit where it can
// see that, else a budget.
ModelFacts WithEffort(ModelFacts facts);

// How a model's thinking is spoken of, beside its mode.
struct ThinkingWays {
  bool says_off = false;       // that it is off is said: the model thinks when nothing is
  bool sends_thoughts = true;  // what it has thought goes back to it
  bool sends_unsigned = true;  // also where it has no signature
  bool drops_foreign = false;  // it passes over thoughts that followed upon something else than what stands before them
};

// The body of a streamed POST /v1/messages. Built in one buffer, because a conversation may be many megabytes long.
// Text that is not UTF-8 is mended on the way; what the API refuses (empty texts, names with other characters,
// arguments that are no object) is left out or mended, so that no message of a history can make every later request
// fail.
//
// System messages, wherever they stand, become the system prompt. Neighbouring user messages and tool results become
// one user message, in which the results come first. Four places are marked for the provider's cache: the tools, the
// system prompt, and the last two user messages (the second finds what the request before has left). `facts` say how
// long the answer may become, how the model is to think (kDefault says nothing about that) and how long the cache
// lasts. Of the blocks of its answers `provider` gets its own.
std::string BuildMessagesRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view provider = {},
                                 const ThinkingWays& ways = {});

}  // namespace reprise
