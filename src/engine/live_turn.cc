#include "engine/live_turn.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "agent/agent_loop.h"
#include "agent/deferred_tools.h"
#include "agent/history.h"
#include "agent/prompt.h"
#include "approval/decision.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/prompt_parts.h"
#include "engine/recording.h"
#include "engine/run.h"
#include "engine/run_guard.h"
#include "engine/run_journal.h"
#include "engine/unattended.h"
#include "reprise/version.h"

namespace reprise {
namespace {

constexpr std::string_view kNotAvailable =
    "Not run: this call is not available in this test. Go on without it, or with another call.";

// The id of the call that the event is about; null if it is about none.
template <typename Event>
std::string* CallIdIn(Event& event) {
  if constexpr (std::is_same_v<Event, event::ToolCallStarted>) {
    return &event.id;
  } else if constexpr (requires { event.call_id.has_value(); }) {
    return event.call_id ? &*event.call_id : nullptr;
  } else if constexpr (requires { event.call_id; }) {
    return &event.call_id;
  } else {
    return nullptr;
  }
}

// The event with `to` in place of the call's id, which may be the beginning of a sub-agent's; nullopt if it is not
// about this call.
std::optional<EventPayload> Renamed(EventPayload payload, const std::string& from, const std::string& to) {
  std::string* const id = std::visit([](auto& event) { return CallIdIn(event); }, static_cast<AnyEvent&>(payload));
  if (id == nullptr || (*id != from && !id->starts_with(from + "/"))) return std::nullopt;
  id->replace(0, from.size(), to);
  return payload;
}

class Live;

// A tool that the model is told of as it is today. It answers from the record, or runs in a copy of the workspace.
class StandIn final : public Tool {
 public:
  // `today`: the tool, for rules that speak of it; null: it is on record only.
  StandIn(Live& live, ToolSpec spec, const Tool* today) : live_(live), today_(today) {
    traits_.spec = std::move(spec);
    traits_.concurrency = Concurrency::kNever;  // so that each call is answered before the next one begins
    if (today == nullptr) return;
    const ToolTraits& traits = today->traits();
    traits_.delegates = traits.delegates;
    traits_.read_only = traits.read_only;
    traits_.acts_as = traits.acts_as;
  }
  const ToolTraits& traits() const override { return traits_; }
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse use) const override {
    return today_ ? today_->MeaningOf(pattern, use) : Tool::MeaningOf(pattern, use);
  }
  Touch Touches(std::string_view pattern, std::string_view arguments) const override {
    return today_ ? today_->Touches(pattern, arguments) : Touch::kMaybe;
  }
  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override;

 private:
  Live& live_;
  const Tool* const today_;
  ToolTraits traits_;
};

// Stand-ins for today's tools, and for any other name that a model may call.
class StandIns final : public ToolSet {
 public:
  StandIns(Live& live, const LiveTurn& turn, bool searches)
      : live_(live), turn_(turn), today_(turn.agent.workspace.tools.Current()) {
    if (!turn.has_tools) return;
    for (const Tool* const tool : today_->tools()) {
      const ToolTraits& traits = tool->traits();
      if (!traits.ends_planning || turn.start.is_planning) Add(traits.spec, tool);
    }
    for (const ToolSpec& spec : turn.start.of_servers) Add(spec, nullptr);
    searches_ = searches && today_->AllowsWebSearch();
  }
  // Not the search for deferred tools, which is no tool of the workspace and only reads their descriptions.
  Tool* Find(std::string_view name) const override {
    if (name == kSearchToolsName) return nullptr;
    const MutexLock lock(mutex_);
    auto& made = by_name_[std::string(name)];
    if (!made) made = std::make_unique<StandIn>(live_, ToolSpec{std::string(name), {}, {}}, today_->Find(name));
    return made.get();
  }
  Result<void> Validate(const Tool& tool, std::string_view arguments) const override;
  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }
  bool RequiresApproval(const Tool&) const override { return false; }
  bool AllowsWebSearch() const override { return searches_; }

 private:
  void Add(const ToolSpec& spec, const Tool* today) {
    auto& made = by_name_[spec.name];
    if (made) return;
    made = std::make_unique<StandIn>(live_, spec, today);
    tools_.push_back(made.get());
    specs_.push_back(spec);
  }

