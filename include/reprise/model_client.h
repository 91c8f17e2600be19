#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/accounting.h"
#include "reprise/effort.h"
#include "reprise/event.h"
#include "reprise/file_store.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// How much a model thinks before it answers, where the provider has a setting for it.
enum class ThinkingMode {
  kDefault,   // as much as the model sees fit, if it is known to think
  kOff,       // the request says nothing about thinking
  kAdaptive,  // as much as the model sees fit
  kBudget,    // up to a number of tokens
};

// How long the provider is asked to cache the beginning of a request, so that the next one costs less.
enum class PromptCache {
  kDefault,  // as kShort where the provider is known to accept that
  kNone,     // the request says nothing about it
  kShort,    // the usual time: minutes
  kLong,     // the longest time: an hour or a day
};

// How a model is used to edit files; it is told of the tool for that. kDefault: kEdits.
enum class EditFormat {
  kDefault,
  kEdits,  // edit_file: old and new pieces of text
  kPatch,  // apply_patch: the patches that OpenAI trains its models on
};

// Abilities that not every model has. nullopt: unknown.
struct ModelAbilities {
  std::optional<bool> tools{};      // calls them
  std::optional<bool> images{};     // takes pictures as message parts
  std::optional<bool> pdf{};        // takes PDF files as message parts
  std::optional<bool> audio{};      // takes recordings as message parts
  std::optional<bool> reasoning{};  // thinks before it answers
  bool operator==(const ModelAbilities&) const = default;
};

// Names of abilities, as in the configuration and GET /models.
struct AbilityName {
  std::string_view name;
  std::optional<bool> ModelAbilities::*member;
};
inline constexpr AbilityName kAbilityNames[] = {{"tools", &ModelAbilities::tools},
                                                {"images", &ModelAbilities::images},
                                                {"pdf", &ModelAbilities::pdf},
                                                {"audio", &ModelAbilities::audio},
                                                {"reasoning", &ModelAbilities::reasoning}};

// Facts about a model. Zero: unknown.
struct ModelFacts {
  std::int64_t context_window = 0;     // tokens, of request and response together
  std::int64_t max_output_tokens = 0;  // of one response
  ThinkingMode thinking = ThinkingMode::kDefault;
  std::int64_t thinking_budget = 0;  // tokens, with kBudget
  Effort effort = Effort::kDefault;
  ModelAbilities abilities{};
  PromptCache cache = PromptCache::kDefault;
  EditFormat edit_format = EditFormat::kDefault;
  bool operator==(const ModelFacts&) const = default;
};

// A model as its provider lists it.
struct ListedModel {
  std::string name;                 // the provider's own
  std::int64_t context_window = 0;  // tokens; 0: not listed
  ModelAbilities abilities{};
  std::optional<ModelPrice> price{};
  bool operator==(const ListedModel&) const = default;
};

// Limit of one response in bytes: text, thinking, tool calls and provider extras. A longer one fails with the reason
// response_too_large.
inline constexpr std::size_t kMaxResponseBytes = 8u << 20;
inline constexpr std::size_t kMaxSoundBytes = 16u << 20;        // the sound of one response: five minutes
inline constexpr std::size_t kMaxInteractionBytes = 32u << 20;  // all responses of one interaction

// Where a client sends its requests, for telemetry.
struct ModelService {
  std::string provider{};  // the interface's owner: "openai", "anthropic"
  std::string address{};   // empty: nowhere
  std::int64_t port = 0;
};

// Which message parts (MessagePart) a request holds in their own format. The others become text.
struct PartLimits {
  std::uint64_t image_bytes = 5ull << 20;     // of one image: Anthropic's limit
  std::uint64_t request_bytes = 22ull << 20;  // of all parts: in base64 just below the 32 MB that providers take
  std::size_t images = 100;
  std::int64_t pages = 100;  // of one PDF
  bool operator==(const PartLimits&) const = default;
};

