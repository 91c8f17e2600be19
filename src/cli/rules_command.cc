#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/factories.h"
#include "app/present_folders.h"
#include "approval/rules.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/new_rules.h"
#include "client/archive/chat_reader.h"
#include "client/archive/past_calls.h"
#include "client/archive/rule_trial.h"
#include "engine/run_guard.h"
#include "store/audit_file.h"
#include "terminal/console.h"
#include "terminal/progress.h"
#include "tools/shell/hook_commands.h"

namespace reprise {
namespace {

// The lists of tools in a configuration count too.
void UseListsOf(const NewRules& rules, Options& options) {
  if (!rules.is_configuration) return;
  const auto use = [tools = rules.options.tools](Options& to) {
    to.tools.allow = tools.allow;
    to.tools.deny = tools.deny;
    to.tools.require_approval = tools.require_approval;
  };
  use(options);
  if (!options.of_folder) return;
  options.of_folder = [of_folder = options.of_folder, use](const std::string& folder) -> Result<Options::OfFolder> {
    Options::OfFolder found = TRY(of_folder(folder));
    found.options = [load = found.options, use] {
      return load().map([&](Options loaded) { return use(loaded), loaded; });
    };
    return found;
  };
}

// --- the calls -------------------------------------------------------------------------------------------------------

// What guardrails would have done.
struct GuardedTexts {
  std::vector<std::string> refused{};  // turns whose message they refuse
  std::size_t redacted = 0;            // results of tools that they change
};

// Reads the chats that are asked for.
class Reading {
 public:
  Reading(ChatReader& reader, Timestamp since, const GuardrailOptions& guardrails)
      : reader_(reader), since_(since), guardrails_(guardrails) {}

  // False if the chat was unreadable, or a part of it.
  bool Add(const ChatId& id) {
    const auto summary = reader_.store().LoadSummary(id);
    if (!summary && IsNotFound(summary.error())) return true;  // empty, or deleted meanwhile
    if (!summary) return Complain(summary.error()) == kExitOk;
    if (summary->updated_at < since_) return true;
    const auto chat = reader_.store().LoadChat(id);
    if (!chat && IsNotFound(chat.error())) return true;
    if (!chat) return Complain(chat.error()) == kExitOk;
    const std::size_t before = past_.turns();
    past_.Add(*chat, since_);
    if (past_.turns() > before) ++chats_;
    for (const Interaction& each : chat->interactions) Guard(each);
    ComplainOfDamage(*chat);
    return chat->damaged.empty();
  }

  PastCalls& past() { return past_; }
  std::size_t chats() const { return chats_; }
  const GuardedTexts& guarded() const { return guarded_; }

 private:
  void Guard(const Interaction& turn) {
    if (turn.created_at < since_ || turn.imported) return;
    if (!guardrails_.Admit(turn.user_message)) guarded_.refused.push_back(turn.chat_id.str() + "/" + turn.id.str());
    if (!guardrails_.looks_at_output()) return;
    for (const AgentEvent& event : turn.events) {
      const auto* const result = std::get_if<event::ToolResult>(&event.payload);
      if (result != nullptr && guardrails_.Redacted(result->tool_output) != result->tool_output) ++guarded_.redacted;
    }
  }

  ChatReader& reader_;
  const Timestamp since_;
  const Guardrails guardrails_;
  PastCalls past_;
  std::size_t chats_ = 0;
  GuardedTexts guarded_;
};

// The calls on record, with the agent of today.
struct Past {
  ChatReader reader;
  std::unique_ptr<Reading> reading;
  std::unique_ptr<PresentFolders> present;
  std::vector<std::string> servers;  // of the configuration
  bool is_whole = true;

  RuleTrial::AgentIn agent_in() const {
    return [this](const std::string& folder) { return present->At(folder); };
  }
};

tl::expected<Past, Exit> ReadPast(const CommandLine& line, const Environment& environment, const NewRules& rules) {
  WorkCounter counter;
  auto reader = TRY(OfUse(ChatReader::Open(line.flags, environment, &counter)));
  Options options = reader.options();
  UseListsOf(rules, options);
  auto present = TRY(OfUse(PresentFolders::Open(options)));
  Past past{.reader = std::move(reader),
            .reading = nullptr,
            .present = std::move(present),
            .servers = NamesOfServers(options)};
  std::vector<ChatId> chats;
  for (const std::string& name : line.arguments) chats.push_back(TRY(OfUse(FindChat(name, past.reader.names()))));
  if (chats.empty()) chats = TRY(past.reader.AllChats());
  const Timestamp since = Now() - std::chrono::days(line.rules.days);
  past.reading = std::make_unique<Reading>(past.reader, since, rules.options.guardrails);
  Progress progress(counter, environment);
  progress.Begin({.doing = "reading", .things = "interactions"});
  for (const ChatId& chat : std::set<ChatId>(chats.begin(), chats.end())) {
    past.is_whole = past.reading->Add(chat) && past.is_whole;
    if (progress.interrupted()) break;
  }
  progress.End();
  const ChatSource& source = past.reader.source();
  const auto read = past.reading->past().ReadFates(AuditFile(source.root(), nullptr, source.file_system()));
  if (!read) return Fail(read.error());
  return past;
}

// --- try -------------------------------------------------------------------------------------------------------------

std::string_view NameOf(PastCall::Fate fate) {
  switch (fate) {
    case PastCall::Fate::kUnknown:
      return "unknown";
    case PastCall::Fate::kRan:
      return "ran";
    case PastCall::Fate::kApproved:
      return "approved";
    case PastCall::Fate::kChanged:
      return "changed";
    case PastCall::Fate::kRejected:
      return "rejected";
    case PastCall::Fate::kExpired:
      return "expired";
    case PastCall::Fate::kUnanswered:
      return "unanswered";
    case PastCall::Fate::kDenied:
      return "denied";
    case PastCall::Fate::kRefusedByMode:
      return "refused_by_mode";
    case PastCall::Fate::kRefused:
      return "refused";
  }
  return "";
}

// The calls that are named one by one.
struct TrialReport {
  std::size_t asked = 0, saved = 0, approved = 0, kept = 0;  // questions; approved: of the saved ones
  std::size_t freed = 0;                                     // refused by the mode then, and run by a rule
  std::vector<TriedCall> slipped{}, refusals{}, questions{};
  std::map<std::string, std::size_t> not_tried{};  // by reason

