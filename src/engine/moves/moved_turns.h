#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/chat_document.h"
#include "engine/moves/session.h"
#include "engine/moves/turn_builder.h"
#include "reprise/incoming_chat.h"

namespace reprise {

// The interactions of a session: each begins with a person's message, and those that continue one earlier than the last
// begin a branch. The first reading finds them, so that each is then made of its own steps alone. Not thread-safe.
class MovedTurns {
 public:
  using Seen = std::function<void(const MovedMessage& message)>;
  // Reads the session once. kNotFound if it holds no message; kInvalidArgument (reason "invalid_document") if it is
  // unusable, or a turn is larger than kMaxSourceRecord; kIo.
  static Result<std::shared_ptr<MovedTurns>> Plan(std::unique_ptr<MovedSession> session);
  // The same, but that it may hold no message. `seen` gets each; it may be empty.
  static Result<std::shared_ptr<MovedTurns>> Read(std::unique_ptr<MovedSession> session, const Seen& seen);

  const SessionFacts& facts() const { return session_->facts(); }
  std::size_t size() const { return turns_.size(); }
  // An interaction, whose state lacks its parent's. REQUIRES: all before it were made. All may be made
  // again, from the first on.
  Result<AddedInteraction> Make(InteractionId id);
  Result<StoredFile> File(const FileId& id);
  // What was left out, and changed; complete when all interactions were made.
  std::vector<std::string> Notes() const;

  // The whole chat in memory. Its name is `name`.
  Result<ForeignChat> ReadAll(const std::string& name);

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  struct Step {
    std::uint32_t record, index;
    std::uint32_t bytes = 0;  // without its files
  };
  struct Turn {
    std::uint32_t parent = kNone, edited_from = kNone;
    std::vector<Step> steps{};
    std::shared_ptr<const std::string> model{};  // that answers at its beginning; null: unknown
    std::optional<Timestamp> at{};
    // Of its state, once it was made.
    std::size_t messages = 0;
    std::shared_ptr<const Compaction> compaction{};
  };
  // A message that others may continue.
  struct Known {
    std::uint32_t turn;
    std::uint32_t answered = kNone;  // how many steps its turn has before the first answer to it; kNone: there is none
    std::uint64_t group = 0;         // of that answer, or else its own
    std::uint64_t says = 0;          // the message whose place it has, because it says nothing itself
  };
  struct FilePlace {
    Step step;
    std::size_t number;
  };

  explicit MovedTurns(std::unique_ptr<MovedSession> session) : session_(std::move(session)) {}
  Result<void> ReadOnce(const Seen& seen);
  Result<void> CheckSize(const Turn& turn);
  // The steps of a record. kIo if they are not those of the first reading.
  Result<std::vector<MovedMessage>> ReadAgain(std::uint32_t record);
  Result<void> PlaceParentsFirst(const std::vector<std::uint32_t>& order);
  void PlaceAll(const std::vector<MovedMessage>& messages, std::uint32_t record);
  void Place(const MovedMessage& message, Step step);
  std::uint32_t TurnOf(const MovedMessage& message) const;
  std::uint64_t MeantBy(const std::string& id) const;
  std::uint32_t TurnOfAnswer(const MovedMessage& message, std::uint32_t turn);
  std::uint32_t BeginAgain(const MovedMessage& message, const Known& before);
  std::uint32_t Begin(const MovedMessage& message, std::uint32_t parent);
  void NameFiles(const MovedMessage& message, Step step);
  FileId IdOf(Step step, std::size_t number) const;
  std::optional<StoredFile> FileOf(Step step, std::size_t number, const MovedFile& file, Timestamp at) const;
  std::uint32_t head() const { return head_ == kNone ? static_cast<std::uint32_t>(turns_.size() - 1) : head_; }
  IncomingChat ToIncoming(const ChatId& name);

  friend IncomingChat ToIncomingChat(const ChatId& name, std::shared_ptr<MovedTurns> turns);

  const std::unique_ptr<MovedSession> session_;
  LeftOut left_out_, left_out_of_turns_;
  std::vector<std::uint32_t> steps_of_;  // how many, by record
  std::vector<Turn> turns_;
  std::unordered_map<std::uint64_t, Known> known_;            // by hash of the message's id
  std::unordered_map<std::uint64_t, std::uint32_t> answers_;  // turns, by hash of the answer's group
  std::size_t repeated_steps_ = 0, repeated_bytes_ = 0;
  bool continues_unknown_ = false;                      // a message does, which may come later
  std::map<std::uint32_t, std::uint32_t> first_child_;  // by parent, kNone for none
  std::map<FileId, FilePlace> files_;
  std::shared_ptr<const std::string> model_;
  std::uint32_t last_ = kNone, head_ = kNone;
  const std::string salt_ = FileId::Random().str();  // the files' ids are made of it
  Timestamp latest_{};
};

// kNotFound if there is none.
Result<std::shared_ptr<MovedTurns>> OnlyWithMessages(std::shared_ptr<MovedTurns> turns);

// Prepares the chat for a store that takes it piece by piece (IncomingChat::load_added), so that no more than one
// interaction is in memory.
IncomingChat ToIncomingChat(const ChatId& name, std::shared_ptr<MovedTurns> turns);

}  // namespace reprise
