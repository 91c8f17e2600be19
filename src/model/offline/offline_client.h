#pragma once

#include <cstddef>
#include <deque>

#include "base/mutex.h"
#include "model/offline/paced_writer.h"
#include "reprise/model_client.h"

namespace reprise {

struct OfflineOptions {
  bool asks_people = true;  // the demonstration asks a question; false: nobody can answer
};

// A model without a network: it follows the commands in the last user message (see OfflineHelp), one line per round,
// and then answers with the tools' results. Deterministic: the same messages give the same response, except that it
// remembers which failures it has played once. Streams word by word and can be stopped between two words. Counts words
// as tokens. One thread writes all responses.
class OfflineClient : public ModelClient {
 public:
  explicit OfflineClient(OfflineOptions options = {}) : options_(options) {}

  ModelService service() const override { return {.provider = "reprise.offline"}; }
  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override;

 private:
  // A request that failed once, with its run's stop token.
  struct FailedOnce {
    std::size_t digest;
    std::stop_token run;
  };
  bool IsFirstAttempt(const ModelRequest& request, const std::stop_token& run);

  const OfflineOptions options_;
  Mutex mutex_;
  std::deque<FailedOnce> failed_ GUARDED_BY(mutex_);  // few, the newest last
  PacedWriter writer_;
};

}  // namespace reprise