// Wishes for the answer to a question without a chat. Providers get those that their interface has.
struct ModelWishes {
  std::optional<double> temperature{}, top_p{};
  std::int64_t max_output_tokens = 0;  // 0: the usual number
  std::vector<std::string> stop{};     // each ends the answer before it
  enum class Format { kText, kJson, kSchema };
  Format format = Format::kText;
  std::string schema{}, schema_name{};  // of kSchema: JSON text, and a name for it
  bool strict = false;                  // the answer must satisfy the schema
  bool must_call = false;               // requires a tool call
  std::string must_call_tool{};         // of this tool; empty: any
  bool operator==(const ModelWishes&) const = default;
};

// Wishes that a provider's interface, or a model, may not have.
enum class Wish { kTemperature, kTopP, kMaxOutputTokens, kStop, kFormat, kForcedCall };

struct ModelRequest {  // read by Generate before it returns
  std::string model;   // the provider's own name, without the "provider/" prefix
  Messages messages;
  const std::vector<ToolSpec>& tools;
  std::string_view system = {};  // the system prompt, before all messages; empty: none
  // For the response; less than kMaxResponseBytes near the interaction's limit.
  std::size_t max_response_bytes = kMaxResponseBytes;
  std::string traceparent = {};  // of the request's span; empty: not sent to the provider
  // Source of part bytes, read one file at a time; null: no message has parts. An unreadable file becomes text.
  FilesOfChat* files = nullptr;
  const ModelWishes* wishes = nullptr;  // null: none
  Effort effort = Effort::kDefault;     // kDefault: as the model is configured
  // Ids of earlier calls, which no call of the response may reuse: some providers count anew in each response.
  std::vector<std::string> used_call_ids = {};
  // Called within Generate with the body as it is sent, byte for byte and without credentials, if there is one.
  std::function<void(std::string_view body)> sent = {};
  // Only `sent` is wanted: nothing is sent, and the response is kCancelled (for clients with makes_drafts()).
  bool is_draft = false;
  // Offers the provider's own web search, if the client is configured to (WebSearchOptions).
  bool may_search = false;
};

// A response without its text and thinking, which went through the ModelStream and are stored nowhere else.
struct ModelResponse {
  std::vector<ToolCall> tool_calls;  // complete, ordered by index; ids unique, new and not empty
  TokenUsage usage;
  // Provider extras of the assistant message (JSON object text, see Message::extras); empty if none.
  std::string extras;
  // Why the text is truncated, a word of event::Answer::reason or the provider's own; empty: the answer is whole.
  std::string truncated = {};
  std::string model = {};                       // that answered, according to the provider; empty: not stated
  std::vector<event::WebSearch> searches = {};  // by the provider
  std::vector<Citation> citations = {};         // in the text
  // The provider has paused and wants the response back at the end of the next request, to go on with it. There are no
  // calls, and perhaps no text.
  bool pauses = false;
};

// `retry_after` of a failure that taught the client to send the next request differently (for example without a
// rejected tool or member). The request is repeated at once, which is not counted as a retry.
inline constexpr std::chrono::milliseconds kAskAgainAtOnce{1};
inline constexpr int kMostLessons = 64;  // of one request
inline bool IsWorthAskingAgain(const Error& error) { return error.retryable && error.retry_after == kAskAgainAtOnce; }

// A tool that is omitted from requests to a model.
struct LeftOutTool {
  std::string tool, model;
  std::string reason;  // for people: the provider's words, or its limit
  bool operator==(const LeftOutTool&) const = default;
};

inline constexpr std::size_t kMaxRequestId = 128;

// Receives a response while the model writes it. Called on the client's own thread, one call at a time, never after the
// response is done. Must not block: this thread serves all other streams too.
class ModelStream {
 public:
  virtual ~ModelStream() = default;
  virtual void OnThinking(std::string_view delta) = 0;
  virtual void OnText(std::string_view delta) = 0;
  // Text with which the model declines to answer. The response is then truncated by "refusal".
  virtual void OnRefusal(std::string_view delta) { OnText(delta); }
  // The model speaks: samples as in base/wav.h. OnText gets the words.
  virtual void OnSound(std::string_view /*samples*/) {}
  // The provider's own name for the request, which its support asks for: visible ASCII characters, at most
  // kMaxRequestId. At most once, before everything else; of a failed request too.
  virtual void OnRequestId(std::string_view /*id*/) {}
  // The response has content, perhaps only a call. At most once.
  virtual void OnContent() {}
  // All data of one network read has been delivered.
  virtual void OnBatchEnd() = 0;
};

