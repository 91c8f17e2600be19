#include "engine/moves/turn_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "agent/history.h"
#include "agent/told.h"
#include "base/text.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

constexpr std::string_view kNoResult = "The result of this call is not known.";

// Message::extras with the blocks that Anthropic wants back in their order (schemas/README.md); empty if none is
// needed.
std::string ExtrasOf(const std::vector<MovedBlock>& blocks) {
  Json kept = Json::array();
  bool needed = false;
  for (const MovedBlock& block : blocks) {
    if (block.kind == MovedBlock::Kind::kText) kept.push_back({{"type", "text"}, {"bytes", block.text.size()}});
    if (block.kind == MovedBlock::Kind::kCall) kept.push_back({{"type", "tool_use"}});
    if (block.kind != MovedBlock::Kind::kThinking || block.verbatim.empty()) continue;
    constexpr int kDepth = 16;
    auto verbatim = ParseJson(block.verbatim, kDepth);
    if (!verbatim) continue;
    kept.push_back(*std::move(verbatim));
    needed = true;
  }
  if (!needed) return {};
  return DumpJson({{"provider_extras", {{"anthropic", {{"blocks", std::move(kept)}}}}}});
}

}  // namespace

void TurnBuilder::Add(MovedMessage step, const FileOf& file_of) {
  if (step.at) last_ = std::max(last_, *step.at);
  if (!step.nested.empty()) return AddNested(std::move(step));
  switch (step.kind) {
    case Kind::kPrompt:
      return AddPrompt(std::move(step), file_of);
    case Kind::kAnswer:
      return AddAnswer(std::move(step));
    case Kind::kResult:
      return AddResult(std::move(step), file_of);
    case Kind::kSummary:
      summaries_.push_back({.rounds = rounds_.size(), .step = std::move(step)});
      return;
    case Kind::kUsage:
      if (!rounds_.empty()) rounds_.back().usage += step.usage;
      return;
    case Kind::kModel:
      if (!step.model.empty()) next_model_ = std::move(step.model);
      return;
    case Kind::kStopped:
      stopped_ = true;
      return;
    case Kind::kFailed:
      if (failure_) left_out_.Add("message about a failure");
      failure_ = std::move(step.text);
      return;
  }
}

void TurnBuilder::TakeFiles(std::vector<MovedFile>& files, const FileOf& file_of, std::vector<MessagePart>& parts,
                            std::vector<Attachment>& attachments) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto file = file_of(i, files[i]);
    if (!file) continue;
    auto part = PartOf(file->info, file->content);
    attachments.push_back({.id = file->info.id,
                           .filename = file->info.filename,
                           .mime_type = file->info.mime_type,
                           .size_bytes = file->info.size_bytes,
                           .note = part ? "" : "it was imported; the model gets none of it"});
    if (part) parts.push_back(*std::move(part));
  }
  files.clear();
}

void TurnBuilder::AddPrompt(MovedMessage step, const FileOf& file_of) {
  TakeFiles(step.files, file_of, prompt_parts_, attachments_);
  prompt_ = std::move(step);
}

void TurnBuilder::AddAnswer(MovedMessage step) {
  const bool continues =
      !rounds_.empty() && rounds_.back().group == step.group && (!step.group.empty() || !rounds_.back().has_result);
  const bool after_summary = !summaries_.empty() && summaries_.back().rounds == rounds_.size();
  if (!continues || after_summary) rounds_.push_back({.group = step.group, .at = TimeOf(step)});
  if (std::exchange(failure_, std::nullopt)) left_out_.Add("message about a failure");  // the turn went on
  Round& round = rounds_.back();
  if (step.model.empty()) step.model = std::exchange(next_model_, {});
  if (!step.model.empty()) model_ = step.model;
  // Pieces of an answer tell the usage again, as it is so far.
  if (step.usage != TokenUsage{}) round.usage = step.usage;
  for (MovedBlock& block : step.blocks) {
    if (block.kind == MovedBlock::Kind::kText && IsBlank(block.text)) continue;
    if (block.kind == MovedBlock::Kind::kCall) AddCall(block);
    round.blocks.push_back(std::move(block));
  }
}

// Each call has an id of its own in the turn, whatever the source says.
void TurnBuilder::AddCall(MovedBlock& block) {
  Round& round = rounds_.back();
  const Place place{.round = rounds_.size() - 1, .call = round.calls.size()};
  std::string id = block.id.empty() ? "call_" + start_.id.str() + "_" + std::to_string(place.call) : block.id;
  int& number = next_number_.try_emplace(block.id, 2).first->second;
  while (!by_id_.emplace(id, place).second) id = block.id + "_" + std::to_string(number++);
  unanswered_[block.id].insert(place);
  round.calls.push_back(
      {.call = {
           .id = std::move(id), .name = block.name.empty() ? "tool" : block.name, .arguments = std::move(block.text)}});
}

TurnBuilder::Call* TurnBuilder::FindCall(const std::string& id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &At(found->second);
}

