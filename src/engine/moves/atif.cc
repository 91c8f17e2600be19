// ATIF 1.0 to 1.7, the Agent Trajectory Interchange Format of Harbor.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

constexpr int kMostTrajectories = 8;

// Its records are steps.
class AtifReader final : public RecordReader {
 public:
  // `trajectory` is without its steps.
  explicit AtifReader(Json trajectory) : trajectory_(std::move(trajectory)) {
    // Sub-agents and continuations share a session's id.
    facts.id = TextMember(trajectory_, trajectory_.contains("trajectory_id") ? "trajectory_id" : "session_id");
    facts.title = TextMember(MemberOf(trajectory_, "extra"), "title");  // ours
    if (!TextMember(trajectory_, "continued_trajectory_ref").empty()) left_out.Add("continuation in a file of its own");
  }

  std::vector<MovedMessage> Take(const Json& json) override {
    named_here_ = 0;
    std::vector<MovedMessage> steps;
    AddStep(json, model_, 0, steps);
    for (const MovedMessage& each : steps) {
      if (!facts.created) facts.created = each.at;
      facts.updated = std::max(facts.updated, each.at);
    }
    return steps;
  }

 private:
  std::vector<MovedMessage> StepsOf(const Json& trajectory, int depth) {
    const std::string model = ModelOf(trajectory);
    std::vector<MovedMessage> steps;
    const Named named = NamedIn(trajectory);
    const Named* const around = std::exchange(around_, &named);
    for (const Json& step : ListIn(trajectory, "steps")) AddStep(step, model, depth, steps);
    around_ = around;
    return steps;
  }

  static std::string ModelOf(const Json& trajectory) { return TextMember(MemberOf(trajectory, "agent"), "model_name"); }

