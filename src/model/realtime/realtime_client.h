#pragma once

#include <stop_token>
#include <string>

#include "model/openai/openai_client.h"

namespace reprise {

// A provider that speaks OpenAI's Realtime interface, by WebSocket. Each request is a session of its own: it tells the
// model the conversation so far, and ends with the model's answer. Never retries.
class RealtimeClient : public OpenAiService {
 public:
  // `transport` must outlive this. `voice`: the provider's name of one; empty: its default.
  RealtimeClient(Transport& transport, OpenAiOptions options, std::string voice)
      : OpenAiService(transport, std::move(options)), voice_(std::move(voice)) {}

  void Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) override;

 private:
  const std::string voice_;
};

}  // namespace reprise
