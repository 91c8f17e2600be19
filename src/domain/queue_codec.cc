#include <nlohmann/json.hpp>

#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {

Json ToJson(const QueuedMessage& message) {
  Json json = {{"id", message.id},
               {"user_message", message.user_message},
               {"model", message.model.empty() ? Json(nullptr) : Json(message.model)},
               {"on_disconnect", message.on_disconnect == OnDisconnect::kContinue ? "continue" : "cancel"},
               {"created_at", FormatTimestamp(message.created_at)}};
  if (message.request) json["request"] = ToJson(*message.request);
  return json;
}

Result<QueuedMessage> QueuedMessageFromJson(const Json& json) {
  JsonReader reader(json, "message");
  QueuedMessage message{.id = reader.String("id"), .user_message = reader.String("user_message")};
  message.model = reader.OptionalString("model").value_or("");
  const std::string on_disconnect = reader.String("on_disconnect");
  if (on_disconnect == "continue") {
    message.on_disconnect = OnDisconnect::kContinue;
  } else if (on_disconnect != "cancel") {
    reader.Reject("on_disconnect");
  }
  message.created_at = reader.Time("created_at");
  if (const Json* request = reader.Find("request")) message.request = reader.Take(ClientRequestFromJson(*request), {});
  if (reader.error()) return Fail(*reader.error());
  return message;
}

}  // namespace reprise
