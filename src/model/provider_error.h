#pragma once

#include <string>
#include <string_view>

#include "reprise/error.h"

namespace reprise {

// What a provider said about a failure.
struct ProviderFault {
  int status = 0;            // HTTP status; 0 if unknown
  std::string code = {};     // the provider's own name for it (error.code or error.type), may be empty
  std::string message = {};  // its own words, may be empty
};

// kProvider with the reason of model_client.h that fits. What may pass (rate limits, overload, time-outs, faults of the
// provider's own) is retryable; a request that is not valid, a model that is not there, a key that is refused, a
// context that is too long and a quota that is used up are not. The message quotes the provider's words, cut to 300
// characters and without anything that looks like `api_key`; words that were cut are in the detail, up to 4000.
Error MakeProviderError(const ProviderFault& fault, std::string_view api_key);

// kProvider, reason provider_protocol: the provider did not answer as agreed.
Error ProtocolError(std::string message, bool retryable = false);

// kProvider, reason response_too_large: the answer has more than kMaxResponseBytes, or with the others of its
// interaction more than kMaxInteractionBytes.
Error TooLargeError(bool of_interaction = false);

// kProvider, reason provider_output_limit: the answer was cut off by its limit, in the middle of a tool call.
// `setting`: where the limit is set.
Error OutputLimitError(std::string_view setting);

// The same of an answer that reached its limit before anything was said: all of it went into thinking that is not
// shown.
Error NothingWithinLimitError();

// A transport's failure in the terms of a model client. `head_seen`: the provider had begun to answer.
Error FromTransportError(const Error& error, bool head_seen);

// `text` without the words that contain or begin like `api_key` (providers quote keys half masked). One of less than
// eight characters is left alone.
std::string RedactKey(std::string_view text, std::string_view api_key);

}  // namespace reprise
