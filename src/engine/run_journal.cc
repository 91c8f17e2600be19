#include "engine/run_journal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "engine/recording.h"
#include "reprise/version.h"

namespace reprise {
namespace {

// The types of items, and their content.
constexpr char kBegin = 'B';          // JSON: what ReadBegin reads
constexpr char kEvent = 'E';          // the event's name, a line feed, its data line
constexpr char kTextDelta = 'T';      // the number of the round, the text
constexpr char kThinkingDelta = 'H';  // likewise
constexpr char kMessage = 'M';        // JSON: a message added to the state
constexpr char kGrants = 'G';         // JSON: all grants of the state
constexpr char kAgenda = 'A';         // JSON: the state's tasks and plan
constexpr char kCompaction = 'C';     // JSON: the state's compaction
constexpr char kCleared = 'X';        // JSON: a number; AgentState::cleared
constexpr char kAnswer = 'R';         // JSON: what ReadAnswer reads
constexpr char kMemory = 'W';         // JSON: the state's working memory
constexpr char kJobs = 'J';           // JSON: the state's background jobs
constexpr char kUsage = 'U';          // JSON: the usage of a response whose usage event follows
constexpr char kRequest = 'Q';        // JSON: [a request that was sent, its marks]
constexpr char kResponse = 'P';       // JSON: [the index of a request, its response]
constexpr int kMaxRecordDepth = kMaxJsonDepth + 16;

// Small, because a thousand runs may be open.
constexpr std::size_t kKeptCapacity = 1024;

// Numbers are 32 bits, big-endian.
constexpr std::size_t kNumberBytes = 4;

void AppendNumber(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xff);
}

std::uint32_t TakeNumber(std::string_view& from) {
  if (from.size() < kNumberBytes) throw std::invalid_argument("number");
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < kNumberBytes; ++i) number = number << 8 | static_cast<unsigned char>(from[i]);
  from.remove_prefix(kNumberBytes);
  return number;
}

Json TextOrNull(const std::optional<InteractionId>& id) { return id ? Json(id->str()) : Json(); }

tl::unexpected<Error> Malformed() {
  return Fail(Reason::kIntegrityAuth, "a journal's record is not what it should be");
}

// Throws where a member is missing or of another type; ReadRun turns that into its one error.
std::optional<InteractionId> IdOrNull(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return InteractionId::Parse(json.get_ref<const std::string&>()).value();
}

void ReadBegin(const Json& begin, InterruptedRun& run) {
  run.interaction.parent_id = IdOrNull(begin.at("parent_id"));
  run.interaction.edited_from = IdOrNull(begin.at("edited_from"));
  run.interaction.user_message = begin.at("user_message").get<std::string>();
  if (const auto files = begin.find("attachments"); files != begin.end()) {
    run.interaction.attachments = AttachmentsFromJson(*files).value();
    run.attached_text = begin.at("attached_text").get<std::string>();
    if (const auto parts = begin.find("attached_parts"); parts != begin.end()) {
      run.attached_parts = MessagePartsFromJson(*parts).value();
    }
  }
  run.interaction.model = begin.at("model").get<std::string>();
  if (const auto folder = begin.find("workspace"); folder != begin.end()) {
    run.interaction.workspace = folder->get<std::string>();
  }
  run.interaction.created_at = ParseTimestamp(begin.at("created_at").get<std::string>()).value();
  run.on_disconnect =
      begin.at("on_disconnect").get<std::string>() == "continue" ? OnDisconnect::kContinue : OnDisconnect::kCancel;
  if (const auto mode = begin.find("approval_mode"); mode != begin.end()) {
    run.approval_mode = ParseApprovalMode(mode->get<std::string>()).value();
  }
  if (const auto from = begin.find("resumed_from"); from != begin.end()) {
    run.record.resumed_from = ResumedFrom{.interaction = IdOrNull(from->at("interaction_id")).value(),
                                          .call_ids = from->at("call_ids").get<std::vector<std::string>>()};
  }
  if (begin.contains("requests")) run.record.requests.emplace();
  if (const auto program = begin.find("program"); program != begin.end()) {
    run.record.program = program->get<std::string>();
  }
  run.record.names_model = begin.contains("names_model");
  if (const auto effort = begin.find("effort"); effort != begin.end()) {
    run.record.effort = ParseEffort(effort->get<std::string>()).value();
  }
  if (const auto from = begin.find("files_from"); from != begin.end()) run.record.files_from = IdOrNull(*from);
  if (const auto request = begin.find("request"); request != begin.end()) {
    run.record.request = ClientRequestFromJson(*request).value();
  }
  if (const auto queued = begin.find("queue_id"); queued != begin.end()) run.queue_id = queued->get<std::string>();
  if (const auto span = begin.find("traceparent"); span != begin.end()) {
    run.record.traceparent = span->get<std::string>();
    run.span = ParseTraceparent(run.record.traceparent).value_or(TraceContext{});
  }
  run.log->AppendRecorded(StartOf(run.interaction));
  run.last_seq = 1;
}

