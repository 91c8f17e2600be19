#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "doors/openai/request.h"
#include "reprise/engine.h"
#include "wire/message.h"

// Shows interactions in the forms of OpenAI's Responses: as a response, and as items of a conversation.
namespace reprise::openai {

// The interaction's current response, as one object. `page`: see AgentTranslator.
Result<std::string> ResponseText(Engine& engine, const Interaction& interaction, OpenAiRequest asked,
                                 const std::string& page);

// The user's message, with its files.
Json InputItem(const Interaction& interaction);
// The user's message and the output of the response.
Result<std::vector<Json>> ItemsOf(Engine& engine, const Interaction& interaction, const std::string& page);

// The interaction to which an item's id belongs, with its chat; nullopt if the id is not ours.
std::optional<InteractionRef> InteractionOfItem(std::string_view id);

// The response in the request's path. kNotFound if its id cannot be one of ours.
Result<InteractionRef> ResponseInPath(const Request& request);

}  // namespace reprise::openai
