#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/moves/session.h"
#include "reprise/file_store.h"
#include "reprise/interaction.h"

namespace reprise {

// Where a turn begins.
struct TurnOrigin {
  InteractionId id;
  std::optional<InteractionId> parent{}, edited_from{};
  Timestamp at{};                                  // if no step says a time
  std::size_t messages_before = 0;                 // in the parent's state
  std::shared_ptr<const Compaction> compaction{};  // of the parent's state; null: none
  std::string model{};                             // that answers, unless a step says another
};

struct MadeTurn {
  AddedInteraction added;
  std::shared_ptr<const Compaction> compaction;  // of its state
  std::size_t messages = 0;                      // in its state
};

// Makes an interaction of a session's steps. Every call gets exactly one result.
class TurnBuilder {
 public:
  // The file of the step under this id and name; nullopt if it cannot be kept.
  using FileOf = std::function<std::optional<StoredFile>(std::size_t number, const MovedFile& file)>;

  TurnBuilder(TurnOrigin start, LeftOut& left_out) : start_(std::move(start)), left_out_(left_out) {}

  void Add(MovedMessage step, const FileOf& file_of);
  MadeTurn Take() &&;

 private:
  struct Call {
    ToolCall call;
    std::optional<MovedMessage> result{};
    std::vector<Attachment> files{};
    std::vector<MessagePart> parts{};
    std::vector<MovedMessage> steps{};  // of its sub-agent
  };
  // A request to the model and what came of it.
  struct Round {
    std::string group;
    Timestamp at;
    std::vector<MovedBlock> blocks{};
    std::vector<Call> calls{};
    TokenUsage usage{};
    bool has_result = false;
  };
  struct Place {
    std::size_t round, call;
    auto operator<=>(const Place&) const = default;
  };
  // What the model is told from here on.
  struct Summary {
    std::size_t rounds;  // before it
    MovedMessage step;
  };

  Timestamp TimeOf(const MovedMessage& step) const { return step.at.value_or(last_); }
  void AddPrompt(MovedMessage step, const FileOf& file_of);
  void AddAnswer(MovedMessage step);
  void AddResult(MovedMessage step, const FileOf& file_of);
  void AddFurtherResult(MovedMessage step);
  void AddNested(MovedMessage step);
  void AddCall(MovedBlock& block);
  Call& At(Place place) { return rounds_[place.round].calls[place.call]; }
  Call* FindCall(const std::string& id);
  void TakeFiles(std::vector<MovedFile>& files, const FileOf& file_of, std::vector<MessagePart>& parts,
                 std::vector<Attachment>& attachments);

  void Emit(Timestamp at, EventPayload payload);
  void EmitRound(Round& round, bool is_last);
  void EmitNested(const Call& call);
  void EmitSummary(const MovedMessage& step);
  void PutStatus(bool answered);

  const TurnOrigin start_;
  LeftOut& left_out_;
  std::optional<MovedMessage> prompt_{};
  std::vector<MessagePart> prompt_parts_{};
  std::vector<Attachment> attachments_{};
  std::vector<Round> rounds_{};
  std::unordered_map<std::string, Place> by_id_{};  // the calls
  // Those without a result, and the next number for a call of the same id, by the id in the source.
  std::unordered_map<std::string, std::set<Place>> unanswered_{};
  std::unordered_map<std::string, int> next_number_{};
  std::vector<Summary> summaries_{};
  bool stopped_ = false;
  std::optional<std::string> failure_{};  // where it comes from; nullopt: none
  Timestamp last_ = start_.at;
  std::string model_ = start_.model;
  std::string next_model_{};  // of the next answer, which may be another turn's

  // What Take makes.
  Interaction made_{.id = start_.id, .chat_id = ChatId::Parse("imported").value()};
  std::vector<Message> messages_{};
  std::shared_ptr<const Compaction> compaction_ = start_.compaction;
  std::uint32_t round_index_ = 0;
};

}  // namespace reprise
