#include "engine/run_journal.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "domain/codec.h"

namespace reprise {
namespace {

Json TextOrNull(const std::optional<InteractionId>& id) { return id ? Json(id->str()) : Json(); }

tl::unexpected<Error> Malformed() {
  return Fail(Error{.code = ErrorCode::kCorruption,
                    .reason = "integrity_auth",
                    .message = "a journal's record is not what it should be"});
}

// Reading throws where a member is missing or of another type; ReadRun turns that into its one error.
std::optional<InteractionId> IdOrNull(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return InteractionId::Parse(json.get_ref<const std::string&>()).value();
}

void ReadBegin(const Json& begin, InterruptedRun& run) {
  run.interaction.parent_id = IdOrNull(begin.at("parent_id"));
  run.interaction.edited_from = IdOrNull(begin.at("edited_from"));
  run.interaction.user_message = begin.at("user_message").get<std::string>();
  run.interaction.model = begin.at("model").get<std::string>();
  run.interaction.created_at = ParseTimestamp(begin.at("created_at").get<std::string>()).value();
  run.on_disconnect =
      begin.at("on_disconnect").get<std::string>() == "continue" ? OnDisconnect::kContinue : OnDisconnect::kCancel;
}

void ReadEvent(const Json& data, InterruptedRun& run) {
  run.last_seq = data.at("seq").get<std::uint64_t>();
  const auto round = data.at("round_index").get<std::uint32_t>();
  if (round != run.last_round) {
    run.thinking.clear();
    run.text.clear();
  }
  run.last_round = round;
  const std::string type = data.at("type").get<std::string>();
  if (type == event::TextDelta::kType) {
    run.text += data.at("content").get<std::string>();
  } else if (type == event::ThinkingDelta::kType) {
    run.thinking += data.at("content").get<std::string>();
  } else if (type != event::ToolOutputDelta::kType && type != event::InteractionStarted::kType) {
    AgentEvent event = AgentEventFromJson(data).value();
    if (std::holds_alternative<event::Thinking>(event.payload)) run.thinking.clear();
    if (std::holds_alternative<event::MessageText>(event.payload)) run.text.clear();
    if (const auto* usage = std::get_if<event::Usage>(&event.payload)) {
      run.interaction.usage.input_tokens += usage->tokens.input_tokens;
      run.interaction.usage.output_tokens += usage->tokens.output_tokens;
    }
    run.interaction.events.push_back(std::move(event));
  }
}

void ReadFrames(std::string_view frames, InterruptedRun& run) {
  constexpr std::string_view kData = "\ndata: ", kEnd = "\n\n";
  run.frames += frames;
  while (!frames.empty()) {
    const std::size_t end = frames.find(kEnd), data = frames.find(kData);
    if (end == std::string_view::npos || data > end) throw std::invalid_argument("frame");
    const std::size_t begin = data + kData.size();
    ReadEvent(ParseJson(frames.substr(begin, end - begin)).value(), run);
    frames.remove_prefix(end + kEnd.size());
  }
}

void ReadRecord(const Json& record, InterruptedRun& run) {
  if (const auto begin = record.find("begin"); begin != record.end()) ReadBegin(*begin, run);
  if (const auto messages = record.find("messages"); messages != record.end()) {
    for (const Json& message : *messages) run.messages.push_back(MessageFromJson(message).value());
  }
  if (const auto grants = record.find("grants"); grants != record.end()) {
    run.grants = AgentStateFromJson({{"messages", Json::array()}, {"grants", *grants}}).value().grants;
  }
  if (const auto frames = record.find("frames"); frames != record.end()) {
    ReadFrames(frames->get_ref<const std::string&>(), run);
  }
}

}  // namespace

Result<void> RunJournal::Begin(const Interaction& interaction, OnDisconnect on_disconnect) {
  if (!journal_) return {};
  const Json begin = {{"parent_id", TextOrNull(interaction.parent_id)},
                      {"edited_from", TextOrNull(interaction.edited_from)},
                      {"user_message", interaction.user_message},
                      {"model", interaction.model},
                      {"created_at", FormatTimestamp(interaction.created_at)},
                      {"on_disconnect", on_disconnect == OnDisconnect::kContinue ? "continue" : "cancel"}};
  return journal_->Append(DumpJson({{"begin", begin}}), Journal::Reach::kProcess);
}

void RunJournal::StateGrew(const AgentState& state) {
  if (!journal_) return;
  for (; messages_kept_ < state.messages.size(); ++messages_kept_) {
    if (!messages_.empty()) messages_ += ',';
    messages_ += DumpJson(ToJson(state.messages[messages_kept_]));
  }
  grants_ = DumpJson(ToJson(AgentState{.messages = {}, .grants = state.grants}).at("grants"));
}

Result<void> RunJournal::Append(std::string_view frames, Journal::Reach reach) {
  if (!journal_ || (frames.empty() && messages_.empty())) return {};
  std::string record;
  record.reserve(frames.size() + frames.size() / 8 + messages_.size() + grants_.size() + 64);
  record += "{\"frames\":\"";
  AppendJsonEscaped(record, frames);
  record += '"';
  if (!messages_.empty()) {
    record.append(",\"messages\":[").append(std::exchange(messages_, {})).append("],\"grants\":").append(grants_);
  }
  record += '}';
  return journal_->Append(record, reach);
}

Result<std::optional<InterruptedRun>> ReadRun(const InteractionRef& ref, const JournalContent& content) {
  if (content.records.empty()) return std::optional<InterruptedRun>();
  InterruptedRun run{.interaction = {.id = ref.interaction_id, .chat_id = ref.chat_id}};
  try {
    for (const std::string& record : content.records) {
      const auto json = ParseJson(record, kMaxJsonDepth + 16);
      if (!json) return Malformed();
      ReadRecord(*json, run);
    }
  } catch (const std::exception&) {
    return Malformed();
  }
  return std::optional<InterruptedRun>(std::move(run));
}

}  // namespace reprise
