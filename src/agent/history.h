#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// The result of a tool call that had begun when the process ended: nobody knows what it did, so it is never run again
// by itself.
inline constexpr std::string_view kOutcomeUnknown = "The server ended while this call ran. What it did is not known.";

// What a provider accepts: directly behind an assistant message that calls tools stand the results of exactly those
// calls, one each, and no result stands anywhere else. Providers refuse a history that breaks this, for ever.

// Gives every call that has no result one that says `placeholder`, in the place where a provider expects it. A result
// that exists is never replaced, moved or dropped (results are looked for before any gap is filled). Returns how many
// were added.
std::size_t CompleteToolCalls(Messages& messages, std::string_view placeholder, std::size_t first = 0);

// What stands before the result of a call whose arguments a hook has changed to these.
std::string ChangedByHook(const std::string& arguments);

}  // namespace reprise
