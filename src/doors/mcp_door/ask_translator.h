#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/json.h"
#include "domain/transcript/transcript.h"
#include "doors/mcp_door/sessions.h"
#include "doors/translator.h"
#include "reprise/ids.h"

namespace reprise::mcp_door {

// Shows a run as the answer of a tool: progress while it works, questions to the client's user where it waits for a
// person, and its answer as the result.
class AskTranslator final : public Translator {
 public:
  // Where a person is asked.
  enum class Asking {
    kNowhere,   // the client cannot ask: the result says where to answer
    kInStream,  // by requests to the client while the response stays open
    kInResult,  // the result is the questions; the client repeats the call with the answers
  };
  struct Options {
    Json id = nullptr;  // the request's
    bool is_stateless = false;
    bool streams = true;  // false: the response is one JSON text, the result
    Asking asking = Asking::kNowhere;
    bool can_open_urls = false;
    Json progress_token = nullptr;  // null: no progress is sent
    InteractionRef run;
    bool is_repeated = false;                    // an earlier call began the run, and this one gets its result
    std::string call_digest{};                   // of the call; a repeated call must have the same
    std::string where{};                         // where people can answer
    std::uint64_t after_seq = 0;                 // the client has the events up to here
    std::set<std::string> answered{};            // answered by this request
    std::shared_ptr<Session> session = nullptr;  // the client's, if it has one
    std::shared_ptr<Call> call = nullptr;        // the same
  };
  explicit AskTranslator(Options options) : options_(std::move(options)) {}

  void Rest(std::string& out) override;
  void End(bool complete, std::string& out) override;
  bool is_over() const override { return is_over_; }

 private:
  void TakeEvent(const AgentEvent& event, std::string& out) override;
  void TakeRetry(std::uint64_t seq, const event::Retry& retry, std::string& out) const;
  void Send(const std::string& message, std::string& out) const;
  void Progress(std::uint64_t seq, const std::string& what, std::string& out) const;
  void Ask(const std::string& id, const Json& form, std::string& out);
  void Finish(Json result, std::string& out);
  void FinishWaiting(std::string& out);
  void Settle(const std::string& id, std::string& out);

  const Options options_;
  std::map<std::string, Json> waiting_;  // forms, by the ids of the questions
  std::map<std::string, int> asked_;     // how often the client was asked, by question
  std::string unasked_;                  // why the client could not ask
  std::uint64_t last_question_ = 0;
  RunState run_;
  bool is_over_ = false;
};

// The result of a tool: a text, and `structured` for programs. REQUIRES: `structured` is an object or null.
Json ToolResult(const std::string& text, Json structured, bool is_error = false);

// Ids of requests are used once, so a question that is asked again is another request. Convert between the id of the
// request and the id of its question.
std::string RequestIdFor(const std::string& question, int times);
std::string QuestionOf(const std::string& request_id);

// Sent by the client with its answers: the run that they are for.
struct RequestState {
  InteractionRef run;
  std::string call_digest;
  std::uint64_t last_question = 0;
};
std::string WriteRequestState(const RequestState& state);
std::optional<RequestState> ReadRequestState(const std::string& text);

}  // namespace reprise::mcp_door
