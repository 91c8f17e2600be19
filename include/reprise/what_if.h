#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

// What is different when a recorded turn goes on from one of its events.
struct WhatIfChanges {
  // The last event that comes from the record; nullopt: none, so the turn begins anew.
  std::optional<std::uint64_t> at{};
  std::string model{};               // a full name; empty: that of today
  std::optional<std::string> say{};  // without `at` in place of the turn's message, else after the event
  std::optional<bool> answer{};      // to the approval that waits at `at`: whether the call may run
  // In place of the result of the call at `at`.
  std::optional<std::string> result{};
  enum class Failure { kTimeout, kError };  // "timeout", "error"
  std::optional<Failure> fail{};
  std::vector<std::string> allow_effects{};  // tools that may act outside the copy of the workspace
  bool keep = false;                         // a run that completes becomes a branch of the chat
};

}  // namespace reprise
