#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/history.h"
#include "reprise/interaction_store.h"

namespace reprise {

// Begins to read a chat's history; `running` is its running interaction so far. kInvalidArgument (reason
// "invalid_parameter") if `range.before` is none of its interactions.
Result<std::unique_ptr<HistoryReader>> OpenHistory(CheckpointStore& store, const ChatId& chat,
                                                   const HistoryRange& range, HistoryStates states,
                                                   std::optional<Interaction> running);

// A chat as one JSON document (chat_history of schemas/openapi.json), written while the history is read: the summary,
// the interactions, and the facts that reading them brought out.
class HistoryDocument {
 public:
  // `add_end` adds members after the interactions; may be null.
  HistoryDocument(std::unique_ptr<HistoryReader> reader, bool all_branches, std::function<void(Json& end)> add_end = {})
      : reader_(std::move(reader)), all_branches_(all_branches), add_end_(std::move(add_end)) {}

  // At least `bytes` bytes, except for the last piece; interactions are not cut. nullopt at the end.
  Result<std::optional<std::string>> Next(std::size_t bytes);
  bool ended() const { return ended_; }

 private:
  void End(std::string& piece);

  const std::unique_ptr<HistoryReader> reader_;
  const bool all_branches_;
  const std::function<void(Json& end)> add_end_;
  bool begun_ = false, first_ = true, ended_ = false;
};

}  // namespace reprise
