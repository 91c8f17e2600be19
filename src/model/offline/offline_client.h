#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// A line of a user's message that calls one tool.
struct OfflineCommand {
  std::string tool;
  std::string arguments;  // JSON object text
  std::string lead;       // the answer's text before the tool's output; may be empty
};

// nullopt if the line is no command. Understands the commands of OfflineHelp, in any case and with or without a colon,
// and a few spoken forms ("what is 2+2?", "what time is it?").
std::optional<OfflineCommand> ParseOfflineCommand(std::string_view line);

// The commands among a message's lines, in order.
std::vector<OfflineCommand> ParseOfflineCommands(std::string_view message);

// A message that asks the model itself to show something.
struct OfflineShow {
  std::string_view what;  // "demo", "help", "markdown", "think", "slow", "fail"
  std::string text = {};  // after the colon
};

// nullopt for any other message. "demo", "help" and "markdown" must be the whole message; the text after "think:" and
// "slow:" may have several lines. Text of attached files does not count.
std::optional<OfflineShow> ParseOfflineShow(std::string_view message);

// Describes the commands, in Markdown.
const std::string& OfflineHelp();

}  // namespace reprise
