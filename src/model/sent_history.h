#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// A provider's demands on a request's messages.
struct HistoryForm {
  bool unique_call_ids = false;  // call ids are unique in the whole conversation
  bool joins_users = false;      // consecutive user messages become one
  bool joins_answers = false;    // likewise consecutive answers
};

// The messages in a form that any provider accepts; nullopt if they already are. Empty answers are left out; empty
// texts get a placeholder; each call is followed by its one result; a result without a call becomes text. So no stored
// message can make every later request of a chat fail.
std::optional<Messages> MendHistory(const Messages& messages, const HistoryForm& form = {});

// A name or id with the characters and length that providers accept. A longer one ends in its hash.
std::string SentName(std::string_view name, std::size_t longest);
// An id of exactly nine letters and digits, as Mistral requires.
std::string ShortCallId(std::string_view id);

}  // namespace reprise
