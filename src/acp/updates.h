#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/event.h"

namespace reprise::acp {

// What a client of ACP can be told beside what all can.
struct UpdateAbilities {
  bool notices = false, compaction = false;
};

// Makes ACP's session updates of the events of one interaction after the other, live or recorded. For one thread.
class Updates {
 public:
  // `workspace`: the folder that paths of files are relative to; may be empty.
  Updates(std::string workspace, UpdateAbilities abilities) : workspace_(std::move(workspace)), abilities_(abilities) {}

  // The events that follow are of this one. Ids of calls are told apart by it: those of ACP are unique in a session.
  void Begin(const std::string& interaction);

  // What stands in a person's message.
  static Json UserMessage(const std::string& interaction, const std::string& text);

  // What an event says to a client; in the order in which it is to be sent.
  std::vector<Json> Take(const AgentEvent& event);
  // What was held back: text that came in pieces, and (with `all`, or when its time has come) output of tools.
  std::vector<Json> Flush(bool all);
  // Whether there is output that waits for its time.
  bool HoldsOutput() const;

  // The call that is asked about, before Take has the event.
  void Know(const event::ApprovalRequired& asked) { CallOf(asked.call_id, asked.tool_name, asked.tool_input); }
  // From now on the call shows this difference: the file's text now and after it.
  void SetDiff(const std::string& call_id, const std::string& path, std::optional<std::string> before,
               const std::string& after);

  // The client shows in this terminal what the call of its own tool does that is under way, or is about to be.
  std::vector<Json> SetTerminal(const std::string& terminal);

  std::string CallId(const std::string& call_id) const { return interaction_ + "/" + call_id; }
  // What a request for permission shows of the call: an update of it.
  Json DescribeCall(const std::string& call_id) const;

 private:
  struct Call {
    std::string tool_name, tool_input;
    std::string output;  // so far; its end
    std::string nested;  // what a sub-agent does for it
    Json diff = nullptr;
    std::string terminal;     // of the client, that shows what it does
    std::vector<Json> asked;  // content that a person needs to decide
    bool is_announced = false, is_dirty = false;
  };
  Call& CallOf(const std::string& id, const std::string& tool, const std::string& input);
  Json Started(const event::ToolCallStarted& started);
  Json Asked(const event::ApprovalRequired& asked);
  Json Ended(const event::ToolResult& result);
  void AddNested(const event::Nested& nested);
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
  std::string terminal_call_;          // the call of the client's terminal that has begun last
  std::string terminal_;               // came before its call
  std::string thought_, text_;         // shown of what is being said
  std::string held_;                   // came in pieces, and has not been sent
  const char* held_kind_ = nullptr;
  std::size_t message_ = 0;  // number of the message within the interaction
  std::chrono::steady_clock::time_point flushed_{};
  std::vector<std::string> steps_;  // the plan
  std::vector<Task> tasks_;
  std::size_t compactions_ = 0;
};

}  // namespace reprise::acp
