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
#include "reprise/event.h"
#include "reprise/file_store.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// How much a model thinks before it answers, where the provider lets us say so.
enum class ThinkingMode {
  kDefault,   // thinks where it is known to be able to, as much as it sees fit
  kOff,       // nothing is said about thinking
  kAdaptive,  // as much as the model sees fit
  kBudget,    // up to a number of tokens
};

// How much a model is asked to reason. kDefault: as its provider sees fit.
enum class Effort { kDefault, kNone, kLow, kMedium, kHigh };
constexpr std::string_view ToString(Effort effort) {
  constexpr std::string_view kNames[] = {"default", "none", "low", "medium", "high"};
  return kNames[static_cast<int>(effort)];
}

// For how long its provider is asked to keep what a request begins with, so that the next one costs less.
enum class PromptCache {
  kDefault,  // as kShort where providers are known to take what that says
  kNone,     // nothing is said about it
  kShort,    // as long as is usual: minutes
  kLong,     // as long as it can: an hour or a day
};

// What a model takes and does, of what not every model does. nullopt: not known.
struct ModelAbilities {
  std::optional<bool> tools{};      // calls them
  std::optional<bool> images{};     // takes pictures as parts of a message
  std::optional<bool> pdf{};        // takes PDF files as parts of a message
  std::optional<bool> audio{};      // takes recordings as parts of a message
  std::optional<bool> reasoning{};  // thinks before it answers
  bool operator==(const ModelAbilities&) const = default;
};

// Their names, as the configuration and GET /models have them.
struct AbilityName {
  std::string_view name;
  std::optional<bool> ModelAbilities::*member;
};
inline constexpr AbilityName kAbilityNames[] = {{"tools", &ModelAbilities::tools},
                                                {"images", &ModelAbilities::images},
                                                {"pdf", &ModelAbilities::pdf},
                                                {"audio", &ModelAbilities::audio},
                                                {"reasoning", &ModelAbilities::reasoning}};

// What is known about a model. Zero: not known.
struct ModelFacts {
  std::int64_t context_window = 0;     // tokens, of request and response together
  std::int64_t max_output_tokens = 0;  // of one response
  ThinkingMode thinking = ThinkingMode::kDefault;
  std::int64_t thinking_budget = 0;  // tokens, with kBudget
  Effort effort = Effort::kDefault;
  ModelAbilities abilities{};
  PromptCache cache = PromptCache::kDefault;
  bool operator==(const ModelFacts&) const = default;
};

// A model as its provider lists it.
struct ListedModel {
  std::string name;                 // the provider's own
  std::int64_t context_window = 0;  // tokens; 0: the provider does not say
  ModelAbilities abilities{};
  std::optional<ModelPrice> price{};
  bool operator==(const ListedModel&) const = default;
};

// How much a model may say: text, thinking, tool calls and what is kept for the provider, in bytes. Beyond that a
// response fails with the reason response_too_large.
inline constexpr std::size_t kMaxResponseBytes = 8u << 20;
inline constexpr std::size_t kMaxInteractionBytes = 32u << 20;  // all responses of one interaction

// Where a client sends its requests, for those who watch.
struct ModelService {
  std::string provider{};  // whose interface it is: "openai", "anthropic"
  std::string address{};   // empty: nowhere
  std::int64_t port = 0;
};

// What of the parts of messages (MessagePart) goes into one request as it is. The rest is told in text.
struct PartLimits {
  std::uint64_t image_bytes = 5ull << 20;  // of one image: what Anthropic takes
  std::uint64_t request_bytes =
      22ull << 20;  // of all parts: in base64 a little less than the 32 MB that providers take
  std::size_t images = 100;
  std::int64_t pages = 100;  // of one PDF
  bool operator==(const PartLimits&) const = default;
};

// What somebody who asks a model alone wishes of its answer. A provider is told what its interface has of it.
struct ModelWishes {
  std::optional<double> temperature{}, top_p{};
  std::int64_t max_output_tokens = 0;  // 0: as many as is usual
  std::vector<std::string> stop{};     // the answer ends before one of these
  enum class Format { kText, kJson, kSchema };
  Format format = Format::kText;
  std::string schema{}, schema_name{};  // of kSchema: JSON text, and a name for it
  bool strict = false;                  // the answer has to satisfy the schema
  bool must_call = false;               // a tool
  std::string must_call_tool{};         // this one; empty: any
  bool operator==(const ModelWishes&) const = default;
};

