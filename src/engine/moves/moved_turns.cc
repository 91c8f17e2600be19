#include "engine/moves/moved_turns.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

constexpr std::size_t kMostRepeatedSteps = 100'000, kMostRepeatedBytes = 64 << 20;  // as in trees.cc
constexpr std::size_t kBytesOfStep = 256;                                           // in memory, besides its texts

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

// What a record is, and what it continues, by hash of their ids; 0: nothing.
struct Link {
  std::uint64_t id = 0, parent = 0;
};

Link LinkOf(const std::vector<MovedMessage>& messages) {
  Link link;
  for (const MovedMessage& message : messages) {
    if (link.id == 0 && !message.parent.empty()) link.parent = HashOf(message.parent);
    if (!message.id.empty()) link.id = HashOf(message.id);
  }
  return link;
}

// The records, each after the one that it continues, and else in their order. A circle begins where it is met.
std::vector<std::uint32_t> ParentsFirst(const std::vector<Link>& links) {
  std::unordered_map<std::uint64_t, std::uint32_t> records;
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    if (links[i].id != 0) records.emplace(links[i].id, i);
  }
  enum class Mark : char { kNew, kMet, kPut };
  std::vector<Mark> marks(links.size(), Mark::kNew);
  std::vector<std::uint32_t> order, open;
  const auto put = [&](std::uint32_t record) {
    if (std::exchange(marks[record], Mark::kPut) != Mark::kPut) order.push_back(record);
  };
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    for (std::uint32_t at = i; marks[at] != Mark::kPut;) {
      if (marks[at] == Mark::kMet) break;
      marks[at] = Mark::kMet;
      open.push_back(at);
      const auto parent = records.find(links[at].parent);
      if (parent == records.end()) break;
      at = parent->second;
      if (marks[at] == Mark::kMet) put(at);
    }
    for (; !open.empty(); open.pop_back()) put(open.back());
  }
  return order;
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
  std::vector<Link> links;
  for (std::size_t record = 0; record < session_->records(); ++record) {
    const auto messages = TRY(session_->Read(record));
    steps_of_.push_back(static_cast<std::uint32_t>(messages.size()));
    links.push_back(LinkOf(messages));
    for (std::size_t i = 0; seen && i < messages.size(); ++i) seen(messages[i]);
    PlaceAll(messages, static_cast<std::uint32_t>(record));
    if (turns_.size() >= InteractionId::kMaxNumber) return Fail(Reason::kInvalidDocument, "it has too many messages");
  }
  if (continues_unknown_) TRY(PlaceParentsFirst(ParentsFirst(links)));
  for (const Turn& turn : turns_) TRY(CheckSize(turn));
  if (const std::string& head = facts().head; !head.empty()) {
    if (const auto found = known_.find(HashOf(head)); found != known_.end()) head_ = found->second.turn;
  }
  left_out_.Add(session_->left_out());
  return {};
}

// A turn is held in memory while it is made, whatever the size of the session. Its files are not.
Result<void> MovedTurns::CheckSize(const Turn& turn) {
  std::size_t bytes = 0;
  for (const Step& step : turn.steps) bytes += step.bytes + kBytesOfStep;
  if (bytes <= kMaxSourceRecord) return {};
  const Step& first = turn.steps.front();
  const std::string words = FirstWords(TRY(ReadAgain(first.record))[first.index].text);
  return Fail(Reason::kInvalidDocument, "the turn that begins with \"" + words + "\" is larger than " +
                                            std::to_string(kMaxSourceRecord >> 20) + " MiB");
}

Result<std::vector<MovedMessage>> MovedTurns::ReadAgain(std::uint32_t record) {
  auto messages = TRY(session_->Read(record));
  if (messages.size() == steps_of_[record]) return messages;
  return Fail(ErrorCode::kIo, "the session, or a file beside it, changed while it was read");
}

// Places all again if another order puts what comes later in the source before what continues it.
Result<void> MovedTurns::PlaceParentsFirst(const std::vector<std::uint32_t>& order) {
  if (std::ranges::is_sorted(order)) return {};
  left_out_ = {};
  turns_.clear(), known_.clear(), answers_.clear(), first_child_.clear(), files_.clear();
  model_ = nullptr;
  last_ = kNone;
  repeated_steps_ = repeated_bytes_ = 0;
  for (const std::uint32_t record : order) PlaceAll(TRY(ReadAgain(record)), record);
  return {};
}

