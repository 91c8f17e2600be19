#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/json.h"
#include "domain/codec.h"
#include "domain/transcript/other_formats.h"
#include "domain/transcript/rounds.h"
#include "reprise/version.h"

namespace reprise {
namespace {

constexpr const char* kAtif = "ATIF-v1.7";

Json AtifMetrics(const TokenUsage& usage) {
  Json metrics = {{"prompt_tokens", usage.input_tokens}, {"completion_tokens", usage.output_tokens}};
  if (usage.cache_read_tokens != 0) metrics["cached_tokens"] = usage.cache_read_tokens;
  if (usage.cache_write_tokens != 0) metrics["extra"] = {{"cache_write_tokens", usage.cache_write_tokens}};
  return metrics;
}

// Names that were given, each with the number for its next repetition: what was imported may repeat the id of a call.
using Names = std::map<std::string, int>;

std::string Free(const std::string& name, Names& taken) {
  const auto [known, is_free] = taken.try_emplace(name, 2);
  std::string free = name;
  if (is_free) return free;
  do {
    free = name + "_" + std::to_string(known->second++);
  } while (!taken.try_emplace(free, 2).second);
  return free;
}

class Trajectory {
 public:
  explicit Trajectory(std::string id) : id_(std::move(id)) {}

  bool is_empty() const { return steps_.empty(); }

  void AddStep(const char* source, Timestamp at, std::string message, Json extra = Json::object()) {
    Json step = {{"step_id", steps_.size() + 1},
                 {"timestamp", FormatTimestamp(at)},
                 {"source", source},
                 {"message", std::move(message)}};
    if (!extra.empty()) step["extra"] = std::move(extra);
    steps_.push_back(std::move(step));
  }

  void AddRounds(const std::vector<Round>& rounds, const std::string& model, const Json& extra) {
    for (const Round& round : rounds) {
      AddStep("agent", round.at, round.text, extra);
      Json& step = steps_.back();
      if (!model.empty()) step["model_name"] = model;
      if (!round.thinking.empty()) step["reasoning_content"] = round.thinking;
      AddCalls(step, round, model);
      if (round.usage != TokenUsage()) step["metrics"] = AtifMetrics(round.usage);
      total_ += round.usage;
    }
  }

  Json Take(const std::string& model, Json extra) && {
    Json agent = {{"name", "reprise"}, {"version", REPRISE_VERSION}};
    if (!model.empty()) agent["model_name"] = model;
    Json json = {{"schema_version", kAtif}, {"trajectory_id", id_}, {"agent", std::move(agent)}};
    json["final_metrics"] = {{"total_prompt_tokens", total_.input_tokens},
                             {"total_completion_tokens", total_.output_tokens},
                             {"total_cached_tokens", total_.cache_read_tokens},
                             {"total_steps", steps_.size()}};
    json["steps"] = std::move(steps_);
    if (!of_sub_agents_.empty()) json["subagent_trajectories"] = std::move(of_sub_agents_);
    if (!extra.empty()) json["extra"] = std::move(extra);
    return json;
  }

 private:
  void AddCalls(Json& step, const Round& round, const std::string& model) {
    Json calls = Json::array(), results = Json::array();
    Names ids;
    for (const Round::Call& call : round.calls) {
      const std::string id = Free(call.id, ids);
      Json json = {{"tool_call_id", id}, {"function_name", call.name}};
      json["arguments"] = ArgumentsObject(call);
      if (auto approval = ApprovalOf(call)) json["extra"] = {{"approval", *std::move(approval)}};
      calls.push_back(std::move(json));
      if (!call.has_result && call.of_sub_agent.empty()) continue;
      Json result = {{"source_call_id", id}};
      if (call.has_result) result["content"] = call.result;
      if (call.is_error) result["extra"]["is_error"] = true;
      if (!call.files.empty()) result["extra"]["files"] = ToJson(call.files);
      if (!call.of_sub_agent.empty()) {
        Trajectory below(Free(id_ + "/" + id, ids_of_sub_agents_));
        below.AddRounds(call.of_sub_agent, model, Json::object());
        result["subagent_trajectory_ref"] = Json::array({{{"trajectory_id", below.id_}}});
        of_sub_agents_.push_back(std::move(below).Take(model, Json::object()));
      }
      results.push_back(std::move(result));
    }
    if (!calls.empty()) step["tool_calls"] = std::move(calls);
    if (!results.empty()) step["observation"] = {{"results", std::move(results)}};
  }

  static std::optional<Json> ApprovalOf(const Round::Call& call) {
    if (!call.approved && !call.rejected) return std::nullopt;
    const char* const decision = call.approved               ? "approved"
                                 : call.rejected->superseded ? "withdrawn"  // nobody has rejected it
                                 : call.rejected->expired    ? "expired"
                                                             : "rejected";
    Json json = {{"decision", decision}, {"at", FormatTimestamp(call.answered_at)}};
    const std::string& by = call.approved ? call.approved->answered_by : call.rejected->answered_by;
    if (!by.empty()) json["by"] = by;
    if (call.approved) {
      json["scope"] = call.approved->scope;
      json["arguments_digest"] = call.approved->arguments_digest;
      if (call.approved->tool_input) json["arguments"] = *call.approved->tool_input;
    } else if (call.rejected->feedback) {
      json["feedback"] = *call.rejected->feedback;
    }
    return json;
  }

  const std::string id_;
  TokenUsage total_{};
  Json steps_ = Json::array(), of_sub_agents_ = Json::array();
  Names ids_of_sub_agents_;
};

}  // namespace

std::string FormatAtif(const ChatSummary& summary, const std::vector<AddedInteraction>& branch) {
  Trajectory trajectory(summary.id.str());
  std::string model;
  for (const AddedInteraction& turn : branch) {
    const Interaction& one = turn.interaction;
    const Json extra = {{"interaction", one.id.str()}};
    Json of_user = extra;
    if (!one.attachments.empty()) of_user["files"] = ToJson(one.attachments);
    trajectory.AddStep("user", one.created_at, one.user_message, std::move(of_user));
    for (const AgentEvent& each : one.events) {
      const auto* compacted = std::get_if<event::Compacted>(&each.payload);
      if (compacted == nullptr || compacted->summary.empty()) continue;
      trajectory.AddStep("system", each.at, compacted->summary,
                         {{"interaction", one.id.str()}, {"compacted_messages", compacted->messages}});
    }
    trajectory.AddRounds(RoundsOf(turn), one.model, extra);
    if (one.status != InteractionStatus::kCompleted && IsFinished(one.status)) {
      trajectory.AddStep("system", one.completed_at.value_or(one.created_at), std::string(ToString(one.status)),
                         {{"interaction", one.id.str()}, {"error", one.error ? Json(one.error->code) : Json()}});
    }
    if (!one.model.empty()) model = one.model;
  }
  if (trajectory.is_empty())
    trajectory.AddStep("system", summary.created_at, "");  // a trajectory has at least one step
  return DumpJson(std::move(trajectory).Take(model, {{"title", summary.title}})) + "\n";
}

}  // namespace reprise
