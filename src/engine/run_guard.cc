#include "engine/run_guard.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "agent/history.h"
#include "approval/decision.h"
#include "base/json.h"

namespace reprise {
namespace {

Error DeniedByHook(std::string why) { return Refused(ErrorCode::kForbidden, "hook_denied", std::move(why)); }

bool IsSameJson(std::string_view one, std::string_view other) {
  const auto a = ParseJson(one), b = ParseJson(other);
  return a && b && *a == *b;
}

}  // namespace

RunGuard::RunGuard(Parts parts, std::string chat_id, std::string interaction_id, std::string user_message, bool begun)
    : parts_(parts),
      chat_id_(std::move(chat_id)),
      interaction_id_(std::move(interaction_id)),
      user_message_(std::move(user_message)),
      begun_(begun) {}

HookFacts RunGuard::FactsOf(HookEvent event) const {
  return {.event = event, .chat_id = chat_id_, .interaction_id = interaction_id_};
}

bool RunGuard::reviews_requests() const {
  return Wants(HookEvent::kBeforeInteraction) || Wants(HookEvent::kBeforeModel);
}

Result<Hooks::Verdict> RunGuard::Ask(HookFacts facts, const std::stop_token& stop) const {
  Hooks::Verdict verdict = parts_.hooks->Run(std::move(facts), stop);
  if (verdict.denied) return Fail(DeniedByHook(*std::move(verdict.denied)));
  return verdict;
}

Result<void> RunGuard::Begin(const std::stop_token& stop) {
  if (!Wants(HookEvent::kBeforeInteraction) || begun_.exchange(true)) return {};
  HookFacts facts = FactsOf(HookEvent::kBeforeInteraction);
  facts.user_message = user_message_;
  return Ask(std::move(facts), stop).map([](const Hooks::Verdict&) {});
}

Result<std::string> RunGuard::Admit(std::uint32_t round_index, const std::string& model, const std::stop_token& stop) {
  if (!Wants(HookEvent::kBeforeModel)) return std::string();
  HookFacts facts = FactsOf(HookEvent::kBeforeModel);
  facts.round_index = round_index;
  facts.model = model;
  return Ask(std::move(facts), stop).map([](Hooks::Verdict verdict) { return std::move(verdict.context); });
}

Result<void> RunGuard::Heard(std::uint32_t round_index, const std::string& model, const std::string& text,
                             const std::stop_token& stop) {
  if (!Wants(HookEvent::kAfterModel)) return {};
  HookFacts facts = FactsOf(HookEvent::kAfterModel);
  facts.round_index = round_index;
  facts.model = model;
  facts.text = text;
  return Ask(std::move(facts), stop).map([](const Hooks::Verdict&) {});
}

CallGuard::Verdict RunGuard::Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) {
  if (!Wants(HookEvent::kBeforeTool)) return {};
  HookFacts facts = FactsOf(HookEvent::kBeforeTool);
  facts.round_index = round_index;
  facts.call_id = call.id;
  facts.tool_name = call.name;
  facts.arguments = call.arguments;
  Hooks::Verdict verdict = parts_.hooks->Run(std::move(facts), stop);
  if (verdict.denied) return {.refusal = "Not run: a hook denied it: " + *verdict.denied};
  // Written in another way is not changed: a person's grant is for the bytes that were shown.
  if (verdict.arguments && IsSameJson(*verdict.arguments, call.arguments)) verdict.arguments.reset();
  return {.refusal = {}, .arguments = std::move(verdict.arguments)};
}

Result<void> RunGuard::Note(AuditEntry entry) {
  if (parts_.audit == nullptr || muted_) return {};
  entry.chat_id = chat_id_;
  entry.interaction_id = interaction_id_;
  return parts_.audit->Append(entry);
}

std::string RunGuard::Redacted(std::string text) const {
  if (!parts_.redactor.empty()) text = parts_.redactor.Redacted(std::move(text));
  if (parts_.guardrails.looks_at_output()) text = parts_.guardrails.Redacted(std::move(text));
  return text;
}

ToolOutcome RunGuard::Passed(std::uint32_t round_index, const ToolCall& call, ToolOutcome outcome,
                             const std::stop_token& stop) {
  outcome.output = Redacted(std::move(outcome.output));
  if (!Wants(HookEvent::kAfterTool)) return outcome;
  HookFacts facts = FactsOf(HookEvent::kAfterTool);
  facts.round_index = round_index;
  facts.call_id = call.id;
  facts.tool_name = call.name;
  facts.arguments = call.arguments;
  facts.output = outcome.output;
  facts.is_error = outcome.is_error;
  Hooks::Verdict verdict = parts_.hooks->Run(std::move(facts), stop);
  if (verdict.denied) {
    outcome.output = stop.stop_requested() ? std::string(kCancelledResult)
                                           : "A hook withholds what the call said: " + Redacted(*verdict.denied);
    outcome.is_error = true;
    outcome.requires_confirmation = false;  // nobody knows what would be confirmed
    outcome.files.clear();
    outcome.parts.clear();
  } else if (verdict.output) {
    outcome.output = Redacted(*std::move(verdict.output));
  }
  return outcome;
}

std::function<std::string(std::string_view)> RunGuard::LiveFilter() const {
  // A pattern may match across pieces, however long: nothing is shown before all is there.
  if (parts_.guardrails.looks_at_output()) return [](std::string_view) { return std::string(); };
  if (parts_.redactor.empty()) return {};
  return parts_.redactor.ForPieces();
}

void RunGuard::Ended(InteractionStatus status, const std::stop_token& stop) {
  if (!Wants(HookEvent::kAfterInteraction)) return;
  HookFacts facts = FactsOf(HookEvent::kAfterInteraction);
  facts.user_message = user_message_;
  facts.status = ToString(status);
  parts_.hooks->Run(std::move(facts), stop);
}

}  // namespace reprise
