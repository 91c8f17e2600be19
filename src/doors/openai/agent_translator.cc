#include <algorithm>
#include <chrono>
#include <utility>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "domain/transcript/event_visitor.h"
#include "doors/openai/answer_writer.h"
#include "doors/shown_text.h"

namespace reprise::openai {
namespace {

constexpr std::size_t kShownArguments = 600;

// `text` as Markdown code, even if it contains backquotes.
std::string AsCode(const std::string& text) {
  std::size_t longest = 0, now = 0;
  for (const char c : text) longest = std::max(longest, now = c == '`' ? now + 1 : 0);
  const std::string fence(longest + 1, '`');
  return longest == 0 ? fence + text + fence : fence + " " + text + " " + fence;
}

std::string Shortened(const std::string& text) {
  const std::string line = VisibleOnOneLine(text);
  const std::string_view begin = Utf8Prefix(line, kShownArguments);
  return begin.size() < line.size() ? std::string(begin) + "..." : line;
}

std::int64_t SecondsOf(std::optional<Timestamp> time) {
  return std::chrono::floor<std::chrono::seconds>(time.value_or(Now())).time_since_epoch().count();
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  AppendJsonEscaped(out, text);
  return out;
}

void AgentTranslator::TakePiece(std::uint64_t, Piece piece, std::string_view escaped, std::string& out) {
  const bool is_text = piece == Piece::kText;
  (is_text ? said_ : thought_) = true;
  is_text ? TakeText(escaped, out) : TakeThinking(escaped, out);
}

void AgentTranslator::TakeText(std::string_view escaped, std::string& out) {
  if (escaped.empty()) return;
  if (std::exchange(needs_break_, false) && has_text_) writer_->Text("\\n\\n", out);
  has_text_ = true;
  writer_->Text(escaped, out);
}

void AgentTranslator::TakeThinking(std::string_view escaped, std::string& out) {
  if (!escaped.empty()) writer_->Thinking(escaped, out);
}

void AgentTranslator::Note(std::string_view text, std::string& out) {
  needs_break_ = true;
  TakeText(Escaped(text), out);
  needs_break_ = true;
}

std::string AgentTranslator::Link() const {
  if (options_.page.empty() || !run_.run) return "with `reprise approvals`";
  return "on [the page](" + options_.page + "#" + run_.run->chat_id.str() + ") or with `reprise approvals`";
}

void AgentTranslator::BeginAnswer(std::string& out) {
  if (!run_.run) return;
  if (options_.began) options_.began(*run_.run);
  const auto& [chat, interaction] = *run_.run;
  writer_->Begin({.name = chat.str() + "_" + interaction.str(), .created = SecondsOf(options_.created_at)}, out);
}

void AgentTranslator::TakeAnswer(const std::string& content, std::string& out) {
  if (!said_) TakeText(Escaped(content), out);
  spoken_ += content + "\n";
  needs_break_ = true;
  said_ = thought_ = false;
}

void AgentTranslator::TakeEvent(const AgentEvent& event, std::string& out) {
  run_.Take(event);
  std::visit(
      Overload{Ignoring<event::ThinkingDelta, event::TextDelta, event::SoundDelta, event::Sound, event::ToolOutputDelta,
                        event::ToolResult, event::InputReceived, event::TaskUpdated, event::PlanUpdated,
                        event::GrantsUpdated, event::WebSearch, event::Retry, event::LoopDetected, event::SentBack,
                        event::Compacted, event::JobStarted, event::JobEnded, event::FilesChanged, event::Cancelled>(),
               [&](const event::InteractionStarted&) { BeginAnswer(out); },
               [&](const event::MessageText& e) {
                 TakeAnswer(e.content, out);
                 writer_->Cite(e.content, e.citations, out);
               },
               [&](const event::Answer& e) {
                 TakeAnswer(e.content, out);
                 writer_->Cite(e.content, e.citations, out);
                 end_.truncated = e.reason;
                 spoken_digest_ = SpokenDigest(std::exchange(spoken_, {}));
               },
               [&](const event::Thinking& e) {
                 if (!std::exchange(thought_, false)) TakeThinking(Escaped(e.content), out);
               },
               [&](const event::ToolCallStarted& e) {
                 said_ = thought_ = false;
                 needs_break_ = true;
                 TakeThinking(Escaped("\n" + e.tool_name + " " + Shortened(e.tool_input) + "\n"), out);
               },
               [&](const event::ApprovalRequired& e) {
                 Note(ApprovalNote(e.tool_name, AsCode(Shortened(e.tool_input)), Link()), out);
               },
               [&](const event::Approved&) { Note(kApprovedNote, out); },
               [&](const event::Rejected& e) { Note(e.expired ? kExpiredNote : kRejectedNote, out); },
               [&](const event::InputRequired& e) { Note(QuestionNote(e.question, Link()), out); },
               [&](const event::Usage& e) { end_.usage += e.tokens; },
               [&](const event::Nested& e) {
                 if (const auto* const usage = std::get_if<event::Usage>(&e.step)) end_.usage += usage->tokens;
               },
               [&](const event::Failed& e) {
                 end_.failure = AnswerFailure{e.code, e.message};
               },
               [&](const event::InteractionComplete& e) { end_.status = e.status; }},
      event.payload);
}

void AgentTranslator::EndAs(InteractionStatus status, std::string& out) {
  end_.status = status;
  if (status != InteractionStatus::kFailed) end_.failure.reset();
  if (run_.run) Finish(out);
}

void AgentTranslator::End(bool complete, std::string& out) {
  if (!complete && !end_.failure) {
    end_.status = InteractionStatus::kFailed;
    end_.failure = AnswerFailure{"stopping", "the server is stopping; the chat goes on when it has started again",
                                 /*retryable=*/true};
  }
  if (end_.status != InteractionStatus::kFailed) end_.failure.reset();
  if (end_.status == InteractionStatus::kFailed && !end_.failure)
    end_.failure = AnswerFailure{"failed", "the run has failed"};
  if (options_.is_repeated && end_.status == InteractionStatus::kCancelled) {
    end_.failure = AnswerFailure{"cancelled", "the run was cancelled"};
  }
  if (options_.is_repeated && end_.failure) {
    end_.failure->message += kRepeatedNote;
  }
  if (!run_.run) writer_->Begin({.name = "none", .created = SecondsOf(std::nullopt)}, out);  // the run never began
  if (complete && run_.run && options_.ended) {
    options_.ended(*run_.run, spoken_digest_.empty() ? SpokenDigest(spoken_) : spoken_digest_);
  }
  Finish(out);
}

void AgentTranslator::Finish(std::string& out) {
  if (options_.completed_at) end_.at = SecondsOf(options_.completed_at);
  writer_->End(end_, out);
}

}  // namespace reprise::openai