struct ModelRequest {  // read by Generate before it returns
  std::string model;   // the provider's own name for it, without the "provider/" prefix
  Messages messages;
  const std::vector<ToolSpec>& tools;
  std::string_view system = {};  // the system prompt, before all messages; empty: none
  // Of the response; less than kMaxResponseBytes when the interaction has not so much left.
  std::size_t max_response_bytes = kMaxResponseBytes;
  std::string traceparent = {};  // the span that the request is; empty: the provider is not told
  // Where the bytes of parts are read, one file at a time; null: the messages have none. One that cannot be read is
  // told in text.
  FilesOfChat* files = nullptr;
  const ModelWishes* wishes = nullptr;  // null: none
  // Ids of calls that were made before, which no call of the response may have: some providers count anew in each.
  std::vector<std::string> used_call_ids = {};
};

// What a response holds beside its text and thinking, which went through the ModelStream and are kept nowhere else.
struct ModelResponse {
  std::vector<ToolCall>
      tool_calls;  // complete and in the order of their index; ids unique, not used before and not empty
  TokenUsage usage;
  // Provider extras of the assistant message (JSON object text, see Message::extras); empty if none.
  std::string extras;
  // Why the text is not whole, a word of event::Answer::reason or the provider's own; empty: the model came to its end.
  std::string truncated = {};
  std::string model = {};  // that has answered, as the provider says; empty: it says nothing
};

// `retry_after` of a failure that the client has learned from: it makes the next request of this kind in another way
// (without a tool or a member that was refused, say). Such a request is sent again at once, and is no retry.
inline constexpr std::chrono::milliseconds kAskAgainAtOnce{1};
inline constexpr int kMostLessons = 64;  // that one request may teach
inline bool IsWorthAskingAgain(const Error& error) { return error.retryable && error.retry_after == kAskAgainAtOnce; }

// A tool that requests to a model leave out.
struct LeftOutTool {
  std::string tool, model;
  std::string reason;  // for people: the provider's words, or its limit
  bool operator==(const LeftOutTool&) const = default;
};

// Receives a response while the model writes it. Called on the client's own thread, never two calls at once, and not
// after the response is done. Must not block: this thread serves every other stream as well.
class ModelStream {
 public:
  virtual ~ModelStream() = default;
  virtual void OnThinking(std::string_view delta) = 0;
  virtual void OnText(std::string_view delta) = 0;
  // All that one read from the network brought has been handed over.
  virtual void OnBatchEnd() = 0;
};

// Talks to one LLM provider. Thread-safe: any number of requests may be under way.
class ModelClient {
 public:
  virtual ~ModelClient() = default;

  using Done = std::function<void(Result<ModelResponse>)>;
  // Sends the request and returns at once: a model that writes for minutes holds no thread. `stream` must live until
  // `done` is called, which happens exactly once, on the client's own thread (so it must not block) or, for a request
  // that cannot be sent at all, within this call: when the response is complete, `stop` is requested (kCancelled,
  // within milliseconds) or it fails. Failures: kProvider, kUnavailable (cannot connect), kDeadlineExceeded (connect or
  // idle time-out); the reason is one of provider_auth, provider_rate_limited, provider_bad_request,
  // provider_context_length, provider_not_found, provider_overloaded, provider_unreachable, provider_timeout,
  // provider_protocol, provider_error, response_too_large, provider_output_limit (cut off in the middle of a tool
  // call). A response whose connection was cut off is an error: half of a tool call's arguments is never returned.
  virtual void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) = 0;

  virtual ModelService service() const { return {}; }

  // Models that are known without asking the provider; may be empty.
  virtual std::vector<std::string> KnownModels() const { return {}; }
  // The tools that its requests leave out, by the provider's own names of the models.
  virtual std::vector<LeftOutTool> LeftOutTools() const { return {}; }

  using Listed = std::function<void(Result<std::vector<ListedModel>>)>;
  // Asks the provider which models it has. Returns at once; `done` is called exactly once, as that of Generate, with
  // the same failures. A client that has nobody to ask gives an empty list.
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
    std::string model;      // what ModelRequest::model takes
    std::string full_name;  // "openai/gpt-4o-mini", "offline"
    // Tokens that request and response may have together: what the configuration says, else what the provider has
    // listed, else what is built in. 0: not known.
    std::int64_t context_window = 0;
    ModelAbilities abilities{};  // likewise
  };
  // kInvalidArgument (reason "unknown_model") for a provider that is not configured. An empty name is the default
  // model. Does not touch the network.
  virtual Result<Resolved> Resolve(std::string_view name) const = 0;
  virtual const std::string& default_model() const = 0;
  struct Entry {
    std::string name, provider;
    std::int64_t context_window = 0;  // 0: not known
    ModelAbilities abilities{};
    std::optional<ModelPrice> price{};  // as the provider lists it
  };
  // What is configured, and what the providers that can be asked have. Blocks until they have answered, for a few
  // seconds at most; what they said is remembered for some minutes.
  virtual std::vector<Entry> List() const = 0;
  // The tools that requests leave out, by full names of models. Does not touch the network.
  virtual std::vector<LeftOutTool> LeftOutTools() const { return {}; }
};

}  // namespace reprise
