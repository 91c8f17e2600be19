#include "engine/drift.h"

#include <algorithm>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "agent/agent_loop.h"
#include "agent/context.h"
#include "agent/deferred_tools.h"
#include "agent/prompt.h"
#include "approval/rules.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "engine/prompt_parts.h"
#include "engine/recording.h"
#include "engine/run.h"
#include "engine/told_request.h"
#include "engine/unattended.h"
#include "reprise/timestamp.h"

namespace reprise {
namespace {

using SentModules = std::vector<ToldModule>;

// --- the request of today --------------------------------------------------------------------------------------------

// All that an agent has beside its prompt and its tools, for one request that is not sent.
class Drafting final : public ModelClient, public Unattended {
 public:
  Drafting(ModelClient& client, ApprovalMode mode) : client_(client), mode_(mode) {}
  const std::string& body() const { return body_; }
  const SentModules& modules() const { return modules_; }

  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override {
    ModelRequest draft = request;
    draft.is_draft = true;
    client_.Generate(draft, stream, std::move(stop), std::move(done));
  }
  std::optional<std::size_t> Requested(const Sent& sent) override {
    body_ = sent.body;
    if (sent.sources) modules_ = sent.sources->modules;
    return std::nullopt;
  }
  ApprovalMode ModeFor(const std::string&) override { return mode_; }

 private:
  ModelClient& client_;
  const ApprovalMode mode_;
  std::string body_;
  SentModules modules_;
};

// The agent of today, made ready for one chat.
struct Present {
  const PresentAgent& agent;
  ModelDirectory::Resolved model;
  SystemPrompt prompt;
  DeferredTools tools;
  FilesOfChat* files;
  const Executor& executor;
};

struct Draft {
  std::string body;  // empty: the agent sends none
  SentModules modules;
};

// What the agent of today sends in this state. The failure of a request that cannot be made.
Result<Draft> DraftOf(Present& present, AgentState state, ApprovalMode mode) {
  AgentLimits limits = LimitsOf(present.agent.options, present.model);
  limits.fits_context = false;
  limits.effort = present.agent.effort;
  Drafting drafting(*present.model.client, mode);
  AgentLoop loop({.model = drafting,
                  .tools = present.tools,
                  .observer = drafting,
                  .approvals = drafting,
                  .executor = present.executor,
                  .prompt = present.prompt,
                  .files = present.files,
                  .documents = present.agent.documents,
                  .instructions = present.agent.workspace.instructions},
                 limits, present.model.model, std::move(state), {});
  std::promise<AgentOutcome> ended;
  loop.Start([&ended](AgentOutcome outcome) { ended.set_value(std::move(outcome)); });
  AgentOutcome outcome = ended.get_future().get();
  if (!drafting.body().empty() || !outcome.error) return Draft{drafting.body(), drafting.modules()};
  return Fail(*std::move(outcome.error));
}

// The agent's states before its requests.
class States {
 public:
  // `before` is the parent's state; null if there is none.
  States(const Interaction& of, const RunRecord& record, const AgentState* before)
      : end_(*of.final_agent_state), before_(before) {
    first_round_ = record.resumed_from && !record.resumed_from->call_ids.empty() ? 1 : 0;
    for (std::size_t i = record.first_message; i < end_.messages.size(); ++i) {
      if (end_.messages[i].role == Role::kAssistant) answers_.push_back(i);
    }
    for (const AgentEvent& event : of.events) {
      const auto* told = std::get_if<event::Compacted>(&event.payload);
      if (told != nullptr) changes_.emplace_back(event.round_index, told);
    }
  }

