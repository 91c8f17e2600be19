#pragma once

#include <string>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// Asks at the terminal that controls this process, whatever stdin and stdout are, and reads one line without echo.
// kUnavailable without a terminal; kCancelled at an end of input or a signal, which then has its usual effect.
Result<SecretText> AskHidden(const std::string& prompt);

}  // namespace reprise
