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
// characters and without anything that looks like `api_key`.
Error MakeProviderError(const ProviderFault& fault, std::string_view api_key);

// kProvider, reason provider_protocol: the provider did not answer as agreed.
Error ProtocolError(std::string message, bool retryable = false);

// A transport's failure in the terms of a model client. `head_seen`: the provider had begun to answer.
Error FromTransportError(const Error& error, bool head_seen);

// `text` without the words that contain or begin like `api_key` (providers quote keys half masked).
std::string RedactKey(std::string_view text, std::string_view api_key);

}  // namespace reprise