  std::uint32_t first_round() const { return first_round_; }
  // nullopt if the record does not tell which results were cleared by then.
  std::optional<AgentState> Before(std::uint32_t round) const {
    AgentState state;
    const std::size_t answer = round - std::min(round, first_round_);
    state.messages.Append(end_.messages, 0, answer < answers_.size() ? answers_[answer] : end_.messages.size());
    const auto is_past = [round](const auto& change) { return change.first <= round; };
    const auto past = static_cast<std::size_t>(std::ranges::count_if(changes_, is_past));
    const auto count = [](auto begin, auto end, bool results) {
      return std::count_if(begin, end, [&](const auto& change) { return (change.second->results > 0) == results; });
    };
    const auto middle = changes_.begin() + static_cast<std::ptrdiff_t>(past);
    const bool will_sum_up = count(middle, changes_.end(), false) > 0;
    const bool will_clear = count(middle, changes_.end(), true) > 0;
    if (!will_clear) {
      state.cleared = end_.cleared;
    } else if (count(changes_.begin(), middle, true) > 0) {
      return std::nullopt;
    } else if (before_ != nullptr) {
      state.cleared = before_->cleared;
    }
    if (!will_sum_up) {
      state.compaction = end_.compaction;
    } else if (count(changes_.begin(), middle, false) == 0) {
      if (before_ != nullptr) state.compaction = before_->compaction;
    } else {
      const auto last = std::find_if(std::make_reverse_iterator(middle), changes_.rend(),
                                     [](const auto& change) { return change.second->results == 0; });
      state.compaction =
          Compaction{.first = end_.compaction ? end_.compaction->first : 0, .end = 0, .summary = last->second->summary};
      state.compaction->end = state.compaction->first + static_cast<std::uint64_t>(last->second->messages);
    }
    return state;
  }

 private:
  const AgentState& end_;
  const AgentState* const before_;
  std::uint32_t first_round_ = 0;
  std::vector<std::size_t> answers_;  // places of the model's messages
  std::vector<std::pair<std::uint32_t, const event::Compacted*>> changes_;
};

// The parts that only models with the ability get: pictures, PDF files, recordings.
std::multiset<std::string> MediaIn(const Json& message) {
  static const std::set<std::string> kKinds = {"image", "image_url",  "input_image", "document",
                                               "file",  "input_file", "input_audio"};
  std::multiset<std::string> media;
  if (message.is_object() && kKinds.contains(TextMember(message, "type"))) media.insert(TextMember(message, "type"));
  for (const Json& part : message.is_structured() ? message : Json::array()) media.merge(MediaIn(part));
  return media;
}

std::string TextOrJson(const Json& value) { return value.is_string() ? value.get<std::string>() : DumpJson(value); }

// --- the system prompt -----------------------------------------------------------------------------------------------

Drift::Cause CauseOf(const std::string& module) {
  if (module == kProjectModule) return Drift::Cause::kInstructions;
  return module == kSkillsModule ? Drift::Cause::kSkill : Drift::Cause::kModule;
}

// The skill whose line differs ("- NAME (FILE): ...").
std::string SkillIn(std::string_view before, std::string_view after) {
  for (const auto& [some, others] : {std::pair(after, before), std::pair(before, after)}) {
    for (std::string_view rest = some; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      if (line.starts_with("- ") && others.find(line) == others.npos) {
        return std::string(line.substr(2, line.find_first_of(" :", 2) - 2));
      }
    }
  }
  return std::string(kSkillsModule);
}

// The model's window at the time; 0: not on record.
std::int64_t WindowOf(const Interaction& interaction) {
  for (const AgentEvent& event : interaction.events) {
    const auto* const usage = std::get_if<event::Usage>(&event.payload);
    if (usage != nullptr && usage->context_window > 0) return usage->context_window;
  }
  return 0;
}

// --- the comparison --------------------------------------------------------------------------------------------------

class Comparison {
 public:
  using NamedTools = std::vector<std::pair<std::string, Json>>;
  using ToolsWithin = std::function<NamedTools(std::int64_t window)>;
  Comparison(const Present& present, const Interaction& interaction, DriftReport& report)
      : report_(report),
        agent_(present.agent),
        tools_(present.agent.workspace.tools.Current()),
        window_(present.model.context_window),
        window_then_(WindowOf(interaction)),
        patterns_(PatternsOf(present.prompt, Context(present.model.context_window).max_plain_bytes())),
        facts_{.workspace = present.prompt.workspace,
               .environment = present.prompt.environment,
               .git = present.prompt.git,
               .workspace_then = interaction.workspace} {
    for (const ToolServer& server : present.agent.workspace.tools.Servers()) {
      if (server.state != ToolServer::State::kReady) away_.push_back(server.name);
    }
  }

