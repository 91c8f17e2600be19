#include "engine/run_guard.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "agent/history.h"
#include "approval/decision.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"

namespace reprise {

namespace {

constexpr std::chrono::minutes kWindow{1};

}  // namespace

std::optional<std::chrono::seconds> CallRate::Take(const ChatId& chat, int max_per_minute, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const auto is_over = [now](Clock::time_point call) { return now - call >= kWindow; };
  if (!made_.contains(chat)) {
    std::erase_if(made_, [&](const auto& each) { return is_over(each.second.back()); });
  }
  auto& calls = made_[chat];
  while (!calls.empty() && is_over(calls.front())) calls.pop_front();
  if (calls.size() >= static_cast<std::size_t>(max_per_minute)) {
    return std::chrono::ceil<std::chrono::seconds>(calls.front() + kWindow - now);
  }
  calls.push_back(now);
  return std::nullopt;
}

namespace {

std::int64_t TokensOf(const TokenUsage& usage) { return usage.input_tokens + usage.output_tokens; }

std::string Exceeded(std::string_view who, std::int64_t used, std::int64_t limit) {
  return "this " + std::string(who) + " has used " + std::to_string(used) + " tokens, and may use " +
         std::to_string(limit);
}

std::string Amount(double cost) {
  constexpr int kDigits = 6;
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), cost, std::chars_format::general, kDigits);
  return error == std::errc() ? std::string(text.data(), end) : std::to_string(cost);
}

}  // namespace

UsageLimits::UsageLimits(CheckpointStore& store, UsageBudget budget, PriceTable prices, DailyUsage* daily)
    : store_(store), daily_(daily), budget_(budget), prices_(std::move(prices)) {}

std::int64_t UsageLimits::DayWith(const ChatId& chat, std::int64_t tokens) {
  const MutexLock lock(mutex_);
  running_[chat] = tokens;
  std::int64_t all = daily_->Today();
  for (const auto& [other, used] : running_) all += used;
  return all;
}

void UsageLimits::Count(Spent& spent, const std::string& model, const TokenUsage& usage) const {
  spent.tokens += TokensOf(usage);
  if (const auto price = prices_.find(model); price != prices_.end()) spent.cost += CostOf(usage, price->second);
}

Result<UsageLimits::Spent> UsageLimits::Read(const ChatId& chat) const {
  Spent spent;
  const auto stored = store_.LoadChat(chat);
  if (!stored && IsNotFound(stored.error())) return spent;
  if (!stored) return Fail(stored.error());
  for (const Interaction& each : stored->interactions) Count(spent, each.model, each.usage);
  return spent;
}

Result<UsageLimits::Check> UsageLimits::ForRun(const ChatId& chat, const std::string& model, const TokenUsage& before,
                                               const std::optional<UsageBudget>& own) {
  UsageBudget budget = own.value_or(budget_);
  budget.max_tokens_per_day = budget_.max_tokens_per_day;
  const bool for_chat = budget.max_tokens_per_chat > 0 || budget.max_cost_per_chat > 0;
  const bool for_day = budget.max_tokens_per_day > 0 && daily_ != nullptr;
  if (!for_chat && !for_day && budget.max_tokens_per_interaction == 0) return Check();
  Spent spent;
  if (for_chat) {
    MutexLock lock(mutex_);
    auto known = spent_.find(chat);
    if (known == spent_.end()) {
      lock.unlock();  // the chat is occupied by this run, so nobody else counts it meanwhile
      const auto read = TRY(Read(chat));
      lock.lock();
      known = spent_.emplace(chat, read).first;
    }
    spent = known->second;
  }
  return Check(
      [this, chat, model, before, spent, for_day, budget](const TokenUsage& used) -> std::optional<std::string> {
        TokenUsage run = before;
        run += used;
        Spent chat_has = spent;
        Count(chat_has, model, run);
        if (budget.max_tokens_per_interaction > 0 && TokensOf(run) >= budget.max_tokens_per_interaction) {
          return Exceeded("interaction", TokensOf(run), budget.max_tokens_per_interaction);
        }
        if (budget.max_tokens_per_chat > 0 && chat_has.tokens >= budget.max_tokens_per_chat) {
          return Exceeded("chat", chat_has.tokens, budget.max_tokens_per_chat);
        }
        if (budget.max_cost_per_chat > 0 && chat_has.cost >= budget.max_cost_per_chat) {
          return "this chat has cost " + Amount(chat_has.cost) + ", and may cost " + Amount(budget.max_cost_per_chat);
        }
        const std::int64_t day = for_day ? DayWith(chat, TokensOf(run)) : 0;
        if (for_day && day >= budget.max_tokens_per_day)
          return Exceeded("user, today,", day, budget.max_tokens_per_day);
        return std::nullopt;
      });
}

