#include "app/added_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/added_servers.h"
#include "app/factories.h"
#include "app/workspace_folders.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxRuleText = 4096;

Json RuleWords(const ToolRule& rule) {
  Json words = {{"tool", rule.tool}, {"action", ToString(rule.action)}};
  if (rule.pattern) words["pattern"] = *rule.pattern;
  return words;
}

std::optional<ToolRule> RuleIn(const Json& words) {
  const auto action = ParseRuleAction(TextMember(words, "action"));
  if (!action) return std::nullopt;
  ToolRule rule{.tool = TextMember(words, "tool"), .action = *action};
  if (MemberOf(words, "pattern").is_string()) rule.pattern = TextMember(words, "pattern");
  return rule;
}

// Without a pattern it is the same whether the tool is there now or not.
std::string MeaningOf(const ToolRule& rule, const ToolSet& tools) {
  const Tool* const tool = rule.pattern ? tools.Find(rule.tool) : nullptr;
  if (tool != nullptr) return RuleMeaning(rule, *tool);
  const bool is_one = rule.tool.find_first_of("*?[") == std::string::npos;
  return is_one ? "Every call of " + rule.tool + "." : "Every call of a tool whose name fits " + rule.tool + ".";
}

Result<void> CheckLocal(const Consent& consent, const std::string& digest) {
  if (!consent.is_local) {
    return Fail(Reason::kForbiddenUser,
                "what lets calls run without asking is changed only by the user who runs this server, on its machine");
  }
  if (consent.digest == digest) return {};
  return Fail(Reason::kDigestMismatch,
              "the rule is not what was shown, or was not shown; look at its words and their digest again");
}

// How many of the folder's rules the server's own configuration has.
std::size_t RulesOfServer(const Options& options) {
  const auto of_server = options.of_folder ? options.of_folder("") : Fail(ErrorCode::kNotFound, "");
  const auto alone = of_server ? of_server->options() : Fail(ErrorCode::kNotFound, "");
  return alone ? alone->tools.rules.size() : options.tools.rules.size();
}

}  // namespace

AddedRules::AddedRules(Parts parts)
    : parts_(std::move(parts)), list_(kRulesList, {parts_.disk, parts_.options.data_dir, parts_.keys, parts_.audit}) {
  const MutexLock lock(mutex_);
  for (const auto& [id, words] : list_.entries().items()) {
    auto rule = RuleIn(words);
    if (!rule) {
      // It may have denied.
      LogWarning("an added rule cannot be read, so its tool asks", {{"rule", id}});
      const std::string tool = TextMember(words, "tool");
      rule = ToolRule{.tool = tool.empty() ? "*" : tool, .action = RuleAction::kAsk};
    }
    auto looked = Look(*rule);
    Rule known = looked ? *std::move(looked) : Rule{.rule = *rule, .problem = looked.error().message};
    known.id = id;
    const std::string digest = TextMember(words, "digest");
    // As grants: what another version of a tool takes the words for was never agreed to.
    if (known.problem.empty() && rule->action == RuleAction::kAllow && known.digest != digest) {
      known.problem = "it means something else now: " + known.means;
      known.means = TextMember(words, "means");
    }
    known.digest = digest;
    if (!known.problem.empty()) LogWarning("an added rule does not hold", {{"rule", id}, {"why", known.problem}});
    rules_.push_back(std::move(known));
  }
  Use(rules_);
}

ToolRules AddedRules::Now() const {
  const MutexLock lock(mutex_);
  return now_;
}

// A rule that holds calls back does so even if its tool is not known now.
void AddedRules::Use(const std::vector<Rule>& rules) {
  auto holding = std::make_shared<std::vector<ToolRule>>();
  // Rules that cannot be read may have denied, so everything asks.
  if (!list_.CheckWritable()) holding->push_back({.tool = "*", .action = RuleAction::kAsk});
  for (const Rule& each : rules) {
    if (each.problem.empty() || each.rule.action != RuleAction::kAllow) holding->push_back(each.rule);
  }
  now_ = holding->empty() ? nullptr : ToolRules(std::move(holding));
}

Result<RuleSettings::Rule> AddedRules::Look(const ToolRule& rule) const {
  const auto invalid = [](std::string why) { return Fail(Reason::kInvalidMember, std::move(why)); };
  if (rule.tool.size() + rule.pattern.value_or("").size() > kMaxRuleText) return invalid("the rule has too much text");
  const auto tools = parts_.folders.home()->tools().Current();
  std::vector<std::string> servers = NamesOfServers(parts_.options);
  for (const auto& server : parts_.servers.InUse()) servers.push_back(server.name);
  if (auto checked = CheckRules({rule}, *tools, servers); !checked) return invalid(checked.error().message);
  Rule looked{.rule = rule, .means = MeaningOf(rule, *tools)};
  looked.digest = Sha256Digest({"reprise/rule\n", DumpJson(RuleWords(rule)), "\n", looked.means});
  return looked;
}

Result<std::vector<RuleSettings::Rule>> AddedRules::List(const std::string& workspace) {
  {
    const MutexLock lock(mutex_);
    TRY(list_.CheckWritable());
  }
  const auto folder = TRY(parts_.folders.Find(workspace));
  const Options& options = folder->options();
  const auto tools = folder->tools().Current();
  const std::size_t of_server = RulesOfServer(parts_.options);
  std::vector<Rule> all;
  for (const ToolRule& rule : options.tools.rules) {
    all.push_back({.name = RuleName(all.size()),
                   .rule = rule,
                   .means = MeaningOf(rule, *tools),
                   .source = all.size() < of_server ? options.config_file : options.folder_file});
  }
  const MutexLock lock(mutex_);
  std::size_t number = all.size();
  for (const Rule& each : rules_) {
    Rule& added = all.emplace_back(each);
    if (each.problem.empty() || each.rule.action != RuleAction::kAllow) added.name = RuleName(number++);
  }
  return all;
}

Result<RuleSettings::Rule> AddedRules::Add(const Wanted& wanted) {
  Rule rule = TRY(Look(wanted.rule));
  const bool allows = rule.rule.action == RuleAction::kAllow;
  if (wanted.dry_run) return rule;
  if (allows) TRY(CheckLocal(wanted.consent, rule.digest));
  rule.id = "r" + RandomHex(4);
  const MutexLock lock(mutex_);
  TRY(list_.CheckWritable());
  const Json words = RuleWords(rule.rule);
  for (const Rule& each : rules_) {
    if (RuleWords(each.rule) == words) return Fail(ErrorCode::kConflict, "there is this rule already");
  }
  Json entries = list_.entries();
  entries[rule.id] = words;
  entries[rule.id]["means"] = rule.means;
  entries[rule.id]["digest"] = rule.digest;
  TRY(list_.Change(AuditEntry::Event::kRuleAdded, rule.id, rule.digest, std::move(entries)));
  rules_.push_back(rule);
  Use(rules_);
  return rule;
}

Result<void> AddedRules::Remove(const std::string& id, const Consent& consent) {
  const MutexLock lock(mutex_);
  TRY(list_.CheckWritable());
  const auto found = std::ranges::find_if(rules_, [&](const Rule& each) { return each.id == id; });
  if (found == rules_.end()) return Fail(ErrorCode::kNotFound, "no rule of this id was added in the page");
  TRY(CheckLocal(consent, found->digest));
  Json entries = list_.entries();
  entries.erase(id);
  TRY(list_.Change(AuditEntry::Event::kRuleRemoved, id, found->digest, std::move(entries)));
  rules_.erase(found);
  Use(rules_);
  return {};
}

}  // namespace reprise