// It is that of the first call of this id that has none, in the last round with such a call.
void TurnBuilder::AddResult(MovedMessage step, const FileOf& file_of) {
  const auto calls = unanswered_.find(step.call_id);
  if (calls == unanswered_.end() || calls->second.empty()) return AddFurtherResult(std::move(step));
  auto& open = calls->second;
  const auto first = open.lower_bound({.round = open.rbegin()->round, .call = 0});
  const Place place = *first;
  open.erase(first);
  Call& call = At(place);
  TakeFiles(step.files, file_of, call.parts, call.files);
  step.at = TimeOf(step);
  call.result = std::move(step);
  rounds_[place.round].has_result = true;
}

// Some tools tell the result of a call in several messages.
void TurnBuilder::AddFurtherResult(MovedMessage step) {
  Call* const call = FindCall(step.call_id);
  if (call == nullptr || !call->result) return left_out_.Add("result without its call");
  if (call->result->text == step.text) return left_out_.Add("repeated result of a call");
  call->result->text += "\n" + step.text;
  left_out_.Add("file of a further result", step.files.size());
}

void TurnBuilder::AddNested(MovedMessage step) {
  Call* call = FindCall(step.nested);
  if (call == nullptr) return left_out_.Add("step of a sub-agent whose call is missing");
  if (!step.files.empty()) left_out_.Add("file of a sub-agent", step.files.size());
  step.files.clear();
  step.at = TimeOf(step);
  call->steps.push_back(std::move(step));
}

void TurnBuilder::Emit(Timestamp at, EventPayload payload) {
  made_.events.push_back(
      {.seq = made_.events.size() + 1, .round_index = round_index_, .at = at, .payload = std::move(payload)});
}

void TurnBuilder::EmitNested(const Call& call) {
  std::uint32_t round = 0;
  bool has_result = false;
  const auto emit = [&](const MovedMessage& step, event::Nested::Step payload) {
    Emit(*step.at, event::Nested{.call_id = call.call.id, .round_index = round, .step = std::move(payload)});
  };
  const auto last_answer = std::ranges::find_if(std::views::reverse(call.steps),
                                                [](const MovedMessage& step) { return step.kind == Kind::kAnswer; });
  // Calls have ids of their own here too, and a result is that of the last call of its id in the source that has none.
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::string>>> open;  // ids and tools
  std::unordered_map<std::string, int> next_number;
  std::unordered_set<std::string> ids;
  for (const MovedMessage& step : call.steps) {
    if (step.kind == Kind::kAnswer) {
      if (std::exchange(has_result, false)) ++round;
      const bool is_last = last_answer != call.steps.rend() && &step == &*last_answer;
      const bool calls = std::ranges::any_of(
          step.blocks, [](const MovedBlock& block) { return block.kind == MovedBlock::Kind::kCall; });
      for (const MovedBlock& block : step.blocks) {
        switch (block.kind) {
          case MovedBlock::Kind::kThinking:
            if (!block.text.empty()) emit(step, event::Thinking{block.text});
            break;
          case MovedBlock::Kind::kText:
            if (block.text.empty()) break;
            if (is_last && !calls) {
              emit(step, event::Answer{.content = block.text});
            } else {
              emit(step, event::MessageText{.content = block.text});
            }
            break;
          case MovedBlock::Kind::kCall: {
            std::string id = block.id;
            int& number = next_number.try_emplace(block.id, 2).first->second;
            while (!ids.insert(id).second) id = block.id + "_" + std::to_string(number++);
            open[block.id].emplace_back(id, block.name);
            emit(step, event::ToolCallStarted{.id = id, .tool_name = block.name, .tool_input = block.text});
            break;
          }
        }
      }
      if (step.usage != TokenUsage{}) emit(step, event::Usage{.tokens = step.usage});
    } else if (step.kind == Kind::kFailed) {
      emit(step, event::Failed{.code = std::string(NameOf(Reason::kProviderError)), .message = step.text});
    } else if (step.kind == Kind::kResult) {
      has_result = true;
      auto& calls = open[step.call_id];
      const auto [id, name] = calls.empty() ? std::pair(step.call_id, std::string()) : calls.back();
      if (calls.size() > 1) calls.pop_back();  // a tool may tell the first one's result once more
      emit(step, event::ToolResult{.id = id, .tool_name = name, .tool_output = step.text, .is_error = step.is_error});
    }
  }
}