Result<UsageLimits::Check> UsageLimits::ForTrial(const ChatId& chat, const std::string& model) {
  const bool for_chat = budget_.max_tokens_per_chat > 0 || budget_.max_cost_per_chat > 0;
  const Spent spent = for_chat ? TRY(Read(chat)) : Spent();
  const auto counted = std::make_shared<std::int64_t>(0);
  return Check([this, model, spent, counted](const TokenUsage& used) -> std::optional<std::string> {
    TokenUsage more;
    more.output_tokens = TokensOf(used) - std::exchange(*counted, TokensOf(used));
    CountForDay(more);
    Spent with_run = spent;
    Count(with_run, model, used);
    if (budget_.max_tokens_per_interaction > 0 && TokensOf(used) >= budget_.max_tokens_per_interaction) {
      return Exceeded("interaction", TokensOf(used), budget_.max_tokens_per_interaction);
    }
    if (budget_.max_tokens_per_chat > 0 && with_run.tokens >= budget_.max_tokens_per_chat) {
      return Exceeded("chat", with_run.tokens, budget_.max_tokens_per_chat);
    }
    if (budget_.max_cost_per_chat > 0 && with_run.cost >= budget_.max_cost_per_chat) {
      return "this chat has cost " + Amount(with_run.cost) + ", and may cost " + Amount(budget_.max_cost_per_chat);
    }
    const auto for_day = ForRequest();
    return for_day ? std::nullopt : std::optional(for_day.error().message);
  });
}

void UsageLimits::CountForDay(const TokenUsage& used) {
  const std::int64_t tokens = TokensOf(used);
  if (daily_ == nullptr || tokens <= 0) return;
  if (auto kept = daily_->Add(tokens); !kept) {
    LogWarning("today's usage cannot be stored", {{"error", kept.error().message}, {"detail", kept.error().detail}});
  }
}

Result<void> UsageLimits::ForRequest() {
  if (daily_ == nullptr || budget_.max_tokens_per_day <= 0) return {};
  std::int64_t day = daily_->Today();
  {
    const MutexLock lock(mutex_);
    for (const auto& [chat, used] : running_) day += used;
  }
  if (day < budget_.max_tokens_per_day) return {};
  return Fail(Reason::kBudgetExceeded, Exceeded("user, today,", day, budget_.max_tokens_per_day));
}

void UsageLimits::AddRequest(const TokenUsage& used) { CountForDay(used); }

void UsageLimits::Add(const Interaction& finished) {
  CountForDay(finished.usage);  // before the run's tokens are removed: counted twice for a moment, but never missed
  const MutexLock lock(mutex_);
  running_.erase(finished.chat_id);
  const auto known = spent_.find(finished.chat_id);
  if (known != spent_.end()) Count(known->second, finished.model, finished.usage);
}

void UsageLimits::Forget(const ChatId& chat) {
  const MutexLock lock(mutex_);
  spent_.erase(chat);
}

TokenUsage UsedBy(const Interaction& interaction) {
  if (IsFinished(interaction.status)) return interaction.usage;
  TokenUsage used;
  for (const AgentEvent& event : interaction.events) {
    const auto* nested = std::get_if<event::Nested>(&event.payload);
    const auto* round = nested ? std::get_if<event::Usage>(&nested->step) : std::get_if<event::Usage>(&event.payload);
    if (round) used += round->tokens;
  }
  return used;
}

ChatUsage UsageOf(const History& history) {
  ChatUsage usage;
  for (const auto& [interaction, superseded] : history.entries) {
    const TokenUsage used = UsedBy(interaction);
    if (used == TokenUsage{}) continue;
    usage.all[interaction.model] += used;
    if (!superseded) usage.branch[interaction.model] += used;
  }
  return usage;
}

namespace {

re2::RE2::Options PatternOptions() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

std::vector<std::unique_ptr<re2::RE2>> Compile(const std::vector<std::string>& patterns) {
  std::vector<std::unique_ptr<re2::RE2>> compiled;
  for (const std::string& pattern : patterns) compiled.push_back(std::make_unique<re2::RE2>(pattern, PatternOptions()));
  return compiled;
}

}  // namespace

