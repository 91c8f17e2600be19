#include "blame/blamed_lines.h"

#include <nlohmann/json.hpp>

#include "reprise/timestamp.h"

namespace reprise {

std::vector<BlamedLines> LinesInARow(const std::vector<const ChangingCall*>& origins, std::size_t from,
                                     std::size_t to) {
  std::vector<BlamedLines> all;
  for (std::size_t i = from; i < to; ++i) {
    if (!all.empty() && all.back().call == origins[i]) {
      all.back().to = i + 1;
    } else {
      all.push_back({i + 1, i + 1, origins[i]});
    }
  }
  return all;
}

std::string AllowedBy(const ChangingCall& call) {
  if (call.approval) return call.approval->answer.answered_by.empty() ? "you" : call.approval->answer.answered_by;
  if (call.permission.empty()) return "unknown";
  return call.permission == "grant" || call.permission == "standing_grant" ? "grant" : "auto";
}

Json ToJson(const BlamedLines& lines) {
  Json json = {{"from", lines.from}, {"to", lines.to}, {"by", lines.call == nullptr ? "others" : "agent"}};
  if (lines.call == nullptr) return json;
  const ChangingCall& call = *lines.call;
  json["chat_id"] = call.chat.str();
  json["interaction_id"] = call.interaction.str();
  json["call_id"] = call.id;
  json["tool"] = call.tool;
  json["model"] = call.model;
  json["at"] = FormatTimestamp(call.at);
  json["read_before"] = call.read_before;
  Json& approval = json["approval"] = {{"by", AllowedBy(call)}};
  if (!call.approval) {
    approval["reason"] = call.permission.empty() ? Json() : Json(call.permission);
    return json;
  }
  const event::Approved& answer = call.approval->answer;
  approval["approval_id"] = answer.approval_id;
  approval["at"] = FormatTimestamp(call.approval->at);
  approval["scope"] = answer.scope;
  approval["arguments_digest"] = answer.arguments_digest;
  approval["terms_digest"] = call.approval->terms_digest;
  return json;
}

}  // namespace reprise
