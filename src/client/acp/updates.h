#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/event.h"

namespace reprise::acp {

// The optional updates that a client of ACP accepts.
struct UpdateAbilities {
  bool notices = false, compaction = false;
};

// Translates the events of one interaction after another, live or recorded, into ACP's session updates. For one thread.
class Updates {
 public:
  // `workspace`: the folder that paths of files are relative to; may be empty.
  Updates(std::string workspace, UpdateAbilities abilities) : workspace_(std::move(workspace)), abilities_(abilities) {}

  // The following events belong to this interaction. Its id makes call ids unique in the session, as ACP demands.
  void Begin(const std::string& interaction);

  // The update for a user's message.
  static Json UserMessage(const std::string& interaction, const std::string& text);

  // The updates for an event, in the order to send them.
  std::vector<Json> Take(const AgentEvent& event);
  // The held-back updates: text deltas and, with `all` or after a short time, output of tools.
  std::vector<Json> Flush(bool all);
  // Whether output of tools is held back.
  bool HoldsOutput() const;

  // Notes the call that the approval is about, before Take gets the event.
  void Know(const event::ApprovalRequired& asked) { CallOf(asked.call_id, asked.tool_name, asked.tool_input); }
  // Sets the differences that the call shows: those of GET .../change.
  void SetDiffs(const std::string& call_id, const Json& change);
  // Sets the difference that the call shows: the file's text before and after it.
  void SetDiff(const std::string& call_id, const std::string& path, std::optional<std::string> before,
               const std::string& after);

  // Attaches the client's terminal to the call of its terminal tool, which is under way or about to start.
  std::vector<Json> SetTerminal(const std::string& terminal);

  std::string CallId(const std::string& call_id) const { return interaction_ + "/" + call_id; }
  // The call's description for a request for permission, in the form of an update.
  Json DescribeCall(const std::string& call_id) const;

 private:
  struct Call {
    std::string tool_name, tool_input;
    std::string output;       // the end of the output so far
    std::string nested;       // the steps of its sub-agent
    Json diff = nullptr;      // one, or several in an array
    std::string terminal;     // the client's terminal that shows it
    std::vector<Json> asked;  // content that the user needs for a decision
    bool is_announced = false, is_dirty = false;
  };
  Call& CallOf(const std::string& id, const std::string& tool, const std::string& input);
  Json Started(const event::ToolCallStarted& started);
  Json Asked(const event::ApprovalRequired& asked);
  Json Ended(const event::ToolResult& result);
  void AddSources(std::vector<Json>& updates, const std::vector<Citation>& citations) const;
  Json Searched(const event::WebSearch& search);
  void AddNested(std::vector<Json>& updates, const event::Nested& nested);
  Json Notice(const char* title, const std::string& about) const;
  Json Announce(const std::string& id, Call& call, const char* status);
  Json Content(const Call& call) const;
  std::string FullPath(const std::string& path) const;
  Json Locations(const Call& call) const;
  void TakePiece(std::vector<Json>& updates, const char* kind, std::string& shown, const std::string& piece);
  void TakeText(std::vector<Json>& updates, const char* kind, std::string& shown, const std::string& whole);
  void FlushText(std::vector<Json>& updates);
  Json Chunk(const char* kind, const std::string& text);
  Json Plan() const;

  std::string workspace_;
  UpdateAbilities abilities_;
  std::string interaction_;
  std::map<std::string, Call> calls_;  // of this interaction, by their ids
  std::string terminal_call_;          // the latest call of the client's terminal tool
  std::string terminal_;               // a terminal that came before its call
  std::string thought_, text_;         // the deltas so far of the current thinking and text
  std::string held_;                   // deltas that are not sent yet
  const char* held_kind_ = nullptr;
  std::size_t message_ = 0;  // number of the message within the interaction
  std::chrono::steady_clock::time_point flushed_{};
  std::vector<std::string> steps_;  // the plan
  std::vector<Task> tasks_;
  std::size_t compactions_ = 0, searches_ = 0;
};

}  // namespace reprise::acp
