#pragma once

#include "base/serial_queue.h"
#include "reprise/model_client.h"

namespace reprise {

// A model without a network: it follows the commands in the last user message (see OfflineHelp), one line per round,
// and then answers with what the tools said. Deterministic and without state: the same messages give the same response.
// Answers word by word through the stream without waiting between the words; stops between two of them. Tokens are
// counted as words. One thread writes all its responses, one after the other.
class OfflineClient : public ModelClient {
 public:
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override;

 private:
  SerialQueue queue_;
};

}  // namespace reprise