using UsageByRound = std::map<std::uint32_t, TokenUsage>;

void ReadEvent(std::string_view item, InterruptedRun& run, UsageByRound& spent) {
  const std::size_t end_of_name = item.find('\n');
  if (end_of_name == std::string_view::npos) throw std::invalid_argument("event");
  const std::string_view name = item.substr(0, end_of_name), data = item.substr(end_of_name + 1);
  const Json json = ParseJson(data, kMaxRecordDepth).value();
  run.last_seq = json.at("seq").get<std::uint64_t>();
  run.last_round = json.at("round_index").get<std::uint32_t>();
  run.log->AppendRecorded(run.last_seq, name, data);
  const auto& type = json.at("type").get_ref<const std::string&>();
  if (type == event::ToolOutputDelta::kType || type == event::SoundDelta::kType) return;
  AgentEvent event = AgentEventFromJson(json).value();
  if (std::holds_alternative<event::Thinking>(event.payload)) run.thinking.clear();
  if (std::holds_alternative<event::MessageText>(event.payload)) run.text.clear();
  if (const auto* usage = std::get_if<event::Usage>(&event.payload)) {
    run.interaction.usage += usage->tokens;
    spent.erase(event.round_index);
  }
  if (const auto* nested = std::get_if<event::Nested>(&event.payload)) {
    if (const auto* usage = std::get_if<event::Usage>(&nested->step)) run.interaction.usage += usage->tokens;
  }
  run.interaction.events.push_back(std::move(event));
}

void ReadDelta(char type, std::string_view item, InterruptedRun& run) {
  const std::uint32_t round = TakeNumber(item);
  if (round != run.last_round) {
    run.thinking.clear();
    run.text.clear();
  }
  run.last_round = round;
  ++run.last_seq;
  if (type == kTextDelta) {
    run.text += item;
    run.log->AppendTextDelta(round, item);
  } else {
    run.thinking += item;
    run.log->AppendThinkingDelta(round, item);
  }
}

void ReadAnswer(const Json& json, InterruptedRun& run) {
  auto [id, answer] = AnswerFromJson(json).value();
  run.answers[std::move(id)] = std::move(answer);
}

void ReadSpent(const Json& json, UsageByRound& spent) {
  JsonReader reader(json, "usage");
  spent[json.at("round_index").get<std::uint32_t>()] = ReadUsage(reader);
  if (reader.error()) throw std::invalid_argument("usage");
}

void ReadItem(char type, std::string_view content, InterruptedRun& run, UsageByRound& spent) {
  switch (type) {
    case kBegin:
      return ReadBegin(ParseJson(content).value(), run);
    case kEvent:
      return ReadEvent(content, run, spent);
    case kTextDelta:
    case kThinkingDelta:
      return ReadDelta(type, content, run);
    case kMessage:
      return run.messages.push_back(MessageFromJson(ParseJson(content, kMaxRecordDepth).value()).value());
    case kGrants:
      run.grants =
          AgentStateFromJson({{"messages", Json::array()}, {"grants", ParseJson(content).value()}}).value().grants;
      return;
    case kAgenda:
      run.agenda = AgendaFromJson(ParseJson(content).value()).value();
      return;
    case kCompaction:
      run.compaction = AgentStateFromJson({{"messages", Json::array()}, {"compaction", ParseJson(content).value()}})
                           .value()
                           .compaction;
      return;
    case kCleared:
      run.cleared = ParseJson(content).value().get<std::uint64_t>();
      return;
    case kAnswer:
      return ReadAnswer(ParseJson(content).value(), run);
    case kMemory:
      run.memory = MemoryFromJson(ParseJson(content).value()).value();
      return;
    case kJobs:
      run.jobs = JobsFromJson(ParseJson(content).value()).value();
      return;
    case kRequest: {
      const Json request = ParseJson(content).value();
      if (!run.record.requests) run.record.requests.emplace();
      run.record.requests->push_back(SentRequestFromJson(request.at(0)).value());
      if (run.record.requests->back().purpose == SentRequest::Purpose::kTurn) {
        run.marks = RequestMarksFromJson(request.at(1)).value();
      }
      return;
    }
    case kResponse: {
      const Json response = ParseJson(content).value();
      SentRequest& request = run.record.requests.value().at(response.at(0).get<std::size_t>());
      request.response = SentResponseFromJson(response.at(1), request.model).value();
      return;
    }
    case kUsage:
      return ReadSpent(ParseJson(content).value(), spent);
    default:
      throw std::invalid_argument("item");
  }
}

