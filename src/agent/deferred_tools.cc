#include "agent/deferred_tools.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "agent/context.h"
#include "base/json.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::int64_t kShare = 10;       // of the window: one in so many tokens
constexpr std::size_t kMostFound = 8;     // tools per search
constexpr std::size_t kMostQuery = 1000;  // bytes
constexpr std::size_t kMostTold = 400;    // bytes of a description in a result
constexpr std::size_t kMostServers = 40;  // named in the description of search_tools

// Tools of servers are called SERVER__TOOL.
std::size_t ServerEnd(std::string_view name) { return name.find("__"); }

std::optional<std::string> QueryIn(std::string_view arguments) {
  const auto given = ParseJson(arguments);
  if (!given || !given->is_object() || given->size() != 1) return std::nullopt;
  const std::string query = TextMember(*given, "query");
  if (query.empty() || query.size() > kMostQuery) return std::nullopt;
  return query;
}

class DeferringSet;

class SearchTool final : public Tool {
 public:
  SearchTool(const DeferringSet& set, std::string description) : set_(set) {
    traits_.spec = {std::string(kSearchToolsName), std::move(description),
                    R"({"type":"object","additionalProperties":false,"required":["query"],"properties":{)"
                    R"("query":{"type":"string","minLength":1,"maxLength":1000,)"
                    R"("description":"Words for what the tool should do, or its name."}}})"};
  }
  const ToolTraits& traits() const override { return traits_; }
  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override;

 private:
  const DeferringSet& set_;
  ToolTraits traits_;
};

class DeferringSet final : public ToolSet {
 public:
  DeferringSet(std::shared_ptr<const ToolSet> all, std::set<std::string, std::less<>> deferred)
      : all_(std::move(all)), deferred_(std::move(deferred)), search_(*this, Description()) {
    tools_ = all_->tools();
    tools_.push_back(&search_);
    specs_ = all_->specs();
    specs_.push_back(search_.traits().spec);
  }
  Tool* Find(std::string_view name) const override { return name == kSearchToolsName ? &search_ : all_->Find(name); }
  Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
    if (&tool != &search_) return all_->Validate(tool, arguments);
    if (QueryIn(arguments)) return {};
    return Fail(ErrorCode::kInvalidArgument, "the arguments must be {\"query\": \"...\"}, with 1 to 1000 bytes");
  }
  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }
  bool RequiresApproval(const Tool& tool) const override { return &tool != &search_ && all_->RequiresApproval(tool); }
  bool IsDeferred(std::string_view name) const override { return deferred_.contains(name); }
  bool AllowsWebSearch() const override { return all_->AllowsWebSearch(); }

  // The best first, at most kMostFound.
  std::vector<const ToolSpec*> Search(const std::string& query) const {
    const std::string wanted = LowerCase(query);
    std::vector<std::pair<int, const ToolSpec*>> found;
    for (const ToolSpec& spec : all_->specs()) {
      if (!IsDeferred(spec.name)) continue;
      if (spec.name == query) return {&spec};
      const int score = ScoreOf(spec, wanted);
      if (score > 0) found.emplace_back(score, &spec);
    }
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<const ToolSpec*> best;
    for (std::size_t i = 0; i < std::min(found.size(), kMostFound); ++i) best.push_back(found[i].second);
    return best;
  }

 private:
  // A word in the name counts more than one in the description.
  static int ScoreOf(const ToolSpec& spec, std::string_view wanted) {
    const std::string name = LowerCase(spec.name), description = LowerCase(spec.description);
    int score = 0;
    while (!wanted.empty()) {
      const std::size_t end = std::min(wanted.find_first_of(" \t\r\n,_-"), wanted.size());
      const std::string_view word = wanted.substr(0, end);
      wanted.remove_prefix(std::min(end + 1, wanted.size()));
      if (word.size() < 2) continue;
      if (name.find(word) != std::string::npos) score += 3;
      if (description.find(word) != std::string::npos) ++score;
    }
    return score;
  }
  std::string Description() const {
    std::map<std::string, int> servers;
    for (const std::string& name : deferred_) ++servers[name.substr(0, ServerEnd(name))];
    std::string text =
        "Finds tools that are not described here. Those that it finds can be called from then on. Such tools:";
    std::size_t named = 0;
    for (const auto& [server, count] : servers) {
      if (named++ == kMostServers) break;
      text += (named == 1 ? " " : ", ") + server + "__* (" + std::to_string(count) + ")";
    }
    if (servers.size() > kMostServers) text += " and others";
    return text + ".";
  }

  const std::shared_ptr<const ToolSet> all_;
  const std::set<std::string, std::less<>> deferred_;
  mutable SearchTool search_;
  std::vector<Tool*> tools_;
  std::vector<ToolSpec> specs_;
};

ToolOutcome SearchTool::Run(std::string_view arguments, const ToolContext&) {
  const auto found = set_.Search(QueryIn(arguments).value_or(""));
  if (found.empty()) return {.output = "No tool was found. Try other words, or fewer."};
  std::string text;
  for (const ToolSpec* spec : found) {
    const std::string_view told = Utf8Prefix(spec->description, kMostTold);
    text += spec->name + ": " + std::string(told) + (told.size() < spec->description.size() ? "..." : "") + "\n";
  }
  return {.output = text + "You can call these tools now."};
}

}  // namespace

std::shared_ptr<const ToolSet> DeferredTools::Current() const {
  auto all = all_.Current();
  if (window_ <= 0) return all;
  const MutexLock lock(mutex_);
  if (all == of_) return current_;
  std::vector<ToolSpec> others;
  std::set<std::string, std::less<>> names;
  for (const ToolSpec& spec : all->specs()) {
    if (ServerEnd(spec.name) == std::string::npos) continue;
    others.push_back(spec);
    names.insert(spec.name);
  }
  of_ = all;
  const bool is_too_much = EstimateTokens(others) > window_ / kShare && all->Find(kSearchToolsName) == nullptr;
  current_ = is_too_much ? std::make_shared<DeferringSet>(std::move(all), std::move(names)) : std::move(all);
  return current_;
}

std::vector<std::string> FoundTools(const ToolSet& tools, const Messages& messages) {
  std::set<std::string> found;
  const auto* const set = dynamic_cast<const DeferringSet*>(&tools);
  if (set == nullptr) return {};
  for (const Message& message : messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (tools.IsDeferred(call.name)) found.insert(call.name);
      if (call.name != kSearchToolsName) continue;
      for (const ToolSpec* spec : set->Search(QueryIn(call.arguments).value_or(""))) found.insert(spec->name);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace reprise
