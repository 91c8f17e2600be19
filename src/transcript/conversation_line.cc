#include "transcript/conversation_line.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "domain/codec.h"

namespace reprise {
namespace {

Json PlainMessage(Message message) {
  const auto extras = ParseJson(message.extras.empty() ? "{}" : message.extras, 2 * kMaxJsonDepth);
  message.extras.clear();
  message.parts.clear();  // other programs do not know our files; the text names them
  Json json = ToJson(message);
  // Content in parts counts as content.
  if (!message.content && extras && extras->is_object() && extras->contains("content"))
    json["content"] = (*extras)["content"];
  return json;
}

}  // namespace

std::string ConversationLine(const AgentState& state) {
  Json messages = Json::array();
  for (const Message& message : state.messages) messages.push_back(PlainMessage(message));
  return DumpJson(Json{{"messages", std::move(messages)}}) + "\n";
}

}  // namespace reprise