Result<void> Guardrails::Check(const std::string& pattern) {
  const re2::RE2 compiled(pattern, PatternOptions());
  if (!compiled.ok()) return Fail(ErrorCode::kInvalidArgument, "is no regular expression: " + compiled.error());
  if (re2::RE2::PartialMatch("", compiled)) return Fail(ErrorCode::kInvalidArgument, "matches the empty text");
  return {};
}

Guardrails::Guardrails(const GuardrailOptions& options)
    : input_(Compile(options.input)), output_(Compile(options.output)) {}
Guardrails::~Guardrails() = default;

Result<void> Guardrails::Admit(std::string_view user_message) const {
  const re2::StringPiece text(user_message.data(), user_message.size());
  const bool refused = std::any_of(input_.begin(), input_.end(), [&](const auto& pattern) {
    return !pattern->ok() || re2::RE2::PartialMatch(text, *pattern);
  });
  if (!refused) return {};
  return Fail(Reason::kGuardrail, "the message has what this server is told not to take");
}

std::string Guardrails::Redacted(std::string output) const {
  for (const auto& pattern : output_) {
    if (!pattern->ok()) return std::string(kRedacted);
    re2::RE2::GlobalReplace(&output, *pattern, re2::StringPiece(kRedacted.data(), kRedacted.size()));
  }
  return output;
}

namespace {

Error DeniedByHook(std::string why) { return Refused(Reason::kHookDenied, std::move(why)); }

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

std::optional<std::string> RunGuard::CheckAnswer(std::uint32_t round_index, int times_sent_back,
                                                 const std::string& text, const std::stop_token& stop) {
  if (!Wants(HookEvent::kBeforeEnd)) return std::nullopt;
  HookFacts facts = FactsOf(HookEvent::kBeforeEnd);
  facts.user_message = user_message_;
  facts.round_index = round_index;
  facts.text = text;
  facts.times_sent_back = times_sent_back;
  auto denied = parts_.hooks->Run(std::move(facts), stop).denied;
  if (denied) denied = Redacted(*std::move(denied));
  return denied;
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
  // The same JSON in other bytes is no change, because a person's grant is for the bytes that were shown.
  if (verdict.arguments && IsSameJson(*verdict.arguments, call.arguments)) verdict.arguments.reset();
  return {.refusal = {}, .arguments = std::move(verdict.arguments)};
}

Result<void> RunGuard::Note(AuditEntry entry) {
  if (parts_.audit == nullptr || muted_) return {};
  entry.chat_id = chat_id_;
  entry.interaction_id = interaction_id_;
  return parts_.audit->Append(entry);
}

std::function<void(AuditEntry)> RunGuard::Noter() const {
  if (parts_.audit == nullptr) return {};
  return [audit = parts_.audit, chat = chat_id_, interaction = interaction_id_](AuditEntry entry) {
    entry.chat_id = chat;
    entry.interaction_id = interaction;
    if (const auto noted = audit->Append(entry); !noted) {
      LogError("the audit log could not be written",
               {{"code", noted.error().reason}, {"detail", noted.error().detail}});
    }
  };
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
    outcome.requires_confirmation = false;  // it is unknown what would be confirmed
    outcome.files.clear();
    outcome.parts.clear();
  } else if (verdict.output) {
    outcome.output = Redacted(*std::move(verdict.output));
  }
  return outcome;
}

std::function<std::string(std::string_view)> RunGuard::LiveFilter() const {
  // A match may span any number of pieces, so nothing is shown before the output is complete.
  if (parts_.guardrails.looks_at_output()) return [](std::string_view) { return std::string(); };
  if (parts_.redactor.empty()) return {};
  return parts_.redactor.ForPieces();
}

std::function<std::string(std::string_view)> RunGuard::StoredFilter() const {
  return parts_.redactor.empty() ? std::function<std::string(std::string_view)>() : parts_.redactor.ForPieces();
}

void RunGuard::Ended(InteractionStatus status, const std::stop_token& stop) {
  if (!Wants(HookEvent::kAfterInteraction)) return;
  HookFacts facts = FactsOf(HookEvent::kAfterInteraction);
  facts.user_message = user_message_;
  facts.status = ToString(status);
  parts_.hooks->Run(std::move(facts), stop);
}

}  // namespace reprise
