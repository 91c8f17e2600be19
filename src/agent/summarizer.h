#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "reprise/message.h"
#include "reprise/model_client.h"

namespace reprise {

// Has a model sum up messages that it will not be sent any more. One object per summary.
class Summarizer {
 public:
  struct Task {
    const AgentState& state;  // its own summary, if it has one, is part of what is summed up
    const Compaction& extent;
    std::size_t max_bytes;          // of the summary
    std::size_t max_request_bytes;  // of what is sent for it
  };
  // The text: at most max_bytes, valid UTF-8; empty if the model did not manage.
  using Done = std::function<void(std::string text, TokenUsage usage)>;

  Summarizer();
  ~Summarizer();
  Summarizer(const Summarizer&) = delete;
  Summarizer& operator=(const Summarizer&) = delete;

  // Returns at once. `task` is read within this call; `done` is called exactly once, as that of ModelClient::Generate,
  // and until then this must live.
  void Start(ModelClient& model, const std::string& model_name, const Task& task, Done done);
  // Ends it early. What stop() gives can do so later, when this is gone as well.
  const std::shared_ptr<std::stop_source>& stop() const { return stop_; }

 private:
  class Collector;
  const std::shared_ptr<std::stop_source> stop_ = std::make_shared<std::stop_source>();
  std::unique_ptr<Collector> collector_;
};

}  // namespace reprise