  // Compares a body with that of today. `listed` has the lists of the recorded one; nullopt: not on record.
  // `tools_within` gives the tools of today for a model with this window (0: any); empty: not known.
  void Compare(std::uint64_t index, const std::optional<SentRequest>& listed, const ToldBody& before,
               const ToldBody& after, const SentModules& modules_now, bool is_shortened,
               const ToolsWithin& tools_within) {
    index_ = index;
    of_clients_.clear();
    if (listed) {
      for (const auto& [name, origin] : listed->tools) {
        if (origin.kind == ToolOrigin::Kind::kClient) of_clients_.insert(name);
      }
    }
    if (before.system_role != after.system_role && !before.system.empty() && !after.system.empty()) {
      Add({.cause = Drift::Cause::kProgram,
           .path = before.messages_path + "/0/role",
           .before = before.system_role,
           .after = after.system_role});
    }
    ComparePrompt(before, listed && listed->modules ? *listed->modules : SentModules(), after, modules_now);
    if (before.tools != after.tools) {
      const auto was = ToolsIn(before.tools), is = ToolsIn(after.tools);
      was == is ? AddCacheMark("/tools", before.tools, after.tools)
                : CompareTools(was, ToolsThen(was, is, tools_within));
    }
    CompareParameters(before.parameters, after.parameters);
    for (std::size_t i = 0; i < std::max(before.messages.size(), after.messages.size()); ++i) {
      const std::string_view was = i < before.messages.size() ? before.messages[i] : std::string_view();
      const std::string_view is = i < after.messages.size() ? after.messages[i] : std::string_view();
      if (was == is) continue;
      const Json then = Parsed(was), now = Parsed(is);
      const bool is_of_cache = then == now;  // only a mark for the provider's cache stands elsewhere
      if (is_of_cache) {
        AddCacheMark(before.messages_path + "/" + std::to_string(i), was, is);
        continue;
      }
      Difference first = FirstDifference(then, now, before.messages_path + "/" + std::to_string(i));
      Json rest = Json::array();  // more may differ than the first place
      for (std::size_t j = i; j < after.messages.size(); ++j) rest.push_back(Parsed(after.messages[j]));
      const bool is_of_media = MediaIn(then) != MediaIn(now);
      return Add({.cause = is_of_media    ? Drift::Cause::kParameter
                           : is_shortened ? Drift::Cause::kCompaction
                                          : Drift::Cause::kProgram,
                  .name = is_of_media ? "attachments" : "",
                  .path = std::move(first.path),
                  .before = TextOrNothing(first.before),
                  .after = TextOrNothing(first.after)},
                 DumpJson(rest));
    }
  }

  // Names the servers of the recorded tools that are of another version now, and those that cannot be asked.
  void CompareServers(std::uint64_t index, const std::optional<SentRequest>& listed) {
    index_ = index;
    for (const auto& [name, origin] : listed ? listed->tools : std::vector<ToldTool>()) {
      if (origin.kind != ToolOrigin::Kind::kServer) continue;
      if (std::ranges::find(away_, origin.name) != away_.end()) {
        const std::string said = "tools and words of the MCP server " + origin.name + ", which is not connected here";
        auto& notes = report_.not_compared;
        const bool is_news = agent_.names_servers_away && std::ranges::find(notes, said) == notes.end();
        if (is_news) notes.push_back(said);
        continue;
      }
      const auto is_of_server = [&](const Tool* tool) { return tool->traits().origin.name == origin.name; };
      const auto now = std::ranges::find_if(tools_->tools(), is_of_server);
      if (now == tools_->tools().end() || (*now)->traits().origin.version == origin.version) continue;
      Add({.cause = Drift::Cause::kTool,
           .name = origin.name,
           .path = "/tools",
           .before = "version " + origin.version,
           .after = "version " + (*now)->traits().origin.version});
    }
  }

