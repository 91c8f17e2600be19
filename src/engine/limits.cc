#include "engine/limits.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>

#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {

namespace {

constexpr std::chrono::minutes kWindow{1};

}  // namespace

std::optional<std::chrono::seconds> CallRate::Take(const ChatId& chat, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const auto is_over = [now](Clock::time_point call) { return now - call >= kWindow; };
  if (!made_.contains(chat)) {
    std::erase_if(made_, [&](const auto& each) { return is_over(each.second.back()); });
  }
  auto& calls = made_[chat];
  while (!calls.empty() && is_over(calls.front())) calls.pop_front();
  if (calls.size() >= max_) return std::chrono::ceil<std::chrono::seconds>(calls.front() + kWindow - now);
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
  if (!stored && stored.error().code == ErrorCode::kNotFound) return spent;
  if (!stored) return Fail(stored.error());
  for (const Interaction& each : stored->interactions) Count(spent, each.model, each.usage);
  return spent;
}

Result<UsageLimits::Check> UsageLimits::ForRun(const ChatId& chat, const std::string& model, const TokenUsage& before) {
  const bool for_chat = budget_.max_tokens_per_chat > 0 || budget_.max_cost_per_chat > 0;
  const bool for_day = budget_.max_tokens_per_day > 0 && daily_ != nullptr;
  if (!for_chat && !for_day && budget_.max_tokens_per_interaction == 0) return Check();
  Spent spent;
  if (for_chat) {
    MutexLock lock(mutex_);
    auto known = spent_.find(chat);
    if (known == spent_.end()) {
      lock.unlock();  // the chat is ours, so nobody else counts it meanwhile
      const auto read = TRY(Read(chat));
      lock.lock();
      known = spent_.emplace(chat, read).first;
    }
    spent = known->second;
  }
  return Check([this, chat, model, before, spent, for_day](const TokenUsage& used) -> std::optional<std::string> {
    TokenUsage run = before;
    run += used;
    Spent chat_has = spent;
    Count(chat_has, model, run);
    const UsageBudget& budget = budget_;
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
    if (for_day && day >= budget.max_tokens_per_day) return Exceeded("user, today,", day, budget.max_tokens_per_day);
    return std::nullopt;
  });
}

void UsageLimits::CountForDay(const TokenUsage& used) {
  const std::int64_t tokens = TokensOf(used);
  if (daily_ == nullptr || tokens <= 0) return;
  if (auto kept = daily_->Add(tokens); !kept) {
    LogWarning("what was used today cannot be kept",
               {{"error", kept.error().message}, {"detail", kept.error().detail}});
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
  return Fail(
      Refused(ErrorCode::kForbidden, "budget_exceeded", Exceeded("user, today,", day, budget_.max_tokens_per_day)));
}

void UsageLimits::AddRequest(const TokenUsage& used) { CountForDay(used); }

void UsageLimits::Add(const Interaction& finished) {
  CountForDay(finished.usage);  // before it runs no more: counted twice for a moment, but never not at all
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
  return Fail(
      Refused(ErrorCode::kInvalidArgument, "guardrail", "the message has what this server is told not to take"));
}

std::string Guardrails::Redacted(std::string output) const {
  for (const auto& pattern : output_) {
    if (!pattern->ok()) return std::string(kRedacted);
    re2::RE2::GlobalReplace(&output, *pattern, re2::StringPiece(kRedacted.data(), kRedacted.size()));
  }
  return output;
}

}  // namespace reprise
