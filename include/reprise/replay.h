#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/event.h"

namespace reprise {

// The first difference between a replay and its record.
struct Divergence {
  std::uint64_t seq = 0;                 // of the recorded event, or one above the last
  std::optional<AgentEvent> expected{};  // nullopt: the record has ended
  std::optional<AgentEvent> actual{};  // nullopt: the replay has ended, or stands at something that records do not hold
  std::string reason{};                // one sentence for people
};

// A difference between a request on record and the one that the agent of today sends at that point.
struct Drift {
  // What has changed: a module of the system prompt, a tool's definition, a parameter of the request, the model, the
  // project's instructions (AGENTS.md), a skill, what is summed up or cleared, how this program writes a request, or a
  // rule of the configuration, which denies a call that ran.
  enum class Cause { kModule, kTool, kParameter, kModel, kInstructions, kSkill, kCompaction, kProgram, kRule };
  std::uint64_t request = 0;      // index in RunRecord::requests
  Cause cause = Cause::kModule;   // by name: "module", "tool", ...
  std::string name{};             // of the module, tool, parameter, skill or MCP server; may be empty
  std::string path{};             // where in the body: a JSON pointer (RFC 6901); empty: kModel, kRule
  std::string before{}, after{};  // text, or JSON; empty: it was not there, or is not there now
  // "sha256:...": of cause, name and all that is there now, without what depends on the time and the machine (values of
  // placeholders, folders of instructions). The same change has the same digest in each turn and everywhere.
  std::string digest{};
  bool operator==(const Drift&) const = default;
};

// How the requests of an interaction compare with those of today's agent. Each drift stands there once, at the first
// request that shows it.
struct DriftReport {
  std::size_t requests = 0;  // that were compared: those of the turn itself
  // For each other request of the turn, and for each MCP server that is not connected, words that say what or why.
  std::vector<std::string> not_compared{};
  std::vector<Drift> found{};
};

// The result of a replay.
//
//   const auto report = engine.ReplayRecorded(chat, interaction, reprise::ReplayInput::kCurrent);
//   for (const reprise::Drift& each : report->drift->found) Print(each.name);
struct ReplayReport {
  std::size_t events = 0;  // durable events that were equal
  std::optional<Divergence> divergence{};
  std::optional<DriftReport> drift{};  // with ReplayInput::kCurrent
};

// What a replay compares: the agent's loop on the recorded input, or also that input with today's.
enum class ReplayInput { kRecorded, kCurrent };

}  // namespace reprise