  // Names the calls that ran then, and that a rule of today denies.
  void CompareRules(const Interaction& turn, const std::vector<SentRequest>& requests) {
    const ToolRules& rules = agent_.options.rules;
    for (const AgentEvent& event : rules ? turn.events : std::vector<AgentEvent>()) {
      const auto* const call = std::get_if<event::ToolCallStarted>(&event.payload);
      if (call == nullptr) continue;
      const Tool* const tool = tools_->Find(call->tool_name);
      const auto denies = [&](const ToolRule& rule) {  // the tool of a server that is not connected
        return rule.action == RuleAction::kDeny && !rule.pattern && SpeaksOf(rule, call->tool_name);
      };
      const auto by_name = std::ranges::find_if(*rules, denies);
      const auto hold =
          tool ? FindHold(rules, *tool, call->tool_input)
          : by_name == rules->end()
              ? std::nullopt
              : std::optional(Hold{RuleAction::kDeny, static_cast<std::size_t>(by_name - rules->begin())});
      if (!hold || hold->action != RuleAction::kDeny) continue;
      const auto sent = std::ranges::find(requests, event.round_index, &SentRequest::round);
      index_ = static_cast<std::uint64_t>(sent == requests.end() ? 0 : sent - requests.begin());
      const ToolRule& rule = (*rules)[hold->rule];
      const Json identity = {rule.tool, rule.pattern.value_or("")};
      Add({.cause = Drift::Cause::kRule,
           .name = call->tool_name,
           .before = call->tool_input,
           .after = RuleName(hold->rule) + " denies it"},
          DumpJson(identity));
    }
  }

  void AddModel(const std::string& before, const std::string& after) {
    Add({.cause = Drift::Cause::kModel, .name = after, .path = "/model", .before = before, .after = after});
  }

 private:
  static std::string TextOrNothing(const Json& value) { return value.is_null() ? std::string() : TextOrJson(value); }

  // What an earlier request has shown is not repeated.
  void Add(Drift drift, std::optional<std::string> lasting = {}) {
    const Json identity = {ToString(drift.cause), drift.name, lasting ? *lasting : drift.after};
    drift.digest = Sha256Digest({DumpJson(identity)});
    if (!known_.emplace(drift.cause, drift.name, drift.before, drift.after).second) return;
    drift.request = index_;
    report_.found.push_back(std::move(drift));
  }
  bool IsAway(std::string_view name, std::string_view around) const {
    return std::ranges::any_of(away_, [&](const std::string& server) {
      return around.empty() ? name == std::string(kServerModule) + server
                            : name.starts_with(server + std::string(around));
    });
  }

  void AddModule(const std::string& name, const std::string& path, const std::string& was, const std::string& is) {
    const Drift::Cause cause = CauseOf(name);
    const ModulePattern* const pattern = PatternOf(name);
    const bool is_of_folders = cause != Drift::Cause::kModule;
    const std::string lasting = is.empty() || pattern == nullptr ? is
                                : is_of_folders                  ? WithoutFolders(is)
                                                                 : pattern->text;
    Add({.cause = cause,
         .name = cause == Drift::Cause::kSkill ? SkillIn(WithoutFolders(was), WithoutFolders(is)) : name,
         .path = path,
         .before = was,
         .after = is},
        lasting);
  }

  // Whether two texts of a module differ in nothing but what depends on the time and the machine.
  bool IsSameModule(const ModulePattern* pattern, const std::string& was, const std::string& is) const {
    if (was == is) return true;
    if (pattern == nullptr) return false;
    if (CauseOf(pattern->name) != Drift::Cause::kModule) return WithoutFolders(was) == WithoutFolders(is);
    return pattern->has_values && IsFilled(was, pattern->text, &facts_);
  }

  const ModulePattern* PatternOf(const std::string& name) const {
    const auto found = std::ranges::find(patterns_, name, &ModulePattern::name);
    return found == patterns_.end() ? nullptr : &*found;
  }

