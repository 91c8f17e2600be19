#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/event.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

struct ModelRequest {  // read by Generate before it returns
  std::string model;   // the provider's own name for it, without the "provider/" prefix
  const std::vector<Message>& messages;
  const std::vector<ToolSpec>& tools;
};

// What a response holds beside its text and thinking, which went through the ModelStream and are kept nowhere else.
struct ModelResponse {
  std::vector<ToolCall> tool_calls;  // complete and in the order of their index; ids unique and not empty
  TokenUsage usage;
  // Provider extras of the assistant message (JSON object text, see Message::extras); empty if none.
  std::string extras;
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
  // provider_protocol, provider_error. A response that was cut off is an error: half of a tool call's arguments is
  // never returned.
  virtual void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) = 0;

  // Models the provider offers by itself, for GET /models; may be empty. Must not touch the network.
  virtual std::vector<std::string> KnownModels() const { return {}; }
};

// Finds the client for "provider/model" names. Immutable after construction.
class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  struct Resolved {
    ModelClient* client;    // owned by the directory
    std::string model;      // what ModelRequest::model takes
    std::string full_name;  // "openai/gpt-4o-mini", "offline"
  };
  // kInvalidArgument (reason "unknown_model") for a provider that is not configured. An empty name is the default
  // model.
  virtual Result<Resolved> Resolve(std::string_view name) const = 0;
  virtual const std::string& default_model() const = 0;
  struct Entry {
    std::string name, provider;
  };
  virtual std::vector<Entry> List() const = 0;
};

}  // namespace reprise
