#include "doors/openai/request_notes.h"

#include <utility>

#include "base/try.h"
#include "doors/openai/answer_writer.h"

namespace reprise::openai {
namespace {

constexpr std::size_t kMostNotes = 1'000;
constexpr std::size_t kMostBytes = 8u << 20;

}  // namespace

void RequestNotes::Note(const InteractionRef& response, const OpenAiRequest& asked) {
  Noted noted{.asked_model = asked.asked_model,
              .instructions = asked.instructions,
              .metadata = asked.metadata,
              .conversation = asked.continues ? asked.chat_name : std::nullopt,
              .background = asked.background};
  const MutexLock lock(mutex_);
  const std::string id = ResponseId(response);
  if (!notes_.contains(id)) Keep(id, std::move(noted));  // otherwise the request is a repeated one
}

void RequestNotes::NoteMetadata(const ChatId& conversation, const std::string& metadata) {
  const MutexLock lock(mutex_);
  if (const auto found = notes_.find(conversation.str()); found != notes_.end()) {
    bytes_ -= found->second.bytes();
    notes_.erase(found);
    std::erase(ids_, conversation.str());
  }
  Keep(conversation.str(), {.metadata = metadata});
}

std::string RequestNotes::MetadataOf(const ChatId& conversation) {
  const MutexLock lock(mutex_);
  const auto found = notes_.find(conversation.str());
  return found == notes_.end() ? "{}" : found->second.metadata;
}

void RequestNotes::Keep(const std::string& id, Noted noted) {
  bytes_ += noted.bytes();
  notes_.emplace(id, std::move(noted));
  ids_.push_back(id);
  while (ids_.size() > kMostNotes || bytes_ > kMostBytes) {
    const auto oldest = notes_.find(ids_.front());
    bytes_ -= oldest->second.bytes();
    notes_.erase(oldest);
    ids_.pop_front();
  }
}

void RequestNotes::Recall(const InteractionRef& response, OpenAiRequest& asked) {
  const MutexLock lock(mutex_);
  const auto found = notes_.find(ResponseId(response));
  if (found == notes_.end()) return;
  asked.asked_model = found->second.asked_model;
  asked.instructions = found->second.instructions;
  asked.metadata = found->second.metadata;
  asked.background = found->second.background;
  asked.chat_name = found->second.conversation;
  asked.continues = asked.chat_name.has_value();
}

namespace {

constexpr std::string_view kInput = "_input";  // ends an input item's id; outputs end with a number

std::string NameOf(const Interaction& interaction) { return interaction.chat_id.str() + "_" + interaction.id.str(); }

}  // namespace

Result<std::string> ResponseText(Engine& engine, const Interaction& interaction, OpenAiRequest asked,
                                 const std::string& page) {
  const auto attached = TRY(engine.Attach(interaction.chat_id, interaction.id, 0));
  asked.is_record = IsFinished(attached.status);
  AgentTranslator translator(
      MakeResponseWriter(asked),
      {.page = page, .created_at = interaction.created_at, .completed_at = interaction.completed_at});
  std::string out;
  EachEvent(*attached.subscription.log, [&](const EventFrame& event) { translator.Take(event, out); });
  translator.EndAs(attached.status, out);
  return out;
}

Json InputItem(const Interaction& interaction) {
  Json content = Json::array({{{"type", "input_text"}, {"text", interaction.user_message}}});
  for (const Attachment& file : interaction.attachments) {
    content.push_back({{"type", "input_file"}, {"file_id", file.id.str()}, {"filename", file.filename}});
  }
  return {{"type", "message"},
          {"id", "msg_" + NameOf(interaction) + std::string(kInput)},
          {"status", "completed"},
          {"role", "user"},
          {"content", std::move(content)}};
}

Result<std::vector<Json>> ItemsOf(Engine& engine, const Interaction& interaction, const std::string& page) {
  std::vector<Json> items;
  if (!interaction.user_message.empty()) items.push_back(InputItem(interaction));
  const std::string text = TRY(ResponseText(engine, interaction, {.is_agent = true}, page));
  Json response = TRY(ParseJson(text, 2 * kMaxJsonDepth));
  for (Json& item : response["output"]) items.push_back(std::move(item));
  return items;
}

std::optional<InteractionRef> InteractionOfItem(std::string_view id) {
  const std::size_t begin = id.find('_'), end = id.rfind('_');
  if (begin == std::string_view::npos || end <= begin) return std::nullopt;
  return ParseResponseId("resp" + std::string(id.substr(begin, end - begin)));
}

Result<InteractionRef> ResponseInPath(const Request& request) {
  if (auto ref = ParseResponseId(request.captures.at(0))) return *std::move(ref);
  return Fail(ErrorCode::kNotFound, "there is no such response");
}

}  // namespace reprise::openai
