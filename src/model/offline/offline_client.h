#pragma once

#include <cstddef>
#include <deque>

#include "base/mutex.h"
#include "model/offline/paced_writer.h"
#include "reprise/model_client.h"

namespace reprise {

struct OfflineOptions {
  bool asks_people = true;  // the demonstration asks a question; false: nobody is there to answer
};

// A model without a network: it follows the commands in the last user message (see OfflineHelp), one line per round,
// and then answers with what the tools said. Deterministic: the same messages give the same response, but for a failure
// that is to pass, which it remembers. Answers word by word through the stream; stops between two of them. Tokens are
// counted as words. One thread writes all its responses.
class OfflineClient : public ModelClient {
 public:
  explicit OfflineClient(OfflineOptions options = {}) : options_(options) {}

  ModelService service() const override { return {.provider = "reprise.offline"}; }
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override;

 private:
  // A request that was failed once. The run that sent it is told by its stop token.
  struct FailedOnce {
    std::size_t digest;
    std::stop_token run;
  };
  bool IsFirstAttempt(const ModelRequest& request, const std::stop_token& run);

  const OfflineOptions options_;
  Mutex mutex_;
  std::deque<FailedOnce> failed_ GUARDED_BY(mutex_);  // a few, the newest last
  PacedWriter writer_;
};

}  // namespace reprise
