#pragma once

#include <memory>
#include <optional>

#include "reprise/history.h"
#include "reprise/interaction_store.h"

namespace reprise {

// Begins to read a chat's history; `running` is its interaction that runs, as far as it has come. kInvalidArgument
// (reason "invalid_parameter") if `range.before` is none of its interactions.
Result<std::unique_ptr<HistoryReader>> OpenHistory(CheckpointStore& store, const ChatId& chat,
                                                   const HistoryRange& range, HistoryStates states,
                                                   std::optional<Interaction> running);

}  // namespace reprise