void MovedTurns::PlaceAll(const std::vector<MovedMessage>& messages, std::uint32_t record) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::size_t bytes = BytesOf({&messages[i], 1});
    for (const MovedFile& file : messages[i].files) bytes -= file.content.size();
    bytes = std::min<std::size_t>(bytes, kNone);
    Place(messages[i],
          {.record = record, .index = static_cast<std::uint32_t>(i), .bytes = static_cast<std::uint32_t>(bytes)});
  }
}

// Adds the step to its turn, or begins one.
void MovedTurns::Place(const MovedMessage& message, Step step) {
  std::uint32_t turn = TurnOf(message);
  const bool is_unknown = !message.parent.empty() && message.parent != message.id;
  continues_unknown_ = continues_unknown_ || (is_unknown && !known_.contains(HashOf(message.parent)));
  const bool says_something =
      message.kind != Kind::kModel && message.kind != Kind::kUsage && message.kind != Kind::kStopped;
  if (message.kind == Kind::kPrompt && message.nested.empty()) {
    const auto before = known_.find(MeantBy(message.parent));
    const bool is_within = !message.parent.empty() && before != known_.end() && before->second.answered != kNone;
    if (is_within && before->second.turn == turn) turn = BeginAgain(message, Known(before->second));
    turn = Begin(message, message.is_root ? kNone : turn);
  } else if (turn == kNone && says_something) {
    turn = Begin(message, kNone);
  } else if ((message.kind == Kind::kAnswer || message.kind == Kind::kFailed) && message.nested.empty()) {
    turn = TurnOfAnswer(message, turn);
  }
  if (message.kind == Kind::kModel && !message.model.empty())
    model_ = std::make_shared<const std::string>(message.model);
  if (turn == kNone) return;
  const bool is_place = message.kind == Kind::kModel && message.model.empty();
  if (!message.id.empty()) {
    const std::uint64_t id = HashOf(message.id);
    const std::uint64_t group = message.group.empty() ? 0 : HashOf(message.group);
    known_.insert_or_assign(id, Known{.turn = turn, .group = group, .says = is_place ? MeantBy(message.parent) : id});
  }
  if (is_place) return;
  turns_[turn].steps.push_back(step);
  NameFiles(message, step);
  last_ = turn;
}

// The turn of the message that it continues.
std::uint32_t MovedTurns::TurnOf(const MovedMessage& message) const {
  if (message.parent.empty()) return last_;
  const auto found = known_.find(HashOf(message.parent));
  return found == known_.end() ? last_ : found->second.turn;
}

std::uint64_t MovedTurns::MeantBy(const std::string& id) const {
  const auto found = known_.find(HashOf(id));
  return found == known_.end() ? HashOf(id) : found->second.says;
}

// A second answer to a message, which is no piece of the first one, was made again: it begins a turn beside.
std::uint32_t MovedTurns::TurnOfAnswer(const MovedMessage& message, std::uint32_t turn) {
  const auto found = known_.find(MeantBy(message.parent));
  if (message.group.empty() || message.parent.empty() || message.parent == message.id || found == known_.end()) {
    return turn;
  }
  const std::uint64_t group = HashOf(message.group);
  Known& before = found->second;
  if (before.group != group && before.answered == kNone) {
    before.answered = static_cast<std::uint32_t>(turns_[before.turn].steps.size());
    before.group = group;
    answers_.emplace(group, turn);
  }
  if (before.group == group) return turn;
  const auto piece = answers_.find(group);
  if (piece != answers_.end()) return piece->second;
  const std::uint32_t made = BeginAgain(message, Known(before));
  answers_.emplace(group, made);
  return made;
}

// A turn beside, which repeats what led to the first answer, because each branch is whole.
std::uint32_t MovedTurns::BeginAgain(const MovedMessage& message, const Known& before) {
  const std::uint32_t made = Begin(message, turns_[before.turn].parent);
  const Turn& first = turns_[before.turn];
  Turn& turn = turns_[made];
  turn.at = first.at;
  turn.model = first.model;
  const auto steps = std::span(first.steps).first(std::min<std::size_t>(before.answered, first.steps.size()));
  repeated_steps_ += steps.size();
  for (const Step& step : steps.first(repeated_steps_ > kMostRepeatedSteps ? 0 : steps.size())) {
    repeated_bytes_ += step.bytes;
  }
  if (repeated_steps_ > kMostRepeatedSteps || repeated_bytes_ > kMostRepeatedBytes) {
    left_out_.Add("message beyond what one chat may repeat", steps.size());
  } else {
    turn.steps.assign(steps.begin(), steps.end());
  }
  return made;
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
  if (message.kind == Kind::kAnswer) return left_out_.Add("image of an answer", message.files.size());
  if (message.kind == Kind::kSummary) return left_out_.Add("image of a summary", message.files.size());
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