template <typename Function>
void ForEachItem(std::string_view record, Function function) {
  while (!record.empty()) {
    const char type = record.front();
    record.remove_prefix(1);
    const std::uint32_t size = TakeNumber(record);
    if (size > record.size()) throw std::invalid_argument("record");
    function(type, record.substr(0, size));
    record.remove_prefix(size);
  }
}

Json DeltaAsJson(std::string_view item) {
  const std::uint32_t round = TakeNumber(item);
  return {{"round_index", round}, {"content", item}};
}

Json ItemAsJson(char type, std::string_view content) {
  switch (type) {
    case kBegin:
      return {{"begin", ParseJson(content).value()}};
    case kEvent: {
      const std::size_t end_of_name = content.find('\n');
      return {{"event", content.substr(0, end_of_name)},
              {"data", ParseJson(content.substr(end_of_name + 1), kMaxRecordDepth).value()}};
    }
    case kTextDelta:
      return {{"text_delta", DeltaAsJson(content)}};
    case kThinkingDelta:
      return {{"thinking_delta", DeltaAsJson(content)}};
    case kMessage:
      return {{"message", ParseJson(content, kMaxRecordDepth).value()}};
    case kGrants:
      return {{"grants", ParseJson(content).value()}};
    case kAgenda:
      return {{"agenda", ParseJson(content).value()}};
    case kCompaction:
      return {{"compaction", ParseJson(content).value()}};
    case kCleared:
      return {{"cleared", ParseJson(content).value()}};
    case kAnswer:
      return {{"answer", ParseJson(content).value()}};
    case kMemory:
      return {{"memory", ParseJson(content).value()}};
    case kRequest:
      return {{"request", ParseJson(content).value().at(0)}};
    case kResponse:
      return {{"response", ParseJson(content).value()}};
    case kUsage:
      return {{"usage", ParseJson(content).value()}};
    default:
      throw std::invalid_argument("item");
  }
}

// Empty if there is nothing.
std::string ShortDigest(const RequestSources& sources) {
  std::string text;
  for (const ToldModule& module : sources.modules) text += module.name + " " + std::to_string(*module.bytes) + "\n";
  for (const auto& [name, origin] : sources.tools) {
    text += name + "\n" + origin.name + "\n" + origin.version + "\n" + origin.revision + "\n" + origin.digest + "\n";
  }
  constexpr std::size_t kDigits = 8;
  return text.empty() ? text : Sha256Digest({text}).substr(std::string_view("sha256:").size(), kDigits);
}

}  // namespace

void RunJournal::AddBegin(const Interaction& interaction, OnDisconnect on_disconnect, const std::string& queue_id,
                          const Attached& attached, const std::string& traceparent,
                          std::optional<ApprovalMode> approval_mode) {
  record_.traceparent = traceparent;
  record_.requests.emplace();
  record_.program = REPRISE_VERSION;
  if (!is_kept_) return;
  const std::size_t item = BeginItem(kBegin);
  AppendJsonObject(pending_, [&](JsonObjectWriter& begin) {
    begin["parent_id"] = TextOrNull(interaction.parent_id);
    begin["edited_from"] = TextOrNull(interaction.edited_from);
    begin["user_message"] = interaction.user_message;
    begin["model"] = interaction.model;
    begin["created_at"] = FormatTimestamp(interaction.created_at);
    begin["on_disconnect"] = on_disconnect == OnDisconnect::kContinue ? "continue" : "cancel";
    if (const auto& from = record_.resumed_from) {
      begin["resumed_from"] = Json{{"interaction_id", from->interaction.str()}, {"call_ids", from->call_ids}};
    }
    if (record_.names_model) begin["names_model"] = true;
    if (record_.effort != Effort::kDefault) begin["effort"] = ToString(record_.effort);
    if (record_.files_from) begin["files_from"] = record_.files_from->str();
    if (record_.request) begin["request"] = ToJson(*record_.request);
    if (approval_mode) begin["approval_mode"] = ToString(*approval_mode);
    if (!interaction.workspace.empty()) begin["workspace"] = interaction.workspace;
    begin["requests"] = true;  // are on record
    begin["program"] = record_.program;
    if (!queue_id.empty()) begin["queue_id"] = queue_id;
    if (!traceparent.empty()) begin["traceparent"] = traceparent;
    if (!interaction.attachments.empty()) {
      begin["attachments"] = ToJson(interaction.attachments);
      begin["attached_text"] = attached.text;
      if (!attached.parts.empty()) begin["attached_parts"] = ToJson(attached.parts);
    }
  });
  EndItem(item);
}

