#include "engine/moves/moved_turns.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

std::uint64_t HashOf(const std::string& id) { return std::hash<std::string>()(id); }

InteractionId IdAt(std::size_t turn) { return InteractionId::FromNumber(static_cast<std::uint32_t>(turn + 1)); }

// "image.png" for image/png.
std::string NameFor(const MovedFile& file) {
  if (!file.filename.empty()) return file.filename;
  const std::size_t slash = file.mime_type.find('/');
  if (slash == std::string::npos) return "file";
  return file.mime_type.substr(0, slash) + "." +
         file.mime_type.substr(slash + 1, file.mime_type.find_first_of("+;") - slash - 1);
}

}  // namespace

Result<std::shared_ptr<MovedTurns>> MovedTurns::Plan(std::unique_ptr<MovedSession> session) {
  return Read(std::move(session), {}).and_then([](auto turns) { return OnlyWithMessages(std::move(turns)); });
}

Result<std::shared_ptr<MovedTurns>> MovedTurns::Read(std::unique_ptr<MovedSession> session, const Seen& seen) {
  std::shared_ptr<MovedTurns> turns(new MovedTurns(std::move(session)));
  TRY(turns->ReadOnce(seen));
  return turns;
}

Result<std::shared_ptr<MovedTurns>> OnlyWithMessages(std::shared_ptr<MovedTurns> turns) {
  if (turns->size() == 0) return Fail(ErrorCode::kNotFound, "the session holds no message");
  return turns;
}

Result<void> MovedTurns::ReadOnce(const Seen& seen) {
  for (std::size_t record = 0; record < session_->records(); ++record) {
    const auto messages = TRY(session_->Read(record));
    steps_of_.push_back(static_cast<std::uint32_t>(messages.size()));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (seen) seen(messages[i]);
      Place(messages[i], {.record = static_cast<std::uint32_t>(record), .index = static_cast<std::uint32_t>(i)});
    }
    if (turns_.size() >= InteractionId::kMaxNumber) return Fail(Reason::kInvalidDocument, "it has too many messages");
  }
  if (const std::string& head = facts().head; !head.empty()) {
    if (const auto found = turn_of_.find(HashOf(head)); found != turn_of_.end()) head_ = found->second;
  }
  left_out_.Add(session_->left_out());
  return {};
}

Result<std::vector<MovedMessage>> MovedTurns::ReadAgain(std::uint32_t record) {
  auto messages = TRY(session_->Read(record));
  if (messages.size() == steps_of_[record]) return messages;
  return Fail(ErrorCode::kIo, "the session, or a file beside it, changed while it was read");
}

// Adds the step to its turn, or begins one.
void MovedTurns::Place(const MovedMessage& message, Step step) {
  std::uint32_t turn = TurnOf(message);
  const bool says_something =
      message.kind != Kind::kModel && message.kind != Kind::kUsage && message.kind != Kind::kStopped;
  if (message.kind == Kind::kPrompt && message.nested.empty()) {
    turn = Begin(message, message.is_root ? kNone : turn);
  } else if (turn == kNone && says_something) {
    turn = Begin(message, kNone);
  }
  if (message.kind == Kind::kModel && !message.model.empty())
    model_ = std::make_shared<const std::string>(message.model);
  if (turn == kNone) return;
  if (!message.id.empty()) turn_of_.insert_or_assign(HashOf(message.id), turn);
  if (message.kind == Kind::kModel && message.model.empty()) return;
  turns_[turn].steps.push_back(step);
  NameFiles(message, step);
  last_ = turn;
}

// The turn of the message that it continues.
std::uint32_t MovedTurns::TurnOf(const MovedMessage& message) {
  if (message.parent.empty()) return last_;
  const auto found = turn_of_.find(HashOf(message.parent));
  return found == turn_of_.end() ? last_ : found->second;
}

std::uint32_t MovedTurns::Begin(const MovedMessage& message, std::uint32_t parent) {
  const auto turn = static_cast<std::uint32_t>(turns_.size());
  const auto [sibling, is_first] = first_child_.emplace(parent, turn);
  turns_.push_back(
      {.parent = parent, .edited_from = is_first ? kNone : sibling->second, .model = model_, .at = message.at});
  return turn;
}

FileId MovedTurns::IdOf(Step step, std::size_t number) const {
  constexpr std::size_t kDigits = 32;
  const std::string digest = Sha256Digest(
      {salt_, std::to_string(step.record) + "." + std::to_string(step.index) + "." + std::to_string(number)});
  return FileId::Parse("file_" + digest.substr(digest.find(':') + 1, kDigits)).value();
}