  void ComparePrompt(const ToldBody& before, const SentModules& told, const ToldBody& after,
                     const SentModules& told_now) {
    const std::vector<PromptModule> now = SplitPrompt(after.system, told_now).value_or(std::vector<PromptModule>());
    for (const PromptModule& module : now) {
      const ModulePattern* const pattern = PatternOf(module.name);
      if (pattern != nullptr && IsFilled(module.text, pattern->text, nullptr)) continue;
      Add({.cause = Drift::Cause::kProgram, .name = module.name, .path = after.system_path, .after = module.text});
    }
    if (now.empty() && !after.system.empty()) {
      Add({.cause = Drift::Cause::kProgram, .path = after.system_path, .after = after.system});
    }
    const auto is_of_others = [&](const std::string& name) {
      return name == kRequestPart || name == kHookPart || IsAway(name, "");
    };
    const std::vector<PromptModule> recorded = SplitPrompt(before.system, told).value_or(std::vector<PromptModule>());
    if (recorded.empty() && !before.system.empty()) return CompareWhole(before, now);
    for (const PromptModule& module : now) {
      const ModulePattern* const pattern = PatternOf(module.name);
      const auto was = std::ranges::find(recorded, module.name, &PromptModule::name);
      const bool was_there = was != recorded.end();
      if (was_there ? IsSameModule(pattern, was->text, module.text) : pattern && pattern->may_be_left_out) continue;
      AddModule(module.name, before.system_path, was_there ? was->text : std::string(), module.text);
    }
    for (const PromptModule& module : recorded) {
      const bool is_there = std::ranges::find(now, module.name, &PromptModule::name) != now.end();
      const ModulePattern* const pattern = PatternOf(module.name);
      if (is_there || is_of_others(module.name)) continue;
      if (pattern && pattern->may_be_left_out && IsFilled(module.text, pattern->text, &facts_)) continue;
      AddModule(module.name, before.system_path, module.text, "");
    }
  }

  // For a prompt whose modules are not on record: names those of today that do not stand in it.
  void CompareWhole(const ToldBody& before, const std::vector<PromptModule>& now) {
    for (const PromptModule& module : now) {
      const ModulePattern* const pattern = PatternOf(module.name);
      if ((pattern != nullptr && pattern->has_values) || before.system.find(module.text) != std::string::npos) continue;
      AddModule(module.name, before.system_path, "(see the request)", module.text);
    }
  }

  // For values that are equal without marks for the provider's cache.
  void AddCacheMark(std::string path, std::string_view before, std::string_view after) {
    const auto whole = [](std::string_view text) { return ParseJson(text, kMostToldDepth); };
    const auto was = whole(before), is = whole(after);
    if (was && is && *was == *is) return;  // only written otherwise
    const auto marks = [](std::string_view text) {
      return text.find("\"cache_control\":") == text.npos ? "" : "(marked)";
    };
    Add({.cause = Drift::Cause::kParameter,
         .name = "cache_control",
         .path = std::move(path),
         .before = marks(before),
         .after = marks(after)});
  }