  Live& live_;
  const LiveTurn& turn_;
  const std::shared_ptr<const ToolSet> today_;
  std::vector<Tool*> tools_{};
  std::vector<ToolSpec> specs_{};
  bool searches_ = false;
  mutable Mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<StandIn>, std::less<>> by_name_;
};

// One run: the agent's tools, and what it shows. Nobody is asked, because no stand-in needs an approval.
class Live final : public ToolRegistry, public Unattended {
 public:
  Live(const LiveTurn& turn, const LiveOptions& options)
      : turn_(turn),
        options_(options),
        in_copy_(turn.agent, options.allow_effects, options.files_then, stop_),
        tools_(std::make_shared<StandIns>(*this, turn, !runs_calls() || in_copy_.IsAllowed(kWebSearchName))),
        files_(turn.files),
        shown_{.interaction = turn.like},
        taken_(turn.calls.size()) {
    if (!turn.sent) return;
    journal_.emplace(turn.start.state, RunRecord{.program = REPRISE_VERSION, .requests = turn.sent});
    journal_->KeepNothing();
  }

  LiveRun Run(const std::stop_token& stop, const Executor& executor);
  // Of the call that has begun.
  ToolOutcome Answer(const std::string& tool, std::string_view arguments, const ToolContext& context);
  bool runs_calls() const { return options_.unrecorded == Unrecorded::kRun; }

  // ToolRegistry
  std::shared_ptr<const ToolSet> Current() const override { return tools_; }
  // AgentObserver
  void Emit(std::uint32_t round_index, EventPayload payload) override;
  void AddTextDelta(std::uint32_t round_index, std::string_view text) override {
    if (options_.on_delta) options_.on_delta(LiveOptions::Delta::kText, round_index, text);
  }
  void AddThinkingDelta(std::uint32_t round_index, std::string_view text) override {
    if (options_.on_delta) options_.on_delta(LiveOptions::Delta::kThinking, round_index, text);
  }
  void StateGrew(const AgentState& state) override {
    const MutexLock lock(mutex_);
    if (journal_) journal_->AddState(state);
  }
  std::optional<std::size_t> Requested(const Sent& sent) override {
    const MutexLock lock(mutex_);
    if (!journal_) return std::nullopt;
    const auto before = journal_->RequestBefore(sent);
    const RequestMarks* const marks = before ? &*before : nullptr;
    return journal_->AddRequest(turn_.like.id, sent, ShortenBody(sent.body, marks, journal_->messages(), turn_.files),
                                marks);
  }
  void Responded(std::size_t request, SentResponse response) override {
    const MutexLock lock(mutex_);
    if (journal_) journal_->AddResponse(request, std::move(response));
  }
  // ApprovalGate
  ApprovalMode ModeFor(const std::string&) override {
    return runs_calls() && turn_.start.is_planning ? ApprovalMode::kPlan : ApprovalMode::kApproveAll;
  }

 private:
  AgentLimits Limits() const;
  const AnsweredCall* Take(const ToolCall& call) REQUIRES(mutex_);
  void Show(std::uint32_t round_index, EventPayload payload) REQUIRES(mutex_);
  void ShowEnd(AgentOutcome outcome) REQUIRES(mutex_);

  const LiveTurn& turn_;
  const LiveOptions& options_;
  std::stop_source stop_;
  CallsInCopy in_copy_;
  const std::shared_ptr<const ToolSet> tools_;
  FilesToRead files_;
  Mutex mutex_;
  LiveRun shown_ GUARDED_BY(mutex_);
  std::optional<RunJournal> journal_ GUARDED_BY(mutex_);  // nullopt: requests are not put on record
  std::vector<bool> taken_ GUARDED_BY(mutex_);
  const AnsweredCall* now_ GUARDED_BY(mutex_) = nullptr;  // answers the call under way; null: it is not on record
};

ToolOutcome StandIn::Run(std::string_view arguments, const ToolContext& context) {
  return live_.Answer(traits_.spec.name, arguments, context);
}

// Only the record knows whether a call on it was valid.
Result<void> StandIns::Validate(const Tool& tool, std::string_view arguments) const {
  if (!live_.runs_calls()) return {};
  const std::string& name = tool.traits().spec.name;
  const ToolCall call{.id = {}, .name = name, .arguments = std::string(arguments)};
  if (std::ranges::any_of(turn_.calls, [&](const AnsweredCall& each) { return IsSameCall(each.call, call); }))
    return {};
  const Tool* const today = today_->Find(name);
  return today == nullptr ? Fail(ErrorCode::kInvalidArgument, "there is no tool \"" + name + "\" now")
                          : today_->Validate(*today, arguments);
}