void TurnBuilder::EmitRound(Round& round, bool is_last) {
  Message answer{.role = Role::kAssistant};
  for (MovedBlock& block : round.blocks) {
    if (block.kind == MovedBlock::Kind::kThinking && !block.text.empty()) Emit(round.at, event::Thinking{block.text});
    if (block.kind != MovedBlock::Kind::kText) continue;
    // Each text is a paragraph. The block counts the bytes in between, because they stand in the message.
    if (answer.content) block.text.insert(0, "\n\n");
    if (!answer.content) answer.content.emplace();
    *answer.content += block.text;
  }
  // As a run here ends, what a person stopped or what failed has no answer, but what was said of it.
  if (answer.content && is_last && round.calls.empty() && !stopped_ && !failure_) {
    Emit(round.at, event::Answer{.content = *answer.content});
  } else if (answer.content) {
    Emit(round.at, event::MessageText{.content = *answer.content});
  }
  answer.extras = ExtrasOf(round.blocks);
  for (const Call& call : round.calls) {
    answer.tool_calls.push_back(call.call);
    Emit(round.at,
         event::ToolCallStarted{.id = call.call.id, .tool_name = call.call.name, .tool_input = call.call.arguments});
  }
  messages_.push_back(std::move(answer));
  for (Call& call : round.calls) {
    EmitNested(call);
    if (!call.result) {
      left_out_.Add("result of a call, which is missing");
      call.result = {.kind = Kind::kResult, .at = last_, .text = std::string(kNoResult)};
    }
    messages_.push_back({.role = Role::kTool, .content = ToldOutput(call.call.name, call.result->text)});
    Emit(*call.result->at, event::ToolResult{.id = call.call.id,
                                             .tool_name = call.call.name,
                                             .tool_output = std::move(call.result->text),
                                             .is_error = call.result->is_error,
                                             .files = std::move(call.files)});
    messages_.back().is_error = call.result->is_error;
    messages_.back().tool_call_id = call.call.id;
    messages_.back().name = call.call.name;
    messages_.back().parts = std::move(call.parts);
  }
  if (round.usage != TokenUsage{}) Emit(round.at, event::Usage{.tokens = round.usage});
  made_.usage += round.usage;
  ++round_index_;
}

void TurnBuilder::EmitSummary(const MovedMessage& step) {
  // What a summary covers begins after the first message of the user (agent/context).
  const std::size_t end = start_.messages_before + messages_.size(), first = 1;
  if (IsBlank(step.text)) return left_out_.Add("summary without a text");
  if (end > first) {
    // As if requested: what it replaced was sent no more where it comes from, whatever fits the model here.
    compaction_ = std::make_shared<const Compaction>(
        Compaction{.first = first, .end = end, .summary = step.text, .requested = true});
  } else if (messages_.front().content != step.text) {
    messages_.push_back({.role = Role::kUser, .content = step.text});
  }
  Emit(TimeOf(step), event::Compacted{.messages = static_cast<std::int64_t>(std::max(end, first) - first),
                                      .tokens_before = step.tokens_before,
                                      .summary = step.text});
}

void TurnBuilder::PutStatus(bool answered) {
  made_.status = InteractionStatus::kCompleted;
  if (stopped_) {
    made_.status = InteractionStatus::kCancelled;
    Emit(last_, event::Cancelled{.reason = "requested"});
    if (failure_) left_out_.Add("message about a failure");
  } else if (failure_ || !answered) {
    made_.status = InteractionStatus::kFailed;
    made_.error =
        InteractionError{.code = "interrupted", .message = "it had no answer where it comes from", .retryable = true};
    if (failure_) {
      const std::string why = IsBlank(*failure_) ? "it failed where it comes from" : *std::move(failure_);
      made_.error = InteractionError{.code = std::string(NameOf(Reason::kProviderError)), .message = why};
    }
    Emit(last_, event::Failed{made_.error->code, made_.error->message, made_.error->retryable});
  }
}

MadeTurn TurnBuilder::Take() && {
  made_.parent_id = start_.parent;
  made_.edited_from = start_.edited_from;
  made_.created_at = prompt_ ? prompt_->at.value_or(start_.at) : start_.at;
  if (prompt_) made_.user_message = std::move(prompt_->text);
  made_.attachments = std::move(attachments_);
  Message prompt{.role = Role::kUser, .content = made_.user_message, .parts = std::move(prompt_parts_)};
  // What a session begins with that goes on with another: the model is told nothing else of it.
  const bool is_summary = !prompt_ && !summaries_.empty() && summaries_.front().rounds == 0;
  if (is_summary) prompt.content = summaries_.front().step.text;
  // No provider takes a blank text.
  if (IsBlank(*prompt.content)) prompt.content = prompt.parts.empty() ? "(no text)" : "";
  messages_.push_back(std::move(prompt));
  auto summary = summaries_.begin();
  for (std::size_t i = 0; i < rounds_.size(); ++i) {
    for (; summary != summaries_.end() && summary->rounds == i; ++summary) EmitSummary(summary->step);
    EmitRound(rounds_[i], i + 1 == rounds_.size());
  }
  for (; summary != summaries_.end(); ++summary) EmitSummary(summary->step);
  PutStatus(/*answered=*/!rounds_.empty() || is_summary);
  made_.model = model_.empty() ? std::move(next_model_) : std::move(model_);
  made_.completed_at = std::max(last_, made_.created_at);
  made_.imported = true;
  AgentState& state = made_.final_agent_state.emplace();
  const std::size_t added = messages_.size();
  state.messages = Messages(std::move(messages_));
  if (compaction_) state.compaction = *compaction_;
  return {.added = {.interaction = std::move(made_), .kept_messages = start_.messages_before},
          .compaction = std::move(compaction_),
          .messages = start_.messages_before + added};
}

}  // namespace reprise
