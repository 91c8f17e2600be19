#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/live_runs.h"
#include "reprise/interaction.h"
#include "reprise/replay.h"
#include "terminal/terminal_style.h"

namespace reprise {

// What a recorded turn did, or what a run of it does with something different.
struct TriedSide {
  std::string model{};
  std::string status{};  // as in Interaction
  std::string answer{};
  std::string error{};               // why it failed; empty: it did not
  std::vector<std::string> calls{};  // "read_file {...}"
  TokenUsage usage{};
  double cost = 0;  // in the currency of the configured prices
  double ms = 0;
};

// A run.
struct TriedRun : TriedSide {
  bool was_made = false;             // to its end
  std::optional<bool> passed{};      // the checks; nullopt: there are none
  std::string problem{};             // of a check
  std::vector<std::string> files{};  // that it has changed
  std::string diff{};
  std::optional<Divergence> difference{};  // the first one from the record; nullopt: it did the same
  std::string kept{}, not_kept{};          // as which turn it was stored, or why not; empty: nobody asked for it
};

struct TriedTurn {
  std::string chat, turn;
  std::string file{};  // the chat's; empty: none
  std::uint64_t at = 0;
  TriedSide recorded{};
  std::vector<TriedRun> runs{};  // those of a model stand together
  std::string failure{};         // why there are none
};

struct WhatIfReport {
  std::vector<TriedTurn> turns{};
  double seconds = 0;
  std::string asked{};  // what models were asked: "6 requests, ..."
  // Whether each run was made to its end and passed its checks.
  bool is_good() const;
};

// `price`: of the model; null: none. The calls are those that events show.
TriedSide SideOf(const Interaction& interaction, const ModelPrice* price);
TriedRun RunOf(const Interaction& recorded, const JudgedRun& judged);

// For a single run both sides and its files, else a table. Texts of models are made visible. Ends with a line end.
std::string TerminalText(const WhatIfReport& report, Colour colour);
// One document (schemas/what_if_report.schema.json).
std::string JsonText(const WhatIfReport& report);

}  // namespace reprise
