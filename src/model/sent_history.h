#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// How a provider wants the messages of a request.
struct HistoryForm {
  bool unique_call_ids = false;  // no call has the id of another, in the whole conversation
  bool joins_users = false;      // neighbouring messages of the user become one
  bool joins_answers = false;    // and neighbouring answers
};

// The messages as any provider takes them; none if they are so already. An answer in which nothing was said is left
// out; texts that are empty say so; behind a call stands its one result; a result without its call is told as text.
// Nothing that was stored can make every later request of a chat fail.
std::optional<Messages> MendHistory(const Messages& messages, const HistoryForm& form = {});

// A name or an id with the characters and the length that providers take. One that is longer ends in its hash.
std::string SentName(std::string_view name, std::size_t longest);
// An id with exactly nine letters and digits, as Mistral wants it.
std::string ShortCallId(std::string_view id);

}  // namespace reprise
