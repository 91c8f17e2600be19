#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "doors/openai/request.h"
#include "reprise/engine.h"
#include "wire/message.h"

// Interactions as OpenAI's Responses tells what is there: as a response, and as the items of a conversation.
namespace reprise::openai {

// The response that an interaction is now, as one object. `page`: see AgentTranslator.
Result<std::string> ResponseText(Engine& engine, const Interaction& interaction, OpenAiRequest asked,
                                 const std::string& page);

// What the user has said, with the files that came with it.
Json InputItem(const Interaction& interaction);
// That, and the output of the response.
Result<std::vector<Json>> ItemsOf(Engine& engine, const Interaction& interaction, const std::string& page);

// The interaction that an item's id is of, with its chat; nullopt: it is none of ours.
std::optional<InteractionRef> InteractionOfItem(std::string_view id);

// The response that the request's path names. kNotFound if its id cannot be one of ours.
Result<InteractionRef> ResponseInPath(const Request& request);

}  // namespace reprise::openai
