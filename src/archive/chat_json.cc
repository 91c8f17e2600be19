#include "archive/chat_json.h"

#include <nlohmann/json.hpp>

#include "archive/head_branch.h"
#include "domain/codec.h"

namespace reprise {

Json ChatToJson(const Chat& chat, bool all_branches) {
  const auto branch = HeadBranch(chat);
  Json json = ToJson(chat.summary);
  Json& interactions = json["interactions"] = Json::array();
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all_branches) continue;
    interactions.push_back(ToJson(interaction));
    if (all_branches) interactions.back()["superseded"] = superseded;
  }
  for (const DamagedInteraction& damaged : chat.damaged) {
    json["damaged"].push_back(ToJson(damaged));
  }
  return json;
}

}  // namespace reprise
