#include "doors/openai/agent_translator.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/utf8.h"
#include "doors/shown_text.h"

namespace reprise {
namespace {

constexpr std::size_t kShownArguments = 600;

// As code, whatever quotes it has.
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

std::string Escaped(std::string_view text) {
  std::string out;
  AppendJsonEscaped(out, text);
  return out;
}

std::int64_t Tokens(const Json& usage, std::string_view name) {
  const Json& value = MemberOf(usage, name);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

TokenUsage UsageIn(const Json& event) {
  return {.input_tokens = Tokens(event, "input_tokens"),
          .output_tokens = Tokens(event, "output_tokens"),
          .cache_read_tokens = Tokens(event, "cache_read_tokens"),
          .cache_write_tokens = Tokens(event, "cache_write_tokens")};
}

}  // namespace

void AgentTranslator::Take(const EventFrame& event, std::string& out) {
  if (event.name == event::TextDelta::kName || event.name == event::ThinkingDelta::kName) {
    std::string_view content = event.ContentLiteral();
    if (content.size() < 2) return;
    content = content.substr(1, content.size() - 2);
    const bool is_text = event.name == event::TextDelta::kName;
    (is_text ? said_ : thought_) = true;
    return is_text ? TakeText(content, out) : TakeThinking(content, out);
  }
  TakeWhole(event, out);
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
  if (options_.page.empty() || !run_) return "with `reprise approvals`";
  return "on [the page](" + options_.page + "#" + run_->chat_id.str() + ") or with `reprise approvals`";
}

void AgentTranslator::BeginAnswer(const std::string& chat, const std::string& interaction, std::string& out) {
  const auto chat_id = ChatId::Parse(chat);
  const auto id = InteractionId::Parse(interaction);
  if (!chat_id || !id) return;
  run_ = InteractionRef{*chat_id, *id};
  if (options_.began) options_.began(*run_);
  writer_->Begin({.name = chat + "_" + interaction, .created = SecondsOf(options_.created_at)}, out);
}

void AgentTranslator::TakeWhole(const EventFrame& frame, std::string& out) {
  const std::string_view name = frame.name;
  // Large, or nothing that this interface has.
  if (name == event::ToolResult::kName || name == event::ToolOutputDelta::kName) return;
  if (name == event::Nested::kName && frame.data.find("\"USAGE\"") == std::string_view::npos) return;
  const auto parsed = ParseJson(frame.data, 2 * kMaxJsonDepth);
  if (!parsed) return;
  const Json& event = *parsed;
  if (name == event::InteractionStarted::kName) {
    BeginAnswer(TextMember(event, "chat_id"), TextMember(event, "interaction_id"), out);
  } else if (name == event::Answer::kName || name == event::MessageText::kName) {
    const std::string content = TextMember(event, "content");
    if (!said_) TakeText(Escaped(content), out);
    spoken_ += content + "\n";
    needs_break_ = true;
    said_ = thought_ = false;
    if (name == event::Answer::kName) {
      end_.truncated = TextMember(event, "reason");
      spoken_digest_ = SpokenDigest(std::exchange(spoken_, {}));
    }
  } else if (name == event::Thinking::kName) {
    if (!thought_) TakeThinking(Escaped(TextMember(event, "content")), out);
    thought_ = false;
  } else if (name == event::ToolCallStarted::kName) {
    said_ = thought_ = false;
    needs_break_ = true;
    const std::string line =
        "\n" + TextMember(event, "tool_name") + " " + Shortened(TextMember(event, "tool_input")) + "\n";
    TakeThinking(Escaped(line), out);
  } else if (name == event::ApprovalRequired::kName) {
    Note(ApprovalNote(TextMember(event, "tool_name"), AsCode(Shortened(TextMember(event, "tool_input"))), Link()), out);
  } else if (name == event::Approved::kName) {
    Note(kApprovedNote, out);
  } else if (name == event::Rejected::kName) {
    Note(MemberOf(event, "expired") == true ? kExpiredNote : kRejectedNote, out);
  } else if (name == event::InputRequired::kName) {
    Note(QuestionNote(TextMember(event, "question"), Link()), out);
  } else if (name == event::Usage::kName) {
    end_.usage += UsageIn(event);
  } else if (name == event::Nested::kName) {
    const Json& step = MemberOf(event, "event");
    if (TextMember(step, "type") == event::Usage::kType) end_.usage += UsageIn(step);
  } else if (name == event::Failed::kName) {
    end_.failure = AnswerFailure{TextMember(event, "code"), TextMember(event, "message")};
  } else if (name == event::InteractionComplete::kName) {
    end_.status = ParseInteractionStatus(TextMember(event, "status")).value_or(InteractionStatus::kFailed);
  }
}

void AgentTranslator::EndAs(InteractionStatus status, std::string& out) {
  end_.status = status;
  if (status != InteractionStatus::kFailed) end_.failure.reset();
  if (run_) Finish(out);
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
  if (!run_) writer_->Begin({.name = "none", .created = SecondsOf(std::nullopt)}, out);  // it never began
  if (complete && run_ && options_.ended) {
    options_.ended(*run_, spoken_digest_.empty() ? SpokenDigest(spoken_) : spoken_digest_);
  }
  Finish(out);
}

void AgentTranslator::Finish(std::string& out) {
  if (options_.completed_at) end_.at = SecondsOf(options_.completed_at);
  writer_->End(end_, out);
}

}  // namespace reprise
