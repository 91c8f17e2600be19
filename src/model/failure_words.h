#pragma once

#include <string_view>

#include "base/json.h"
#include "model/provider_error.h"

namespace reprise {

// What a JSON object of a provider is taken for.
enum class RootKind {
  kError,    // it is an error: whatever words it has are about that
  kUnknown,  // nothing that belongs to an answer is in it: words make it an error
  kKnown,    // it belongs to an answer: only members that are for errors make it one
};

// What a provider says of a failure, in the forms in use: {"error":{"message","code","type"}}, {"error":"..."},
// {"message":"..."}, {"detail":[{"loc","msg"}]}, {"code","msg"}, {"base_resp":{"status_code","status_msg"}}, an array
// of any of them, and texts that are JSON themselves (a router's `metadata.raw`). Of several words the deepest count.
// Neither code nor message: it tells of none, as {"error":null} and {"error":{}} do not.
ProviderFault FaultIn(const Json& root, RootKind kind);

// The body of an error with this HTTP status (0: an error within a stream). Text that is no JSON is quoted from a
// stream alone: a body may be a proxy's page.
ProviderFault ReadErrorBody(int status, std::string_view body);

// Whether a word or a line of text is about a failure: "network_error", "upstream timed out".
bool TellsOfFailure(std::string_view text);

}  // namespace reprise
