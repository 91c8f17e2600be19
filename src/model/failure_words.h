#pragma once

#include <string_view>

#include "base/json.h"
#include "model/provider_error.h"

namespace reprise {

// How a provider's JSON object is interpreted.
enum class RootKind {
  kError,    // an error: any text in it describes that
  kUnknown,  // no member belongs to an answer: any text makes it an error
  kKnown,    // part of an answer: only error members make it an error
};

// Extracts a failure from a provider's JSON, in the forms in use: {"error":{"message","code","type"}}, {"error":"..."},
// {"message":"..."}, {"detail":[{"loc","msg"}]}, {"code","msg"}, {"base_resp":{"status_code","status_msg"}}, an array
// of any of them, and texts that are JSON themselves (a router's `metadata.raw`). Of several messages the deepest
// counts. Code and message are empty if there is no failure, as in {"error":null} and {"error":{}}.
ProviderFault FaultIn(const Json& root, RootKind kind);

// Reads an error's body with this HTTP status (0: an error within a stream). Text that is not JSON is quoted only from
// a stream, because a body may be a proxy's page.
ProviderFault ReadErrorBody(int status, std::string_view body);

// Whether a word or line mentions a failure: "network_error", "upstream timed out".
bool TellsOfFailure(std::string_view text);

}  // namespace reprise