  void AddStep(const Json& json, const std::string& model, int depth, std::vector<MovedMessage>& steps) {
    const std::string source = TextMember(json, "source");
    MovedMessage step{.at = TimeIn(MemberOf(json, "timestamp"))};
    step.text = TextWith(MemberOf(json, "message"), step.files);
    if (source == "agent") {
      TakeAnswer(json, model, step);
      steps.push_back(step);
    } else if (source == "user") {
      // Of ours, one without a text begins a turn, too: it had files, which are elsewhere.
      const bool is_ours = MemberOf(MemberOf(json, "extra"), "interaction").is_string();
      if (is_ours || !IsBlank(step.text) || !step.files.empty()) steps.push_back(step);
    } else if (MemberOf(MemberOf(json, "extra"), "compacted_messages").is_number()) {  // ours
      step.kind = Kind::kSummary;
      steps.push_back(step);
    } else if (source != "system") {
      left_out.AddUnknown("step", source);
    } else if (!step.text.empty()) {
      left_out.Add("message of the system");
    }
    std::vector<const MovedBlock*> calls;
    for (const MovedBlock& block : step.blocks) {
      if (block.kind == MovedBlock::Kind::kCall) calls.push_back(&block);
    }
    MovedMessage told{.at = step.at};  // to the agent without its having called anything
    const Json& results = ListIn(MemberOf(json, "observation"), "results");
    const bool in_order = std::ranges::none_of(results, NamesCall);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const MovedBlock* const call = in_order && i < calls.size() ? calls[i] : nullptr;
      if (auto of_call = TakeResult(results[i], call, depth, told, steps)) steps.push_back(*std::move(of_call));
    }
    if (!IsBlank(told.text) || !told.files.empty()) steps.push_back(std::move(told));
  }

  static bool NamesCall(const Json& result) { return !TextMember(result, "source_call_id").empty(); }

  void TakeAnswer(const Json& json, const std::string& model, MovedMessage& step) {
    step.kind = Kind::kAnswer;
    step.group = "step " + std::to_string(CountIn(json, "step_id"));
    step.model = json.contains("model_name") ? TextMember(json, "model_name") : model;
    step.blocks.push_back({.kind = MovedBlock::Kind::kThinking, .text = TextMember(json, "reasoning_content")});
    step.blocks.push_back({.text = std::exchange(step.text, {})});
    for (const Json& call : ListIn(json, "tool_calls")) {
      step.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                             .text = ArgumentsIn(MemberOf(call, "arguments")),
                             .id = TextMember(call, "tool_call_id"),
                             .name = TextMember(call, "function_name")});
    }
    const Json& metrics = MemberOf(json, "metrics");
    step.usage = {.input_tokens = CountIn(metrics, "prompt_tokens"),
                  .output_tokens = CountIn(metrics, "completion_tokens"),
                  .cache_read_tokens = CountIn(metrics, "cached_tokens"),
                  .cache_write_tokens = CountIn(MemberOf(metrics, "extra"), "cache_write_tokens")};
    for (const char* ids : {"prompt_token_ids", "completion_token_ids", "logprobs"}) {
      if (metrics.contains(ids)) left_out.Add("list of token ids or probabilities");
    }
  }

  // A text, or parts of it with images that are files elsewhere.
  std::string TextWith(const Json& content, std::vector<MovedFile>& files) {
    if (content.is_null()) return {};
    if (content.is_primitive() && !content.is_string()) return left_out.AddUnknown("text", content.type_name()), "";
    if (!content.is_array()) return ResultText(content, files, left_out);
    Json told = Json::array();
    for (const Json& part : content) {
      const bool is_elsewhere = TextMember(part, "type") == "image" && TextMember(part, "data").empty();
      is_elsewhere ? left_out.Add("image in a file of its own") : told.push_back(part);
    }
    return ResultText(told, files, left_out);
  }

  // A result of a call, after the steps of its sub-agents; what is of none joins `told`. It is of `call` if it does not
  // say of which.
  std::optional<MovedMessage> TakeResult(const Json& result, const MovedBlock* call, int depth, MovedMessage& told,
                                         std::vector<MovedMessage>& steps) {
    MovedMessage made{.kind = Kind::kResult, .at = told.at, .call_id = TextMember(result, "source_call_id")};
    made.text = TextWith(MemberOf(result, "content"), made.files);
    made.is_error = MemberOf(result, "is_error") == true || MemberOf(MemberOf(result, "extra"), "is_error") == true;
    const bool is_of_call = !made.call_id.empty() || call != nullptr;
    if (made.call_id.empty() && is_of_call) made.call_id = call->id;
    for (const Json& ref : ListIn(result, "subagent_trajectory_ref")) AddSubAgent(ref, made.call_id, depth, steps);
    if (is_of_call) return made;
    AddLine(told.text, made.text);
    std::ranges::move(made.files, std::back_inserter(told.files));
    return std::nullopt;
  }

  // Sub-agents by their id, or by their session.
  using Named = std::map<std::pair<std::string_view, std::string>, const Json*>;

  static Named NamedIn(const Json& trajectory) {
    Named named;
    for (const Json& each : ListIn(trajectory, "subagent_trajectories")) {
      for (const char* member : {"trajectory_id", "session_id"})
        named.try_emplace({member, TextMember(each, member)}, &each);
    }
    return named;
  }

  // The sub-agent that a reference names: one of the trajectory that has the reference, or else of the whole. Several
  // may be of one session, whose id counts only if nothing else is named. Null: none.
  const Json* Find(const Json& ref) const {
    const std::string_view member = TextMember(ref, "trajectory_id").empty() ? "session_id" : "trajectory_id";
    const bool is_elsewhere = member == "session_id" && !TextMember(ref, "trajectory_path").empty();
    const std::string id = is_elsewhere ? std::string() : TextMember(ref, member);
    for (const Named* const within : {around_, &of_root_}) {
      const auto found = within->find({member, id});
      if (!id.empty() && found != within->end()) return found->second;
    }
    return nullptr;
  }

  void AddSubAgent(const Json& ref, const std::string& call, int depth, std::vector<MovedMessage>& steps) {
    const Json* const named = depth < kMostTrajectories ? Find(ref) : nullptr;
    if (named == nullptr) return left_out.Add("sub-agent in a file of its own");
    if (call.empty()) return left_out.Add("sub-agent that no call names");
    const Naming here{.record = record, .number = named_here_++};
    if (read_.emplace(named, here).first->second != here) return left_out.Add("sub-agent that is named twice");
    for (MovedMessage& step : StepsOf(*named, depth + 1)) {
      if (step.kind == Kind::kPrompt) continue;
      step.nested = call;
      steps.push_back(std::move(step));
    }
  }

  // Where a sub-agent was first named.
  struct Naming {
    std::size_t record, number;
    bool operator==(const Naming&) const = default;
  };

  const Json trajectory_;
  const std::string model_ = ModelOf(trajectory_);
  const Named of_root_ = NamedIn(trajectory_);
  const Named* around_ = &of_root_;     // of the trajectory whose steps are read
  std::map<const Json*, Naming> read_;  // sub-agents: they may name each other
  std::size_t named_here_ = 0;          // in this record
};

}  // namespace

OpenedDocument OpenAtif(MovedDocument document, const std::string&) {
  auto reader = std::make_unique<AtifReader>(std::move(document.rest));
  return OpenRecords(ElementsOf(document, "steps["), std::move(reader));
}

}  // namespace reprise
