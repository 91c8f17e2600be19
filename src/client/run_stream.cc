#include "client/run_stream.h"

#include <algorithm>
#include <utility>

#include "base/system.h"
#include "base/terminal_text.h"
#include "domain/codec.h"
#include "terminal/question_text.h"

namespace reprise {
namespace {

// Removes questions that no longer wait, because they were answered while the stream was down.
void KeepWaiting(std::vector<PendingQuestion>& open, const Json& stream_open) {
  std::erase_if(open, [&](const PendingQuestion& each) {
    const bool is_approval = std::holds_alternative<PendingApproval>(each);
    const Json& waiting = MemberOf(stream_open, is_approval ? "pending_approvals" : "pending_inputs");
    return std::ranges::none_of(waiting, [&](const Json& one) {
      return TextMember(one, is_approval ? "approval_id" : "request_id") == QuestionId(each);
    });
  });
}

}  // namespace

bool IsRunning(const std::string& status) { return status == "RUNNING" || status.starts_with("WAITING"); }

const Json& RunningIn(const Json& chat) {
  static const Json none = nullptr;
  for (const Json& interaction : MemberOf(chat, "interactions")) {
    if (IsRunning(TextMember(interaction, "status"))) return interaction;
  }
  return none;
}

std::string SayRunning(const Json& interaction) {
  const bool runs = TextMember(interaction, "status") == "RUNNING";
  return runs ? "a turn is running" : "a turn waits for you";
}

std::vector<PendingQuestion> QuestionsIn(const Json& waiting) {
  std::vector<PendingQuestion> questions;
  RunState asked;
  const auto add = [&](const char* list, std::string_view type) {
    for (Json each : MemberOf(waiting, list)) {
      const auto chat = ChatId::Parse(TextMember(each, "chat_id"));
      const auto interaction = InteractionId::Parse(TextMember(each, "interaction_id"));
      if (!chat || !interaction) continue;
      each["type"] = type;
      asked.run = InteractionRef{*chat, *interaction};
      if (const auto event = ReceivedEvent(each)) asked.Take(*event);
    }
  };
  add("approvals", event::ApprovalRequired::kType);
  add("inputs", event::InputRequired::kType);
  return asked.open;
}

bool Has(const std::vector<PendingQuestion>& questions, const std::string& id) {
  return std::ranges::any_of(questions, [&](const PendingQuestion& each) { return QuestionId(each) == id; });
}

std::string AskedBy(const PendingQuestion& question) {
  const auto* const approval = std::get_if<PendingApproval>(&question);
  return approval != nullptr ? CallLabel(approval->request.tool_name, approval->request.tool_input)
                             : std::get<PendingInput>(question).request.question;
}

std::string RunPath(const InteractionRef& run) {
  return "/chats/" + run.chat_id.str() + "/interactions/" + run.interaction_id.str();
}

void RunStream::Start(std::string path, Json body) {
  start_path_ = std::move(path);
  start_body_ = std::move(body);
  key_ = "run-" + RandomHex(16);
  interaction_.clear();
  Resume();
}

void RunStream::Attach(const std::string& interaction) {
  interaction_ = interaction;
  const auto chat = ChatId::Parse(chat_);
  const auto id = InteractionId::Parse(interaction);
  if (chat && id) state_.run = InteractionRef{*chat, *id};
  Resume();
}

void RunStream::Resume() {
  is_attached_ = !interaction_.empty();
  is_live_ = !is_attached_;
  if (!is_attached_) heard_.clear(), state_ = {}, last_seq_ = 0;  // of a message that could not begin
  stream_ = is_attached_
                ? server_.Stream("GET", path() + "/events?after_seq=" + std::to_string(last_seq_), Json(nullptr))
                : server_.Stream("POST", start_path_, start_body_, key_);
}

void RunStream::Receive() {
  stream_->Receive();
  while (auto next = stream_->Next()) {
    auto event = ReceivedEvent(next->data);
    Heard heard{.name = std::move(next->name), .data = std::move(next->data), .event = std::move(event)};
    if (heard.name == "stream_live") is_live_ = true;
    if (heard.name == "stream_open") KeepWaiting(state_.open, heard.data);
    if (heard.event) {
      const std::uint64_t seq = heard.event->seq;
      if (seq != 0 && seq <= last_seq_) continue;  // repeated
      last_seq_ = std::max(last_seq_, seq);
      state_.Take(*heard.event);
      if (const auto* const started = std::get_if<event::InteractionStarted>(&heard.event->payload)) {
        interaction_ = started->interaction_id;
      }
    }
    heard_.push_back(std::move(heard));
  }
}

std::optional<RunStream::Heard> RunStream::Next() {
  if (heard_.empty()) return std::nullopt;
  Heard heard = std::move(heard_.front());
  heard_.pop_front();
  return heard;
}

}  // namespace reprise