  void Add(TriedCall tried) {
    using Verdict = TriedCall::Verdict;
    if (tried.verdict == Verdict::kNotTried) {
      ++not_tried[tried.why];
      return;
    }
    const auto fate = tried.call->fate;
    if (tried.call->was_asked()) ++asked;
    if (tried.saves_question()) ++saved;
    if (tried.saves_question() && fate == PastCall::Fate::kApproved) ++approved;
    if (tried.call->was_asked() && tried.verdict == Verdict::kAsks) ++kept;
    if (fate == PastCall::Fate::kRefusedByMode && tried.verdict == Verdict::kRuns) ++freed;
    if (tried.has_slipped()) slipped.push_back(tried);
    if (tried.is_new_refusal()) refusals.push_back(tried);
    if (tried.is_new_question()) questions.push_back(std::move(tried));
  }
};

Json ToJson(const TriedCall& tried, std::string_view kind) {
  const PastCall& call = *tried.call;
  return {{"kind", kind},
          {"chat_id", call.chat.str()},
          {"interaction_id", call.interaction.str()},
          {"call_id", call.id},
          {"tool", call.call.name},
          {"arguments", call.call.arguments},
          {"at", FormatTimestamp(call.at)},
          {"fate", NameOf(call.fate)},
          {"decided_by", tried.why}};
}

Json HooksOf(const NewRules& rules) {
  Json hooks = Json::array();
  for (const HookOptions& hook : rules.options.hooks) {
    hooks.push_back({{"event", HookEventName(hook.event)}, {"command", hook.command}});
  }
  return hooks;
}

void PrintJson(const CommandLine& line, const NewRules& rules, const Past& past, const TrialReport& report) {
  PastCalls& calls = past.reading->past();
  Json named = Json::array();
  for (const TriedCall& each : report.slipped) named.push_back(ToJson(each, "passed"));
  for (const TriedCall& each : report.refusals) named.push_back(ToJson(each, "refusal"));
  for (const TriedCall& each : report.questions) named.push_back(ToJson(each, "question"));
  Json not_tried = Json::array();
  for (const auto& [why, count] : report.not_tried) not_tried.push_back({{"why", why}, {"calls", count}});
  const GuardedTexts& guarded = past.reading->guarded();
  PrintDocument({{"days", line.rules.days},
                 {"rules", rules.options.tools.rules.size()},
                 {"chats", past.reading->chats()},
                 {"turns", calls.turns()},
                 {"imported_turns", calls.imported()},
                 {"calls", calls.calls().size()},
                 {"questions_asked", report.asked},
                 {"questions_saved", report.saved},
                 {"saved_and_approved", report.approved},
                 {"questions_kept", report.kept},
                 {"new_questions", report.questions.size()},
                 {"new_refusals", report.refusals.size()},
                 {"refusals_passed", report.slipped.size()},
                 {"mode_refusals_passed", report.freed},
                 {"named", std::move(named)},
                 {"not_tried", std::move(not_tried)},
                 {"hooks_not_tried", HooksOf(rules)},
                 {"messages_refused", guarded.refused},
                 {"results_redacted", guarded.redacted}});
}

void PrintCalls(const std::string& heading, const std::vector<TriedCall>& calls, std::size_t most) {
  constexpr std::size_t kMostOfArguments = 200;
  if (calls.empty()) return;
  Print(heading + "\n");
  for (const TriedCall& each : std::span(calls).first(std::min(most, calls.size()))) {
    const PastCall& call = *each.call;
    const std::string_view shown = Utf8Prefix(call.call.arguments, kMostOfArguments);
    Print("  " + VisibleLine(call.turn() + "  " + call.call.name + " " + std::string(shown)) +
          (shown.size() < call.call.arguments.size() ? "..." : "") + "  (then " + std::string(NameOf(call.fate)) +
          ", now by " + each.why + ")\n");
  }
  if (calls.size() > most) Print("  and " + std::to_string(calls.size() - most) + " more (--json names all)\n");
}

void PrintForReading(const CommandLine& line, const NewRules& rules, const Past& past, const TrialReport& report) {
  constexpr std::size_t kMostNamed = 20;
  PastCalls& calls = past.reading->past();
  const auto row = [](std::string_view what, std::size_t count, const std::string& more) {
    Print("  " + Padded(std::string(what), 34) + std::to_string(count) + more + "\n");
  };
  Print(Counted(rules.options.tools.rules.size(), "rule") + " tried on " + Counted(calls.calls().size(), "call") +
        " in " + Counted(calls.turns(), "turn") + " of " + Counted(past.reading->chats(), "chat") + ", from the last " +
        Counted(static_cast<std::uint64_t>(line.rules.days), "day") + "\n");
  row("questions that were asked", report.asked, "");
  row("saved", report.saved, ", of which " + std::to_string(report.approved) + " were approved as they were");
  row("still asked", report.kept, "");
  row("new questions", report.questions.size(), "");
  row("new refusals", report.refusals.size(), "");
  row("refusals that would have passed", report.slipped.size(), "");
  if (report.freed > 0) row("refused by a mode, run by a rule", report.freed, "");
  PrintCalls("would run, although a person or a rule held it back:", report.slipped, report.slipped.size());
  PrintCalls("would be refused, although it ran:", report.refusals, kMostNamed);
  PrintCalls("would ask, although nobody was asked:", report.questions, kMostNamed);
  for (const auto& [why, count] : report.not_tried) {
    Print("not tried: " + Counted(count, "call") + ", because " + VisibleLine(why) + "\n");
  }
  if (calls.imported() > 0) {
    Print("not tried: " + Counted(calls.imported(), "imported turn") + ", whose questions nobody here answered\n");
  }
  for (const HookOptions& hook : rules.options.hooks) {
    Print("not tried: the hook " + std::string(HookEventName(hook.event)) + " (" + VisibleLine(hook.command.front()) +
          "), because hooks are not run\n");
  }
  const GuardedTexts& guarded = past.reading->guarded();
  for (const std::string& turn : guarded.refused) Print("guardrails would refuse the message of " + turn + "\n");
  if (guarded.redacted > 0) Print("guardrails would change " + Counted(guarded.redacted, "tool result") + "\n");
}

// --- suggest ---------------------------------------------------------------------------------------------------------

Json RuleAsJson(const ToolRule& rule) {
  Json json = {{"tool", rule.tool}};
  if (rule.pattern) json["pattern"] = *rule.pattern;
  json["action"] = ToString(rule.action);
  return json;
}

void PrintSuggestions(const std::vector<SuggestedRule>& rules) {
  Print("{\"tools\": {\"rules\": [\n");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const SuggestedRule& each = rules[i];
    Print("  // " + Counted(each.served, "question") + " in " + Counted(each.chats.size(), "chat") +
          ", all approved. " + VisibleLine(each.means) + "\n  " + DumpJson(RuleAsJson(each.rule)) +
          (i + 1 < rules.size() ? ",\n" : "\n"));
  }
  Print("]}}\n");
}

}  // namespace

