#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doors/conversations.h"
#include "doors/door.h"
#include "doors/openai/request_members.h"
#include "reprise/engine.h"
#include "reprise/message.h"
#include "reprise/model_client.h"
#include "reprise/tool.h"

// Requests of OpenAI's interfaces (Chat Completions, Responses) as types. Other members are refused or named
// (LeftOutMembers); for an agent these include sampling, formats and the client's own tools.
namespace reprise::openai {

struct OpenAiRequest {
  Interface interface = Interface::kChatCompletions;
  // True for an agent (`reprise`, `reprise/PROVIDER/NAME`), false for a model alone.
  bool is_agent = false;
  std::string asked_model{};  // as the client wrote it
  std::string model{};        // our name of it, for the engine; empty: the default
  bool stream = false;
  bool include_usage = false;                         // for the stream of a chat completion
  bool background = false;                            // of a response
  std::optional<std::uint64_t> starting_after{};      // for a response's stream: the last event that the client has
  bool is_record = false;                             // of a run that has ended; has fewer events than were sent live
  std::optional<std::string> chat_name{};             // the client's name for its conversation
  bool continues = false;                             // the input is only what is new; the rest is in the chat
  std::optional<std::string> previous_response_id{};  // of a response
  std::string instructions{};                         // system and developer messages
  std::string metadata = "{}";                        // JSON object, returned unchanged
  std::vector<std::string> left_out_members{};        // of the request, which have no effect

  // For an agent: the whole conversation, and the files of the last message.
  ForeignConversation conversation{};
  std::vector<ForeignFile> files{};

  // For a model alone.
  std::vector<Message> messages{};
  struct MessageFile {
    std::size_t message = 0;  // its index
    ForeignFile file;
  };
  std::vector<MessageFile> message_files{};
  std::vector<ToolSpec> tools{};
  // Tools of a namespace, by the name that the model knows.
  struct NamespacedTool {
    std::string name_space, name;
  };
  std::map<std::string, NamespacedTool> namespaced{};
  std::vector<std::string> namespaces{};      // as the client sent them: JSON objects
  std::vector<std::string> left_out_tools{};  // types of tools that only a provider could run
  std::string tool_choice = "\"auto\"";       // JSON, as the client sent it
  ModelWishes wishes{};
};

// kInvalidArgument (reasons of ParseJson, "invalid_body", "invalid_member", "missing_required_parameter",
// "unsupported_value"); the message names the member.
Result<OpenAiRequest> ParseChatCompletion(std::string_view body);
Result<OpenAiRequest> ParseResponse(std::string_view body);

// The body of requests below /v1/conversations: turns that were exchanged elsewhere, and the client's metadata.
struct ConversationBody {
  std::vector<ForeignTurn> turns{};
  std::optional<std::string> metadata{};  // JSON object
};
// `needs_items`: at least one item is required.
Result<ConversationBody> ParseConversation(std::string_view body, bool needs_items);

// Ids of responses: "resp_CHAT_int_001". Our interactions are their responses.
std::string ResponseId(const InteractionRef& interaction);
std::optional<InteractionRef> ParseResponseId(std::string_view id);

// An error whose details name the wrong parameter ("param").
Error ParamError(ErrorCode code, std::string reason, std::string message, std::string_view param);
// A ParamError with kInvalidArgument.
inline Error Invalid(std::string reason, std::string message, std::string_view param) {
  return ParamError(ErrorCode::kInvalidArgument, std::move(reason), std::move(message), param);
}

// Invalid, because the member must be `type`.
Error WrongType(std::string_view param, const char* type);

}  // namespace reprise::openai