void RunJournal::AddEvent(const AgentEvent& event) {
  if (!is_kept_) return;
  const std::size_t begin = BeginItem(kEvent);
  pending_ += EventName(event.payload);
  pending_ += '\n';
  AppendJson(pending_, event);
  EndItem(begin);
}

void RunJournal::AddTextDelta(std::uint32_t round_index, std::string_view text) {
  AddDelta(kTextDelta, round_index, text);
}
void RunJournal::AddThinkingDelta(std::uint32_t round_index, std::string_view text) {
  AddDelta(kThinkingDelta, round_index, text);
}

void RunJournal::AddState(const AgentState& state) {
  if (agenda_ != state.agenda) {
    if (!record_.agenda_before) record_.agenda_before = agenda_;
    agenda_ = state.agenda;
    if (is_kept_) AddItem(kAgenda, DumpJson(ToJson(agenda_)));
  }
  messages_ = state.messages;
  if (!is_kept_) return;
  for (; messages_kept_ < state.messages.size(); ++messages_kept_) {
    const std::size_t begin = BeginItem(kMessage);
    AppendJson(pending_, state.messages[messages_kept_]);
    EndItem(begin);
  }
  if (state.compaction && state.compaction != compaction_) {
    compaction_ = state.compaction;
    AgentState only;
    only.compaction = compaction_;
    AddItem(kCompaction, DumpJson(ToJson(only).at("compaction")));
  }
  if (cleared_ != state.cleared) {
    cleared_ = state.cleared;
    AddItem(kCleared, std::to_string(cleared_));
  }
  if (memory_ != state.memory) {
    AddItem(kMemory, DumpJson(ToJson(state.memory)));
    memory_ = state.memory;
  }
  if (jobs_ != state.jobs) {
    AddItem(kJobs, DumpJson(ToJson(state.jobs)));
    jobs_ = state.jobs;
  }
  if (grants_ != state.grants) {
    AddItem(kGrants, DumpJson(ToJson(AgentState{.messages = {}, .grants = state.grants}).at("grants")));
    grants_ = state.grants;
  }
}

std::optional<RequestMarks> RunJournal::RequestBefore(const AgentObserver::Sent& sent) const {
  const Marked* found = nullptr;  // another sub-agent's has the same tools
  for (const Marked& each : marks_) {
    if (each.purpose != sent.purpose) continue;
    found = &each;
    if (each.call_id == sent.call_id) break;
  }
  return found == nullptr ? std::nullopt : std::optional(found->marks);
}

std::optional<std::size_t> RunJournal::AddRequest(InteractionId id, const AgentObserver::Sent& sent, ShortBody body,
                                                  const RequestMarks* before) {
  if (!record_.requests) return std::nullopt;
  const std::size_t index = record_.requests->size();
  body.marks.place = {id, index};
  if (sent.sources) body.marks.modules = ShortDigest(*sent.sources);
  const bool repeats = body.body.before && before != nullptr && before->modules == body.marks.modules;
  SentRequest& request = record_.requests->emplace_back(SentRequest{.round = sent.round_index,
                                                                    .purpose = sent.purpose,
                                                                    .at = Now(),
                                                                    .model = sent.model,
                                                                    .address = sent.address,
                                                                    .call_id = sent.call_id,
                                                                    .body = std::move(body.body)});
  if (!repeats && sent.sources) {
    request.modules = sent.sources->modules;
    request.tools = sent.sources->tools;
  }
  if (is_kept_) {
    const std::size_t begin = BeginItem(kRequest);
    constexpr std::size_t kAround = 4096;  // the rest of a request and its marks
    std::size_t bytes = kAround;
    for (const BodyPiece& piece : request.body.pieces) bytes += piece.text.view().size();
    pending_.reserve(pending_.size() + bytes);
    pending_ += '[';
    AppendJson(pending_, request);
    pending_ += ',';
    AppendJson(pending_, body.marks);
    pending_ += ']';
    EndItem(begin);
  }
  std::erase_if(marks_,
                [&](const Marked& each) { return each.purpose == sent.purpose && each.call_id == sent.call_id; });
  marks_.push_back({sent.purpose, sent.call_id, std::move(body.marks)});
  return index;
}