Exited RunRulesTry(const CommandLine& line, const Environment& environment) {
  const NewRules rules = TRY(OfUse(ReadNewRules(line.argument, environment)));
  const Past past = TRY(ReadPast(line, environment, rules));
  const PresentAgent here = TRY(OfUse(past.present->At("")));
  TRY(OfUse(
      CheckRules(rules.options.tools.rules, *here.workspace.tools.Current(), past.servers).map_error([&](Error error) {
        error.message = VisibleLine(line.argument) + ": " + error.message;
        return error;
      })));
  RuleTrial trial(past.agent_in());
  TrialReport report;
  const ToolRules tried = RulesOf(rules.options);
  for (const PastCall& call : past.reading->past().calls()) report.Add(trial.Try(call, tried));
  line.json ? PrintJson(line, rules, past, report) : PrintForReading(line, rules, past, report);
  const bool passes = report.slipped.empty() || line.rules.allow;
  return passes && past.is_whole ? kExitOk : kExitFailure;
}

Exited RunRulesSuggest(const CommandLine& line, const Environment& environment) {
  const Past past = TRY(ReadPast(line, environment, {}));
  RuleTrial trial(past.agent_in());
  const auto suggested = trial.Suggest(past.reading->past().calls());
  for (const SuggestedRule& each : suggested) {
    if (!line.json) break;
    PrintDocument({{"rule", RuleAsJson(each.rule)},
                   {"means", each.means},
                   {"served", each.served},
                   {"chats", each.chats.size()}});
  }
  if (!line.json && !suggested.empty()) PrintSuggestions(suggested);
  if (!line.json && suggested.empty()) {
    Print("nothing to suggest: no pattern was approved at least " + std::to_string(RuleTrial::kLeastServed) +
          " times in " + std::to_string(RuleTrial::kLeastChats) + " chats without a rejection\n");
  }
  return past.is_whole ? kExitOk : kExitFailure;
}

}  // namespace reprise