// The next equal call of the record, else the last one.
const AnsweredCall* Live::Take(const ToolCall& call) {
  const AnsweredCall* found = nullptr;
  for (std::size_t i = 0; i < turn_.calls.size(); ++i) {
    if (!turn_.calls[i].outcome || !IsSameCall(turn_.calls[i].call, call)) continue;
    found = &turn_.calls[i];
    if (taken_[i]) continue;
    taken_[i] = true;
    break;
  }
  return found;
}

void Live::Show(std::uint32_t round_index, EventPayload payload) {
  auto& events = shown_.interaction.events;
  const std::uint64_t last = events.empty() ? 1 : events.back().seq;  // interaction_started is number 1
  events.push_back({.seq = last + 1, .round_index = round_index, .at = Now(), .payload = std::move(payload)});
  if (options_.on_event) options_.on_event(events.back());
}

// The changes of files that a call has on record.
std::vector<WorkspaceChange> ChangesOf(const AnsweredCall* call) {
  std::vector<WorkspaceChange> changes;
  if (call == nullptr) return changes;
  for (const EventPayload& each : call->shown) {
    const auto* const changed = std::get_if<event::FilesChanged>(&each);
    if (changed != nullptr) changes.insert(changes.end(), changed->changes.begin(), changed->changes.end());
  }
  return changes;
}

// A call of the record shows what it showed then: answers of people, changed files, steps of sub-agents.
void Live::Emit(std::uint32_t round_index, EventPayload payload) {
  if (IsDelta(payload)) return;
  const MutexLock lock(mutex_);
  const auto* const started = std::get_if<event::ToolCallStarted>(&payload);
  if (started == nullptr || started->tool_name == kSearchToolsName) return Show(round_index, std::move(payload));
  now_ = Take({.id = started->id, .name = started->tool_name, .arguments = started->tool_input});
  if (runs_calls()) in_copy_.Begun(now_ == nullptr, ChangesOf(now_));
  if (now_ == nullptr) {
    shown_.unrecorded.push_back(started->tool_name + " " + started->tool_input);
    return Show(round_index, std::move(payload));
  }
  for (const EventPayload& each : now_->shown) Show(round_index, *Renamed(each, now_->call.id, started->id));
}

ToolOutcome Live::Answer(const std::string& tool, std::string_view arguments, const ToolContext& context) {
  if (const MutexLock lock(mutex_); now_ != nullptr) return *now_->outcome;
  switch (options_.unrecorded) {
    case Unrecorded::kRun:
      return in_copy_.Run(tool, arguments, context);
    case Unrecorded::kStop:
      stop_.request_stop();
      break;
    case Unrecorded::kRefuse:
      break;
  }
  return {.output = std::string(kNotAvailable), .is_error = true};
}

void Live::ShowEnd(AgentOutcome outcome) {
  Interaction& interaction = shown_.interaction;
  const std::uint32_t round = interaction.events.empty() ? 0 : interaction.events.back().round_index;
  if (runs_calls()) {
    for (auto& changed : InEvents(std::nullopt, in_copy_.End())) Show(round, std::move(changed));
  }
  if (in_copy_.failure()) {
    outcome.status = InteractionStatus::kFailed;
    outcome.error = in_copy_.failure();
  }
  interaction.status = outcome.status;
  if (outcome.status == InteractionStatus::kCancelled) Show(round, event::Cancelled{"requested"});
  if (const auto& error = outcome.error) {
    interaction.error = InteractionError{error->reason, error->message, error->retryable};
    Show(round, event::Failed{error->reason, error->message, error->retryable});
  }
  interaction.usage = outcome.usage;
  interaction.completed_at = Now();
  const Messages& messages = outcome.state.messages;
  for (std::size_t i = turn_.start.first_message; i < messages.size(); ++i) {
    for (const ToolCall& call : messages[i].tool_calls) shown_.calls.push_back(call);
  }
  interaction.final_agent_state = std::move(outcome.state);
  if (journal_) {
    interaction.record = journal_->record();
    interaction.final_agent_state->request = journal_->marks();
  }
  shown_.copy = in_copy_.TakeCopy();
}

