#include <nlohmann/json.hpp>

#include "domain/codec.h"
#include "reprise/replay.h"

namespace reprise {
namespace {

Json ToJson(const std::optional<AgentEvent>& event) { return event ? ToJson(*event) : Json(nullptr); }

}  // namespace

Json ToJson(const ReplayReport& report) {
  Json json = {{"match", !report.divergence}, {"events", report.events}, {"divergence", nullptr}};
  if (const auto& found = report.divergence) {
    json["divergence"] = {{"seq", found->seq},
                          {"expected", ToJson(found->expected)},
                          {"actual", ToJson(found->actual)},
                          {"reason", found->reason}};
  }
  return json;
}

}  // namespace reprise