void RunJournal::AddResponse(std::size_t request, SentResponse response) {
  if (!record_.requests || request >= record_.requests->size()) return;
  SentRequest& asked = (*record_.requests)[request];
  if (is_kept_) AddItem(kResponse, DumpJson(Json{request, ToJson(response, asked.model)}));
  asked.response = std::move(response);
}

std::optional<RequestMarks> RunJournal::marks() const {
  const auto found = std::ranges::find(marks_, SentRequest::Purpose::kTurn, &Marked::purpose);
  return found == marks_.end() ? std::nullopt : std::optional(found->marks);
}

void RunJournal::AddUsage(std::uint32_t round_index, const TokenUsage& usage) {
  if (!is_kept_) return;
  Json tokens = {{"round_index", round_index}};
  WriteUsage(tokens, usage);
  AddItem(kUsage, DumpJson(tokens));
}

void RunJournal::AddAnswer(const std::string& id, const GivenAnswer& answer) {
  if (is_kept_) AddItem(kAnswer, DumpJson(ToJson(id, answer)));
}

void RunJournal::AddItem(char type, std::string_view content) {
  pending_ += type;
  AppendNumber(pending_, static_cast<std::uint32_t>(content.size()));
  pending_ += content;
}

// Begins an item whose content, up to many megabytes, is written in place.
std::size_t RunJournal::BeginItem(char type) {
  pending_ += type;
  AppendNumber(pending_, 0);
  return pending_.size();
}

void RunJournal::EndItem(std::size_t begin) {
  std::string size;
  AppendNumber(size, static_cast<std::uint32_t>(pending_.size() - begin));
  pending_.replace(begin - kNumberBytes, kNumberBytes, size);
}

void RunJournal::AddDelta(char type, std::uint32_t round_index, std::string_view text) {
  if (!is_kept_) return;
  pending_ += type;
  AppendNumber(pending_, static_cast<std::uint32_t>(kNumberBytes + text.size()));
  AppendNumber(pending_, round_index);
  pending_ += text;
}

void RunJournal::Append(Journal::Reach reach, RunHold::Done done) {
  if (!is_kept_) return done({});
  hold_->Append(pending_, reach, std::move(done));
  pending_.clear();
  if (pending_.capacity() > kKeptCapacity) std::string().swap(pending_);
}

Result<std::string> JournalRecordAsJson(std::string_view record) {
  std::string lines;
  try {
    ForEachItem(record,
                [&](char type, std::string_view content) { lines += DumpJson(ItemAsJson(type, content)) + "\n"; });
  } catch (const std::exception&) {
    return Malformed();
  }
  return lines;
}

RunReader::RunReader(const InteractionRef& ref)
    : run_{.interaction = {.id = ref.interaction_id, .chat_id = ref.chat_id}} {}

Result<void> RunReader::Add(std::string_view record) {
  try {
    ForEachItem(record, [&](char type, std::string_view item) { ReadItem(type, item, run_, spent_); });
  } catch (const std::exception&) {
    return Malformed();
  }
  return {};
}

InterruptedRun RunReader::Take() {
  for (const auto& [round, usage] : spent_) run_.interaction.usage += usage;
  if (const auto last = spent_.find(run_.last_round); last != spent_.end()) run_.unshown_usage = last->second;
  return std::move(run_);
}

Result<std::optional<InterruptedRun>> ReadRun(const InteractionRef& ref, const JournalContent& content) {
  if (content.records.empty()) return std::optional<InterruptedRun>();
  RunReader reader(ref);
  for (const std::string& record : content.records) {
    TRY(reader.Add(record));
  }
  return std::optional(reader.Take());
}

}  // namespace reprise