  // A model with little room gets short descriptions, and not of all tools. So the record is compared with what today's
  // agent would tell within the recorded window; the rest is the window's.
  NamedTools ToolsThen(const NamedTools& was, NamedTools is, const ToolsWithin& tools_within) {
    if (window_then_ == window_ && window_ > 0) return is;
    NamedTools then = tools_within(window_then_);
    std::string before = window_then_ > 0 ? std::to_string(window_then_) : "(larger)";
    const auto is_other = [&](const NamedTools::value_type& tool) {
      return std::ranges::find(then, tool) != then.end() && std::ranges::find(is, tool) == is.end();
    };
    if (window_then_ == 0 && std::ranges::none_of(was, is_other)) {
      const std::int64_t likely = WindowFor(std::min(was.size(), then.size()), tools_within);
      auto told = tools_within(likely);
      const auto explained_by = [&](const NamedTools& tools) {
        return std::ranges::count_if(was,
                                     [&](const auto& tool) { return std::ranges::find(tools, tool) != tools.end(); });
      };
      if (explained_by(told) > explained_by(is)) then = std::move(told);
      if (window_ == 0 || likely < window_) before = "(smaller)";
    }
    const bool is_known = window_then_ > 0 || std::ranges::any_of(was, is_other);  // else it may have been this one
    if (then.empty() || then == is || !is_known) return is;
    Add({.cause = Drift::Cause::kParameter,
         .name = "context_window",
         .path = "/tools",
         .before = std::move(before),
         .after = window_ > 0 ? std::to_string(window_) : "(unlimited)"});
    return then;
  }
  // The smallest window in which so many tools are told.
  std::int64_t WindowFor(std::size_t tools, const ToolsWithin& tools_within) {
    std::int64_t& window = windows_[tools];
    if (window > 0) return window;
    std::int64_t too_small = 0;
    window = 1 << 20;
    while (window - too_small > 1) {
      const std::int64_t middle = (too_small + window) / 2;
      (tools_within(middle).size() < tools ? too_small : window) = middle;
    }
    return window;
  }
  void CompareTools(const NamedTools& before, const NamedTools& after) {
    using Named = NamedTools::value_type;
    const auto is_unknown = [&](const std::string& name) {
      if (agent_.is_denied && agent_.is_denied(name)) return false;
      if (of_clients_.contains(name) || IsAway(name, "__")) return true;
      return name == kSearchToolsName && !(away_.empty() && of_clients_.empty());
    };
    std::vector<std::string> was, is;  // the order of those that both have
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto& [name, tool] = before[i];
      const std::string path = "/tools/" + std::to_string(i);
      const auto now = std::ranges::find(after, name, &Named::first);
      if (now != after.end()) was.push_back(name);
      if (now != after.end() && now->second != tool) {
        Difference first = FirstDifference(tool, now->second, path);
        Add({.cause = Drift::Cause::kTool,
             .name = name,
             .path = std::move(first.path),
             .before = TextOrNothing(first.before),
             .after = TextOrNothing(first.after)},
            DumpJson(Json{{"changed", now->second}}));  // not what a new tool would be
      } else if (now == after.end() && !is_unknown(name)) {
        Add({.cause = Drift::Cause::kTool, .name = name, .path = path, .before = DumpJson(tool)}, DumpJson(Json()));
      }
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      const auto& [name, tool] = after[i];
      if (std::ranges::find(before, name, &Named::first) != before.end()) {
        is.push_back(name);
      } else if (!is_unknown(name)) {
        Add({.cause = Drift::Cause::kTool,
             .name = name,
             .path = "/tools/" + std::to_string(i),
             .after = DumpJson(tool)});
      }
    }
    const auto moved = std::ranges::mismatch(was, is);
    if (moved.in1 == was.end() && moved.in2 == is.end()) return;
    if (moved.in1 == was.end() || moved.in2 == is.end()) {  // one stands there twice
      const std::string& twice = moved.in1 == was.end() ? *moved.in2 : *moved.in1;
      return Add({.cause = Drift::Cause::kTool,
                  .name = twice,
                  .path = "/tools",
                  .before = Joined(was, ", "),
                  .after = Joined(is, ", ")});
    }
    Add({.cause = Drift::Cause::kTool,
         .name = *moved.in2,
         .path = "/tools",
         .before = "(after " + *moved.in1 + ")",
         .after = "(before " + *moved.in1 + ")"});
  }

  void CompareParameters(std::map<std::string, std::string_view> before,
                         std::map<std::string, std::string_view> after) {
    for (const auto& [name, value] : after) before.try_emplace(name);
    for (const auto& [name, value] : before) {
      const std::string_view now = after[name];
      const bool is_made_of_others = name == "prompt_cache_key";
      if (value == now || (is_made_of_others && !value.empty() && !now.empty())) continue;
      const Json was = Parsed(value), is = Parsed(now);
      if (was == is) continue;
      const auto shown = [&](const Json& json) {
        return is_made_of_others && !json.is_null() ? "(set)" : TextOrNothing(json);
      };
      Add({.cause = Drift::Cause::kParameter,
           .name = name,
           .path = "/" + name,
           .before = shown(was),
           .after = shown(is)});
    }
  }

