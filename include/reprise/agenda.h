#pragma once

#include <string>
#include <vector>

namespace reprise {

struct Task {
  std::string id;  // unique in its list
  std::string title;
  std::string status = "todo";  // "todo", "doing" or "done"
  bool operator==(const Task&) const = default;
};

// An agent's notes on its work. Small, because each state stores all of it.
struct Agenda {
  std::vector<Task> tasks{};
  std::vector<std::string> plan{};  // steps
  bool operator==(const Agenda&) const = default;
};

inline constexpr std::size_t kMaxTasks = 200;      // in a list
inline constexpr std::size_t kMaxPlanSteps = 100;  // in a plan
inline constexpr std::size_t kMaxTaskText = 500;   // characters of a title or a step

// The id for a new task: a number above those in use.
std::string NextTaskId(const std::vector<Task>& tasks);

// A background job that the agent has started and of whose end it has not been told.
struct StartedJob {
  std::string id, command;
  bool operator==(const StartedJob&) const = default;
};

}  // namespace reprise