// Only what confines a call lets it run, but rules that deny it hold. Nobody can be asked about one that a rule may
// deny.
AgentLimits Live::Limits() const {
  AgentLimits limits = LimitsOf(turn_.agent.options, turn_.model);
  limits.check_confirmations = false;
  limits.effort = turn_.agent.effort;
  limits.kept_bytes = 0;
  limits.nobody_to_ask = runs_calls();
  const auto all = std::exchange(limits.rules, nullptr);
  if (!runs_calls() || all == nullptr) return limits;
  std::vector<ToolRule> denying;
  std::ranges::copy_if(*all, std::back_inserter(denying),
                       [](const ToolRule& rule) { return rule.action == RuleAction::kDeny; });
  limits.rules = std::make_shared<const std::vector<ToolRule>>(std::move(denying));
  return limits;
}

LiveRun Live::Run(const std::stop_token& stop, const Executor& executor) {
  const std::stop_callback pass_on(stop, [this] { stop_.request_stop(); });
  {
    const MutexLock lock(mutex_);
    shown_.interaction.created_at = Now();
    shown_.interaction.events = turn_.before;
    for (const AgentEvent& each : turn_.before) {
      if (options_.on_event) options_.on_event(each);
    }
  }
  const PresentAgent& today = turn_.agent;
  std::optional<RunGuard> guard;
  if (runs_calls() && today.redactor != nullptr) {
    guard.emplace(RunGuard::Parts{.audit = options_.allow_effects.empty() ? nullptr : today.audit,
                                  .redactor = *today.redactor,
                                  .guardrails = *today.guards},
                  turn_.like.chat_id.str(), turn_.like.id.str(), turn_.like.user_message, /*begun=*/true);
  }
  const DeferredTools tools(*this, turn_.model.context_window);
  AgentLoop agent({.model = *turn_.model.client,
                   .tools = tools,
                   .observer = *this,
                   .approvals = *this,
                   .executor = executor,
                   .delay = options_.delay,
                   .prompt = turn_.prompt,
                   .guards = {.over_budget = options_.over_budget},
                   .files = turn_.files ? &files_ : nullptr,
                   .documents = today.documents,
                   .recorder = runs_calls() ? &in_copy_ : nullptr,
                   .guard = guard ? &*guard : nullptr,
                   .instructions = turn_.has_tools ? today.workspace.instructions : nullptr},
                  Limits(), turn_.model.model, turn_.start.state, stop_.get_token());
  const auto ended = std::make_shared<std::promise<AgentOutcome>>();
  agent.Start([ended](AgentOutcome outcome) { ended->set_value(std::move(outcome)); }, turn_.where);
  AgentOutcome outcome = ended->get_future().get();
  const MutexLock lock(mutex_);
  ShowEnd(std::move(outcome));
  return std::move(shown_);
}

// A result that only says that there is none.
bool IsMissing(const std::optional<ToolOutcome>& outcome) {
  return !outcome || SaysCancelled(outcome->output) || outcome->output == kOutcomeUnknown;
}

// The calls of the model after the turn's first request.
std::vector<AnsweredCall> CallsOn(Recording recording, const std::vector<AgentEvent>& events) {
  std::vector<AnsweredCall> calls;
  for (auto& [index, round] : recording.rounds) {
    if (index == 0 && recording.continued) continue;
    for (RecordedCall& recorded : round.calls) {
      AnsweredCall& call = calls.emplace_back(AnsweredCall{.call = std::move(recorded.call)});
      if (!IsMissing(recorded.outcome)) call.outcome = std::move(recorded.outcome);
      for (const AgentEvent& event : events) {
        if (event.round_index != index) continue;
        if (auto shown = Renamed(event.payload, call.call.id, call.call.id)) call.shown.push_back(*std::move(shown));
      }
    }
  }
  return calls;
}

// The tool in the form of any of the three interfaces.
ToolSpec SpecOf(const std::string& name, const Json& tool) {
  const Json& function = MemberOf(tool, "function").is_object() ? MemberOf(tool, "function") : tool;
  const Json& schema = MemberOf(function, function.contains("input_schema") ? "input_schema" : "parameters");
  return {.name = name,
          .description = TextMember(function, "description"),
          .parameters = schema.is_object() ? DumpJson(schema) : R"({"type":"object"})"};
}

