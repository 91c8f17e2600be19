#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/file_store.h"
#include "reprise/message.h"

namespace reprise {

// A provider's demands on a request's messages.
struct HistoryForm {
  bool unique_call_ids = false;  // call ids are unique in the whole conversation
  bool joins_users = false;      // consecutive user messages become one
  bool joins_answers = false;    // likewise consecutive answers
  // The provider whose answers hold blocks (kBlocks): one with the provider's own calls says something even without
  // text, and one with blocks is not joined, which would mix up their places. Empty: none.
  std::string_view with_blocks_of = {};
};

// The messages in a form that any provider accepts; nullopt if they already are. Empty answers are left out; empty
// texts get a placeholder; each call is followed by its one result; a result without a call becomes text. So no stored
// message can make every later request of a chat fail.
std::optional<Messages> MendHistory(const Messages& messages, const HistoryForm& form = {});

// A name or id with the characters and length that providers accept. A longer one ends in its hash.
std::string SentName(std::string_view name, std::size_t longest);
// An id of exactly nine letters and digits, as Mistral requires.
std::string ShortCallId(std::string_view id);

// The member of Message::extras that holds an answer's data beside its text and calls, by the name of the provider that
// wrote it. It is sent back only to that provider, for any of its models:
//
//   "provider_extras": {"deepseek": {"message": {"reasoning_content": "..."},
//                                    "tool_calls": {"call_1": {"extra_content": {...}, "function": {...}}}}}
//   "provider_extras": {"anthropic": {"blocks": [...]}}   (see below)
inline constexpr std::string_view kProviderExtras = "provider_extras";

// Message::extras of an answer of `provider` with these members; empty if there are none.
std::string MakeProviderExtras(std::string_view provider, Json members);

// Message::extras as an object; empty if it is not one.
Json ParseExtras(const Message& message);

// The part of `extras` for `provider`, an object; null if there is none.
const Json* FindProviderExtras(const Json& extras, std::string_view provider);

// A call's arguments in a form that can be sent back: unchanged if they are a JSON object. Models also write nothing,
// truncated JSON, or other JSON, and many servers that parse it would reject the conversation from then on. So "" is
// sent as {}, and anything else as {"not_valid_json": "..."}.
std::string SentArguments(const std::string& arguments);

// A part's content for a request.
struct PartContent {
  std::string bytes;
  std::string problem{};  // why it is missing, for the model: "(\"x.png\" cannot be sent: ...)"; empty: it is there
};
// Reads the content from the chat's files; `files` may be null.
PartContent ReadPart(const MessagePart& part, FilesOfChat* files);

// Appends "data:TYPE;base64,..." as a JSON string.
void AppendDataUrl(std::string& out, const MessagePart& part, std::string_view bytes);
// Appends the bytes in base64 as a JSON string.
void AppendBase64String(std::string& out, std::string_view bytes);

// The providers' name for a recording's format; empty if they do not accept this type.
std::string_view AudioFormat(const MessagePart& part);

// Approximate size of all messages' parts in a request.
std::size_t EncodedSize(const Messages& messages);

// The member of the provider's extras that holds the order and the signed parts of an Anthropic
// answer:
//
//             "blocks": [{"type":"thinking","thinking":"...","signature":"..."},
//                        {"type":"redacted_thinking","data":"..."},
//                        {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"..."}},
//                        {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[...]},
//                        {"type":"text","bytes":12,"citations":[...]}, {"type":"tool_use"}]
//
// Thinking, the provider's own calls with their results, and citations are kept unchanged, because the provider accepts
// them back only unchanged and in their places. Text and calls stand in the message itself; their blocks give the
// number of bytes of its content, or refer to the next of its calls.
inline constexpr std::string_view kBlocks = "blocks";
// The same as version 0.1 stored it, beside provider_extras. It does not name the provider, so it goes to any provider
// of this type.
inline constexpr std::string_view kAnthropicBlocks = "anthropic_blocks";

// One block of an answer.
struct AnthropicBlock {
  enum class Kind { kText, kToolUse, kVerbatim };
  Kind kind = Kind::kText;
  std::size_t text_bytes = 0;  // kText; npos: all the rest
  std::string json{};          // kVerbatim: the block, unchanged; kText: its citations, an array; empty: none
  // kVerbatim: the id of the provider's own call that it is, or whose result it is; else empty.
  std::string own_call{}, own_result{};
  bool is_of_search() const { return !own_call.empty() || !own_result.empty(); }
};

// The extras of an assistant message with these blocks; empty if they add nothing to the message.
std::string ExtrasOf(const std::vector<AnthropicBlock>& blocks, std::string_view provider);

// Whether an answer has calls that `provider` has run itself, or their results.
bool HasOwnCalls(const Message& message, std::string_view provider);

// The blocks of an assistant message for `provider`. If it has none for this provider (another one wrote it), or its
// blocks no longer fit its text and calls, the blocks are built from its stored thinking, text and calls.
std::vector<AnthropicBlock> BlocksOf(const Message& message, std::string_view provider);

}  // namespace reprise
