#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/jobs.h"
#include "reprise/model_client.h"
#include "reprise/tool.h"

namespace reprise {

inline constexpr std::size_t kToldAtEachEnd = 16 << 10;  // bytes

// The model's version of a tool's output; people see the original. For a command it is plain text: without terminal
// control sequences, with only the last version of an overwritten line, and with the beginning and the end of a long
// text, `at_each_end` bytes of each. For other tools it is the output. Depends only on the arguments; `output` must be
// valid UTF-8.
std::string ToldOutput(std::string_view tool_name, std::string_view output, std::size_t at_each_end = kToldAtEachEnd);
// Whether a model may have been told `told` of `output`, with any number of bytes at each end, now or by an earlier
// version.
bool IsToldOutput(std::string_view tool_name, std::string_view told, std::string_view output);

// The tools that a model is told of: of edit_file and apply_patch the one that it is used to, if both are there, and of
// the deferred ones those that it has found.
struct ToldTools {
  struct Of {
    std::shared_ptr<const ToolSet> tools{};
    EditFormat format{};
    bool is_planning = false;          // the tool that ends planning is there
    std::vector<std::string> found{};  // see FoundTools
    std::string_view sub_agents{};     // what is added to the description of the tool that delegates
    bool operator==(const Of&) const = default;
  };
  explicit ToldTools(const Of& of);
  bool operator==(const Of& of) const;

  std::vector<ToolSpec> specs;
  std::vector<ToldTool> origins;  // of those that are not built in

 private:
  const std::weak_ptr<const ToolSet> tools_;
  const EditFormat format_;
  const bool is_planning_;
  const std::vector<std::string> found_;
  const std::string sub_agents_;
};
// Made once for all runs that have the same tools. Thread-safe.
std::shared_ptr<const ToldTools> ToldOf(const ToldTools::Of& of);

// Short tool descriptions for a model with little room: the first sentence of each description, and only the types of
// arguments.
struct ShortTools {
  std::vector<ToolSpec> specs{};
  std::vector<std::string> left_out{};  // names of tools that are not described
};

// nullopt if the full descriptions take at most half of `budget` (the limit of a request in tokens; 0: no limit). Else
// as many as fit into a third of it: first tools for files and commands, then those that are not built in. Keeps the
// order. The result depends only on the arguments.
std::optional<ShortTools> ShortToolsWithin(const std::vector<ToolSpec>& specs, std::int64_t budget);

struct EndedJobs {
  std::vector<event::JobEnded> events{};
  std::string note{};  // for the model; empty: none has ended
};

// Removes the jobs that have ended from `started`. Those that are not in `jobs` are lost.
EndedJobs TakeEndedJobs(const JobsOfChat& jobs, std::vector<StartedJob>& started);

}  // namespace reprise
