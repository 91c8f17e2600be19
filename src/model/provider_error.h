#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "reprise/error.h"
#include "reprise/transport.h"

namespace reprise {

// A provider's description of a failure.
struct ProviderFault {
  int status = 0;            // HTTP status; 0 if unknown
  std::string code = {};     // the provider's own name for it (error.code or error.type), may be empty
  std::string message = {};  // its own words, may be empty
};

// kProvider with the matching reason of model_client.h. Temporary failures (rate limits, overload, timeouts, internal
// errors of the provider) are retryable. Invalid requests, unknown models, rejected keys, too long contexts and used-up
// quotas are not. The message quotes the provider, cut to 300 characters and without anything that looks like
// `api_key`; if it was cut, the detail holds up to 4000.
Error MakeProviderError(const ProviderFault& fault, std::string_view api_key);

// The same for an answer that the provider or the model ended before it said anything, for this reason. It had the HTTP
// status of a success.
Error NoAnswerError(std::string_view why);

// kProvider, reason provider_protocol: the provider violated the protocol.
Error ProtocolError(std::string message, bool retryable = false);

// kProvider, reason response_too_large: the answer exceeds kMaxResponseBytes, or the interaction's answers together
// exceed kMaxInteractionBytes.
Error TooLargeError(bool of_interaction = false);

// kProvider, reason provider_output_limit: the output limit cut the answer off in the middle of a tool call. `setting`:
// where the limit is set.
Error OutputLimitError(std::string_view setting);

// The same for an answer that used up its limit on hidden thinking, before any text.
Error NothingWithinLimitError();

// Translates a transport's failure into a model client's. `head_seen`: the provider had begun to answer.
Error FromTransportError(const Error& error, bool head_seen);

// `text` without words that contain or begin like `api_key` (providers quote keys half masked). Keys of less than eight
// characters are ignored.
std::string RedactKey(std::string_view text, std::string_view api_key);

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
// a stream, because a body may be a proxy's page. `headers`: of the response; a redirect is described by its address.
ProviderFault ReadErrorBody(int status, std::string_view body, const HttpHeaders& headers = {});

// Whether a word or line mentions a failure: "network_error", "upstream timed out".
bool TellsOfFailure(std::string_view text);

}  // namespace reprise