  DriftReport& report_;
  const PresentAgent& agent_;
  const std::shared_ptr<const ToolSet> tools_;
  const std::int64_t window_, window_then_;  // 0: none, or not known
  const std::vector<ModulePattern> patterns_;
  const PromptFacts facts_;
  std::vector<std::string> away_;     // MCP servers that are not connected
  std::set<std::string> of_clients_;  // tools of an editor or another client, in the recorded request
  std::uint64_t index_ = 0;
  std::set<std::tuple<Drift::Cause, std::string, std::string, std::string>> known_;
  std::map<std::size_t, std::int64_t> windows_;  // of WindowFor
};

// nullopt: there is no parent, or it is not stored.
Result<std::optional<AgentState>> ParentState(const Interaction& interaction, CheckpointStore& store) {
  if (!interaction.parent_id) return std::nullopt;
  auto loaded = store.LoadFinalState(interaction.chat_id, *interaction.parent_id);
  if (!loaded && IsNotFound(loaded.error())) return std::nullopt;
  return loaded;
}

}  // namespace

ApprovalMode ModeThen(const PresentAgent& agent, const ToldBody& told) {
  const auto tools = agent.workspace.tools.Current();  // another thread may replace it meanwhile
  for (const Tool* const tool : tools->tools()) {
    const bool was_told = told.tools.find("\"name\":\"" + tool->traits().spec.name + "\"") != told.tools.npos;
    if (tool->traits().ends_planning && was_told) return ApprovalMode::kPlan;
  }
  const ApprovalMode now = agent.options.approval_mode;
  return now == ApprovalMode::kPlan ? ApprovalMode::kAsk : now;
}

Result<AgentState> StateBefore(const Interaction& interaction, CheckpointStore& store, std::uint32_t round) {
  const RunRecord record = interaction.record ? *interaction.record : TRY(DeriveRecord(interaction));
  const auto before = TRY(ParentState(interaction, store));
  const States states(interaction, record, before ? &*before : nullptr);
  auto state = states.Before(std::max(round, states.first_round()));
  if (!state || state->messages.empty()) {
    return Fail(Reason::kNotReplayable, "the record does not tell what the model knew when this turn began");
  }
  return *std::move(state);
}

PresentAgent AgentOf(const Interaction& interaction, PresentAgent agent) {
  const auto& record = interaction.record;
  if (!record) return agent;
  if (record->requests) agent.effort = record->effort;
  if (record->names_model || record->requests) {
    agent.chosen_model = record->names_model ? interaction.model : std::string();
  }
  return agent;
}

