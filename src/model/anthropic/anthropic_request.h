#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/options.h"

namespace reprise {

// Applies the effort to the thinking mode: "none" turns thinking off, any other effort sets a budget, unless the
// model's mode is set already (such as adaptive).
ModelFacts WithEffort(ModelFacts facts);

// How the request mentions thinking, beside the mode.
struct ThinkingWays {
  bool says_off = false;       // says explicitly that thinking is off, because the model thinks by default
  bool sends_thoughts = true;  // sends the model's thinking back
  bool sends_unsigned = true;  // even if it has no signature
  bool drops_foreign = false;  // the server ignores thinking whose preceding messages have changed
};

// What the interface does not have of these wishes: blank stop texts, JSON without a schema, temperature and top_p
// together, and, for a model that thinks, both of them and a forced call.
std::vector<Wish> LeftOutOfMessages(const ModelWishes& wishes, const ModelFacts& facts, const ThinkingWays& ways = {});

// How the request mentions the provider's web search.
struct SearchWays {
  const WebSearchOptions* offered = nullptr;  // null: it is not offered, and blocks of earlier searches are left out
  bool sends_searches = true;                 // sends blocks of earlier searches back
};

// The body of a streamed POST /v1/messages. Built in one buffer, because a conversation may be many megabytes long.
// Invalid UTF-8 is mended. Anything else that the API rejects (empty texts, names with other characters, arguments that
// are not an object) is left out or mended, so that no message of a history can make every later request fail.
//
// System messages, wherever they stand, become the system prompt. Neighbouring user messages and tool results become
// one user message that begins with the results. Four places are marked for the provider's cache: the tools, the system
// prompt, and the last two user messages (the second hits the cache entry of the previous request). `facts` gives the
// maximum length of the answer, the thinking mode (kDefault omits it) and the cache lifetime. `provider` gets back its
// own blocks of earlier answers. Web search:
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool and .../server-tools. Formats of
// answers and strict tools: https://platform.claude.com/docs/en/build-with-claude/structured-outputs. A call of the
// provider goes back with its result. One without a result goes back only where the provider has yet to run it: in the
// last answer.
std::string BuildMessagesRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view provider = {},
                                 const ThinkingWays& ways = {}, const SearchWays& search = {});

}  // namespace reprise
