#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "domain/transcript/transcript.h"
#include "doors/translator.h"
#include "reprise/event.h"
#include "reprise/ids.h"

namespace reprise::ag_ui {

// Translates a run into events of AG-UI 1.0. A question to a person is an interrupt: it ends the response, and never
// the run.
class RunTranslator final : public Translator {
 public:
  struct Options {
    std::string thread_id, run_id, parent_run_id;
    bool is_current = false;               // the client speaks 1.0
    std::string interaction{};             // if known before the first event
    Json state = Json::object();           // {"tasks","plan"} when the run begins
    Json messages = Json::array();         // the messages that the client has
    std::optional<Json> shown_messages{};  // all messages of the chat, if they are to be shown at the beginning
    std::uint64_t after_seq = 0;           // the client has the events up to here
    std::set<std::string> answered{};      // answered by this request, so no interrupts any more
    // The usage before this request, which earlier responses have reported.
    struct Before {
      std::uint64_t last_seq = 0;
      TokenUsage pending{};
    } before{};
    std::function<TokenUsage()> pending_usage{};  // see EventLog
    std::function<void(const InteractionRef&)> began{};
    std::function<void(const InteractionRef&, const std::string& answer)> ended{};
  };
  explicit RunTranslator(Options options) : options_(std::move(options)), state_(options_.state) {}

  void Begin(std::string& out) override;
  void Rest(std::string& out) override;
  void End(bool complete, std::string& out) override;
  bool is_over() const override { return is_over_; }

  // Writes a response that shows the current state and no run.
  void EndWithNothing(std::string& out);

  // The messages made from the run's events so far.
  const std::vector<Json>& messages() const { return messages_; }

  // A response with this failure alone.
  static std::string Refusal(const Options& options, const std::string& code, const std::string& message);

 private:
  // A text or a reasoning message, perhaps still open.
  struct Open {
    std::string id;
    bool is_open = false;
  };
  struct SubAgent {
    bool is_open = false;
    std::size_t messages = 0;
  };

  void Emit(std::string& out, const Json& event);
  void Start(std::string& out);
  void Finish(std::string& out, Json outcome);
  void Break(std::string& out, const std::string& code, const std::string& message);
  void CloseAll(std::string& out);
  std::string Id(const std::string& what) const { return interaction_ + "-" + what; }

  void TakePiece(std::uint64_t seq, Piece piece, std::string_view escaped, std::string& out) override;
  void TakeEvent(const AgentEvent& event, std::string& out) override;
  void TakeStarted(const event::InteractionStarted& started, std::string& out);
  void TakeThought(const std::string& content, std::string& out);
  void TakeText(const std::string& content, std::uint32_t round, std::string& out);
  void BeginText(std::string& out);
  void EndText(std::string& out);
  void BeginThought(std::string& out);
  void EndThought(std::string& out);
  void Announce(const std::string& call, const std::string& name, const std::string& input, std::uint32_t round,
                std::string& out);
  void TakeResult(const event::ToolResult& result, std::uint32_t round, std::string& out);
  void TakeOutput(const event::ToolOutputDelta& output, std::string& out);
  void TakeNested(const event::Nested& nested, std::string& out);
  void AskApproval(const event::ApprovalRequired& asked);
  void AskInput(const event::InputRequired& asked);
  void AddUsage(const TokenUsage& usage);
  void SetState(const char* member, Json value, std::string& out);
  Json& MessageFor(const std::string& id);
  Json Usage() const;
  TokenUsage Used() const;

  const Options options_;
  Json state_;
  RunState run_;
  std::string interaction_, parent_run_;
  bool has_begun_ = false, is_silent_ = false, is_over_ = false;
  Open text_, thought_;
  std::size_t text_count_ = 0, thought_count_ = 0;
  std::string parent_;  // id of the message with this round's calls
  std::uint32_t parent_round_ = 0;
  std::set<std::string> announced_;  // ids of calls
  std::map<std::string, std::size_t> outputs_;
  std::map<std::string, SubAgent> sub_agents_;
  std::vector<std::pair<std::string, Json>> interrupts_;  // the open ones, with their ids
  std::vector<Json> messages_;
  std::string answer_;     // all text so far, by which the conversation is found again
  std::uint64_t seq_ = 0;  // of the current event
  TokenUsage usage_;
};

}  // namespace reprise::ag_ui