Result<DriftReport> FindDrift(const Interaction& interaction, RequestBodies& bodies, const PresentAgent& of_chat,
                              const Executor& executor) {
  if (interaction.user_message.empty()) return DriftReport();  // what a person did by hand
  if (!interaction.record || !interaction.record->requests) return Fail(Reason::kNotReplayable, kRequestsNotOnRecord);
  const RunRecord& record = *interaction.record;
  DriftReport report;
  const PresentAgent agent = AgentOf(interaction, of_chat);
  auto model = agent.models.Resolve(agent.chosen_model);
  const std::string name_now = model ? model->full_name : std::string();
  if (!model || name_now != interaction.model) {
    auto recorded = agent.models.Resolve(interaction.model);
    if (recorded) model = std::move(recorded);
  }
  Present present{.agent = agent,
                  .model = model.value_or(ModelDirectory::Resolved{}),
                  .prompt = PromptFor(agent.workspace, interaction.chat_id),
                  .tools = DeferredTools(agent.workspace.tools, model ? model->context_window : 0),
                  .files = bodies.files(),
                  .executor = executor};
  Comparison comparison(present, interaction, report);
  if (name_now != interaction.model) comparison.AddModel(interaction.model, name_now);
  comparison.CompareRules(interaction, *record.requests);
  const bool has_servers = !agent.workspace.tools.Servers().empty();
  const auto before = TRY(ParentState(interaction, bodies.store()));
  const States states(interaction, record, before ? &*before : nullptr);
  std::set<std::uint32_t> done;  // a request that repeats another one is not compared again
  for (std::size_t i = 0; i < record.requests->size(); ++i) {
    const SentRequest& sent = (*record.requests)[i];
    if (sent.purpose != SentRequest::Purpose::kTurn || !done.insert(sent.round).second) continue;
    auto state = states.Before(sent.round);
    auto recorded = bodies.Of(interaction, i);
    if (!recorded && !IsNotFound(recorded.error())) return Fail(std::move(recorded.error()));
    const bool has_model = model && model->full_name == interaction.model;
    if (!has_model || !model->client->makes_drafts() || !state || !recorded) {
      report.not_compared.push_back(!has_model  ? "the model " + interaction.model + " is not configured"
                                    : !recorded ? "a file that was sent is not here"
                                    : !state    ? "the record does not tell which results were cleared by then"
                                                : "the model is a part of this program now");
      continue;
    }
    const ToldBody told = TRY(ReadTold(*recorded));
    const bool is_shortened = state->compaction || state->cleared > 0;
    const auto draft = DraftOf(present, *std::move(state), ModeThen(agent, told));
    if (!draft) {
      report.not_compared.push_back("the agent of today cannot make it: " + draft.error().message);
      continue;
    }
    ++report.requests;
    if (draft->body == *recorded && !has_servers) continue;
    const auto listed = TRY(bodies.WithLists(interaction, i));
    comparison.CompareServers(i, listed);
    if (draft->body == *recorded) continue;
    const auto tools_within = [&](std::int64_t window) -> Comparison::NamedTools {
      Present then{.agent = agent,
                   .model = present.model,
                   .prompt = present.prompt,
                   .tools = DeferredTools(agent.workspace.tools, window),
                   .files = bodies.files(),
                   .executor = executor};
      then.model.context_window = window;
      const auto made = DraftOf(then, *states.Before(sent.round), ModeThen(agent, told));
      const auto read = made ? ReadTold(made->body) : Result<ToldBody>(ToldBody());
      return read ? ToolsIn(read->tools) : Comparison::NamedTools();
    };
    comparison.Compare(i, listed, told, TRY(ReadTold(draft->body)), draft->modules, is_shortened, tools_within);
  }
  return report;
}

std::string Describe(const Drift& drift) {
  constexpr std::size_t kShown = 100, kBefore = 24;  // bytes of a text, and of them before the difference
  const auto [was, is] = std::ranges::mismatch(drift.before, drift.after);
  auto from = static_cast<std::size_t>(was - drift.before.begin());
  from -= std::min(from, kBefore);
  while (from > 0 && (static_cast<unsigned char>(drift.before[from - 1]) & 0x80) != 0) --from;
  const auto line = [&](const char* sign, const std::string& text) {
    if (text.empty()) return std::string();
    const bool cut = text.size() - from > kShown;
    std::string shown = text.substr(from, kShown);
    shown.resize(shown.size() - IncompleteUtf8Tail(shown));
    return std::string("\n  ") + sign + (from > 0 ? " ..." : " ") + VisibleLine(shown) + (cut ? "..." : "");
  };
  std::string text(ToString(drift.cause));
  if (!drift.name.empty()) text += " " + VisibleLine(drift.name);
  // A part of a tool's definition or of a message may be new or gone.
  const bool is_part = drift.cause == Drift::Cause::kProgram || drift.cause == Drift::Cause::kCompaction ||
                       (drift.cause == Drift::Cause::kTool && std::ranges::count(drift.path, '/') > 2);
  text += is_part                ? " has changed"
          : drift.before.empty() ? " is new"
          : drift.after.empty()  ? " is gone"
                                 : " has changed";
  if (!drift.path.empty())
    text += " (" + VisibleLine(drift.path) + " of request " + std::to_string(drift.request) + ")";
  return text + line("-", drift.before) + line("+", drift.after);
}

}  // namespace reprise
