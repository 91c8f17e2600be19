#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doors/conversations.h"
#include "doors/foreign_files.h"
#include "reprise/engine.h"
#include "reprise/message.h"
#include "reprise/model_client.h"
#include "reprise/tool.h"

// Requests of OpenAI's interfaces (Chat Completions, Responses) as types. What their clients may send beyond this is
// taken and has no effect: an agent's sampling and formats, and the client's own tools.
namespace reprise::openai {

struct OpenAiRequest {
  // An agent (`reprise`, `reprise/PROVIDER/NAME`), or a model alone.
  bool is_agent = false;
  std::string asked_model{};  // as the client wrote it
  std::string model{};        // ours, for the engine; empty: the default
  bool stream = false;
  bool include_usage = false;                         // of a chat completion's stream
  bool background = false;                            // of a response
  std::optional<std::uint64_t> starting_after{};      // of a response's stream: the last event that the client has
  bool is_record = false;                             // of a run that has ended, with fewer events than were sent live
  std::optional<std::string> chat_name{};             // that the client gives its conversation
  bool continues = false;                             // what comes is new: the rest is in the chat already
  std::optional<std::string> previous_response_id{};  // of a response
  std::string instructions{};                         // system and developer messages
  std::string metadata = "{}";                        // JSON object, given back

  // What an agent is told: all that was said, and the files of the last message.
  ForeignConversation conversation{};
  std::vector<ForeignFile> files{};

  // What a model alone is told.
  std::vector<Message> messages{};
  struct MessageFile {
    std::size_t message = 0;  // its number
    ForeignFile file;
  };
  std::vector<MessageFile> message_files{};
  std::vector<ToolSpec> tools{};
  // Those of a namespace, by the name that the model knows them by.
  struct NamespacedTool {
    std::string name_space, name;
  };
  std::map<std::string, NamespacedTool> namespaced{};
  std::vector<std::string> namespaces{};      // as they were asked for: JSON objects
  std::vector<std::string> left_out_tools{};  // types of tools that a provider would have to run
  ModelWishes wishes{};
};

// kInvalidArgument (reasons of ParseJson, "invalid_body", "invalid_member", "missing_required_parameter",
// "unsupported_value"); the message names the member.
Result<OpenAiRequest> ParseChatCompletion(std::string_view body);
Result<OpenAiRequest> ParseResponse(std::string_view body);

// Of /v1/conversations and what lies below: turns that were exchanged elsewhere, and what the client keeps with them.
struct ConversationBody {
  std::vector<ForeignTurn> turns{};
  std::optional<std::string> metadata{};  // JSON object
};
// `needs_items`: there must be one.
Result<ConversationBody> ParseConversation(std::string_view body, bool needs_items);

// Ids of responses: "resp_CHAT_int_001". What we number is theirs too.
std::string ResponseId(const InteractionRef& interaction);
std::optional<InteractionRef> ParseResponseId(std::string_view id);

// An error whose details name the parameter that is wrong ("param").
Error ParamError(ErrorCode code, std::string reason, std::string message, std::string_view param);
// ParamError of the kind kInvalidArgument.
inline Error Invalid(std::string reason, std::string message, std::string_view param) {
  return ParamError(ErrorCode::kInvalidArgument, std::move(reason), std::move(message), param);
}

}  // namespace reprise::openai