// Talks to one LLM provider. Thread-safe: any number of requests may be in flight.
//
//   struct Parrot : reprise::ModelClient {
//     void Generate(const reprise::ModelRequest& request, reprise::ModelStream& stream, std::stop_token,
//                   Done done) override {
//       stream.OnText(request.messages.back().content.value_or(""));
//       done(reprise::ModelResponse{});
//     }
//   };
class ModelClient {
 public:
  virtual ~ModelClient() = default;

  using Done = std::function<void(Result<ModelResponse>)>;
  // Sends the request and returns at once, so a slow model holds no thread. `stream` must live until `done` is called.
  // `done` is called exactly once, on the client's own thread (so it must not block) or, if the request cannot be sent
  // at all, within this call: when the response is complete, `stop` is requested (kCancelled, within milliseconds) or
  // it fails. Failures: kProvider, kUnavailable (cannot connect), kDeadlineExceeded (connect or idle time-out); the
  // reason is one of provider_auth, provider_rate_limited, provider_bad_request, provider_context_length,
  // provider_not_found, provider_overloaded, provider_unreachable, provider_timeout, provider_protocol, provider_error,
  // response_too_large, provider_output_limit (cut off within a tool call). A lost connection is an error: partial
  // arguments of a tool call are never returned.
  virtual void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) = 0;

  virtual ModelService service() const { return {}; }
  // Whether it heeds ModelRequest::is_draft.
  virtual bool makes_drafts() const { return false; }

  // Those of the wishes that a request to this model leaves out, as far as that is known before it.
  virtual std::vector<Wish> LeftOut(const std::string& model, const ModelWishes& wishes) const {
    static_cast<void>(model), static_cast<void>(wishes);
    return {};
  }

  // Models known without a request to the provider; may be empty.
  virtual std::vector<std::string> KnownModels() const { return {}; }
  // The tools omitted from its requests; models by the provider's own names.
  virtual std::vector<LeftOutTool> LeftOutTools() const { return {}; }

  using Listed = std::function<void(Result<std::vector<ListedModel>>)>;
  // Asks the provider for its models. Returns at once; `done` is called exactly once, as by Generate, with the same
  // failures. A client without a provider returns an empty list.
  virtual void ListModels(std::stop_token stop, Listed done) {
    static_cast<void>(stop);
    done(std::vector<ListedModel>());
  }
};

// Finds the client for "provider/model" names. Thread-safe.
class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  struct Resolved {
    ModelClient* client;    // owned by the directory
    std::string model;      // for ModelRequest::model
    std::string full_name;  // "openai/gpt-4o-mini", "offline"
    // Tokens of request and response together: from the configuration, else from the provider's list, else built in. 0:
    // unknown.
    std::int64_t context_window = 0;
    ModelAbilities abilities{};  // likewise
    EditFormat edit_format = EditFormat::kDefault;
  };
  // An empty name is the default model. kInvalidArgument (reason "unknown_model"): the provider is not configured. No
  // network access.
  virtual Result<Resolved> Resolve(std::string_view name) const = 0;
  virtual const std::string& default_model() const = 0;
  struct Entry {
    std::string name, provider;
    std::int64_t context_window = 0;  // 0: unknown
    ModelAbilities abilities{};
    std::optional<ModelPrice> price{};  // from the provider's list
  };
  // Configured models, and the models that providers list. Blocks a few seconds at most for the providers; their
  // answers are cached for some minutes.
  virtual std::vector<Entry> List() const = 0;
  // The tools omitted from requests, by full model names. No network access.
  virtual std::vector<LeftOutTool> LeftOutTools() const { return {}; }
};

}  // namespace reprise
