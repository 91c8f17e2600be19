#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/history.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"

namespace re2 {
class RE2;
}

namespace reprise {

// Begins to read a chat's history; `running` is its running interaction so far. kInvalidArgument (reason
// "invalid_parameter") if `range.before` is none of its interactions.
Result<std::unique_ptr<HistoryReader>> OpenHistory(CheckpointStore& store, const ChatId& chat,
                                                   const HistoryRange& range, HistoryStates states,
                                                   std::optional<Interaction> running,
                                                   std::function<void()> on_damage = {});

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

class TextPieces;

// A match in an interaction.
struct TextMatch {
  std::string_view where;  // "user", "answer", "tool_call" or "tool_result"
  std::string snippet;     // the match with some text around it
  std::uint64_t seq = 0;   // of the event; 0: the user's message
};

// Searches interactions for a text or a regular expression (RE2). Thread-safe.
class TextSearch {
 public:
  struct How {
    bool regex = false;
    bool case_sensitive = false;
  };
  TextSearch(std::string_view text, How how);
  ~TextSearch();

  // The error in the regular expression, if any.
  std::optional<std::string> problem() const;
  // Adds the texts that it has looked at to `heard`, if that is not null.
  std::vector<TextMatch> In(const Interaction& interaction, TextPieces* heard = nullptr) const;

 private:
  const std::unique_ptr<const re2::RE2> pattern_;
};

}  // namespace reprise