Result<TurnStart> StartOfTurn(const Interaction& interaction, RequestBodies& bodies, const PresentAgent& agent) {
  const RunRecord record = interaction.record ? *interaction.record : TRY(DeriveRecord(interaction));
  TurnStart start{.state = TRY(StateBefore(interaction, bodies.store(), 0)), .instructions = agent.instructions};
  start.first_message = start.state.messages.size();
  const auto requests = record.requests.value_or(std::vector<SentRequest>());
  const auto first = std::ranges::find(requests, SentRequest::Purpose::kTurn, &SentRequest::purpose);
  if (first == requests.end()) return start;
  const auto index = static_cast<std::size_t>(first - requests.begin());
  const auto body = bodies.Of(interaction, index);
  if (!body && IsNotFound(body.error())) return start;
  const std::string sent = TRY(body);
  const ToldBody told = TRY(ReadTold(sent));
  start.is_planning = ModeThen(agent, told) == ApprovalMode::kPlan;
  const auto listed = TRY(bodies.WithLists(interaction, index));
  const auto modules = listed && listed->modules ? SplitPrompt(told.system, *listed->modules) : std::nullopt;
  if (modules) start.instructions.clear();
  for (const PromptModule& module : modules.value_or(std::vector<PromptModule>())) {
    if (module.name != kRequestPart && module.name != kHookPart) continue;
    start.instructions += (start.instructions.empty() ? "" : "\n\n") + module.text;
  }
  for (const ToolServer& server : agent.workspace.tools.Servers()) {
    if (server.state == ToolServer::State::kReady) continue;
    bool is_told = false, is_denied = false;
    for (const auto& [name, tool] : ToolsIn(told.tools)) {
      if (!name.starts_with(server.name + "__")) continue;
      const bool denied = agent.is_denied && agent.is_denied(name);
      (denied ? is_denied : is_told) = true;
      if (!denied) start.of_servers.push_back(SpecOf(name, tool));
    }
    for (const PromptModule& module : modules.value_or(std::vector<PromptModule>())) {
      const bool is_of_server = module.name == std::string(kServerModule) + server.name;
      if (is_of_server && (is_told || !is_denied)) {
        start.words_of_servers.push_back({.name = module.name, .text = module.text, .is_plain = true});
      }
    }
  }
  return start;
}

}  // namespace

Result<LiveTurn> PrepareLive(const Interaction& recorded, RequestBodies& bodies, const PresentAgent& of_chat,
                             const std::string& model) {
  const PresentAgent agent = AgentOf(recorded, of_chat);
  auto of_model = TRY(agent.models.Resolve(model.empty() ? agent.chosen_model : model));
  auto start = TRY(StartOfTurn(recorded, bodies, agent));
  const auto recording = TRY(Recording::Of(recorded));
  LiveTurn turn{.agent = agent,
                .model = std::move(of_model),
                .like = recorded,
                .start = std::move(start),
                .calls = CallsOn(recording, recorded.events),
                .prompt = PromptFor(agent.workspace, recorded.chat_id),
                .files = bodies.files()};
  turn.prompt.instructions = turn.start.instructions;
  for (PromptModule& words : turn.start.words_of_servers) AddModule(turn.prompt, std::move(words));
  turn.like.events.clear();
  turn.like.final_agent_state.reset();
  turn.like.error.reset();
  turn.like.record.reset();
  turn.like.model = turn.model.full_name;
  return turn;
}

Result<LiveTurn> PrepareQuestion(const LiveTurn& beside, const std::string& model, std::string system,
                                 std::string question) {
  auto of_model = TRY(beside.agent.models.Resolve(model));
  LiveTurn asked{.agent = beside.agent,
                 .model = std::move(of_model),
                 .like = beside.like,
                 .start = {},
                 .prompt = {.modules = {{.name = "question", .text = std::move(system), .is_plain = true}}},
                 .has_tools = false};
  Message message{.role = Role::kUser};
  message.content = std::move(question);
  asked.start.state.messages.push_back(std::move(message));
  asked.like.model = asked.model.full_name;
  return asked;
}

LiveRun RunLive(const LiveTurn& turn, const LiveOptions& options, const std::stop_token& stop,
                const Executor& executor) {
  return Live(turn, options).Run(stop, executor);
}

bool IsSameCall(const ToolCall& a, const ToolCall& b) {
  if (a.name != b.name) return false;
  if (a.arguments == b.arguments) return true;
  const auto read = [](const std::string& text) { return ParseJson(IsBlank(text) ? "{}" : text); };
  const auto some = read(a.arguments), others = read(b.arguments);
  return some && others && IsSameInAnyOrder(*some, *others);
}

}  // namespace reprise