std::optional<StoredFile> MovedTurns::FileOf(Step step, std::size_t number, const MovedFile& file, Timestamp at) const {
  auto made = MakeFile(NameFor(file), file.mime_type, file.content);
  if (!made) return std::nullopt;
  made->info.id = IdOf(step, number);
  made->info.created_at = at;
  return *std::move(made);
}

void MovedTurns::NameFiles(const MovedMessage& message, Step step) {
  if (!message.nested.empty()) return;
  for (std::size_t i = 0; i < message.files.size(); ++i) {
    if (FileOf(step, i, message.files[i], {})) {
      files_.emplace(IdOf(step, i), FilePlace{.step = step, .number = i});
    } else {
      left_out_.Add("file of an impossible type");
    }
  }
}

Result<AddedInteraction> MovedTurns::Make(InteractionId id) {
  const std::size_t index = id.number() - 1;
  if (index == 0) left_out_of_turns_ = {}, latest_ = {};  // they may be made again
  Turn& turn = turns_[index];
  const Turn* parent = turn.parent == kNone ? nullptr : &turns_[turn.parent];
  TurnOrigin start{.id = id, .at = turn.at.value_or(std::max(latest_, facts().created.value_or(Timestamp())))};
  if (start.at == Timestamp()) start.at = facts().updated.value_or(Now());
  if (parent != nullptr) {
    start.parent = IdAt(turn.parent);
    start.messages_before = parent->messages;
    start.compaction = parent->compaction;
  }
  if (turn.edited_from != kNone) start.edited_from = IdAt(turn.edited_from);
  if (turn.model) start.model = *turn.model;
  TurnBuilder builder(std::move(start), left_out_of_turns_);
  std::vector<MovedMessage> messages;
  std::uint32_t record = kNone;
  for (const Step step : turn.steps) {
    if (step.record != record) messages = TRY(ReadAgain(record = step.record));
    const Timestamp at = messages[step.index].at.value_or(latest_);
    builder.Add(std::move(messages[step.index]),
                [&](std::size_t number, const MovedFile& file) { return FileOf(step, number, file, at); });
  }
  MadeTurn made = std::move(builder).Take();
  turn.messages = made.messages;
  turn.compaction = std::move(made.compaction);
  latest_ = std::max(latest_, made.added.interaction.completed_at.value_or(Timestamp()));
  return std::move(made.added);
}

Result<StoredFile> MovedTurns::File(const FileId& id) {
  const FilePlace place = files_.at(id);
  const auto messages = TRY(ReadAgain(place.step.record));
  const MovedMessage& message = messages[place.step.index];
  std::optional<StoredFile> file;
  if (place.number < message.files.size()) {
    file = FileOf(place.step, place.number, message.files[place.number], message.at.value_or(latest_));
  }
  if (!file) return Fail(ErrorCode::kIo, "a file of the session changed while it was read");
  return *std::move(file);
}

std::vector<std::string> MovedTurns::Notes() const {
  LeftOut all = left_out_;
  all.Add(left_out_of_turns_);
  return all.Notes();
}

Result<ForeignChat> MovedTurns::ReadAll(const std::string& name) {
  ForeignChat chat{.name = name, .title = facts().title};
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    AddedInteraction made = TRY(Make(IdAt(i)));
    if (made.kept_messages > 0) chat.kept_messages.emplace(IdAt(i), made.kept_messages);
    chat.interactions.push_back(std::move(made.interaction));
  }
  for (const auto& [id, place] : files_) chat.files.push_back(TRY(File(id)));
  chat.created_at = facts().created;
  chat.updated_at = facts().updated;
  chat.head = IdAt(head());
  chat.notes = Notes();
  return chat;
}

IncomingChat MovedTurns::ToIncoming(const ChatId& name) {
  IncomingChat chat{
      .summary = {.id = name, .title = facts().title, .head = IdAt(head())}, .interactions = {}, .load = {}};
  for (std::size_t i = 0; i < turns_.size(); ++i) chat.interactions.push_back(IdAt(i));
  for (const auto& [id, place] : files_) chat.files.push_back(id);
  chat.summary.created_at = facts().created.value_or(turns_.front().at.value_or(Now()));
  chat.summary.updated_at = facts().updated.value_or(turns_.back().at.value_or(chat.summary.created_at));
  return chat;
}

IncomingChat ToIncomingChat(const ChatId& name, std::shared_ptr<MovedTurns> turns) {
  IncomingChat chat = turns->ToIncoming(name);
  chat.load_added = [turns, name](InteractionId id) {
    return turns->Make(id).map([&](AddedInteraction made) {
      made.interaction.chat_id = name;
      return made;
    });
  };
  chat.load_file = [turns](const FileId& id) { return turns->File(id); };
  return chat;
}

}  // namespace reprise
