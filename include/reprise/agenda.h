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

// What an agent has written down of its work. Small: it is stored whole with each state.
struct Agenda {
  std::vector<Task> tasks{};
  std::vector<std::string> plan{};  // its steps
  bool operator==(const Agenda&) const = default;
};

inline constexpr std::size_t kMaxTasks = 200;      // in a list
inline constexpr std::size_t kMaxPlanSteps = 100;  // in a plan
inline constexpr std::size_t kMaxTaskText = 500;   // characters of a title or a step

// For a further task: a number above those in use.
std::string NextTaskId(const std::vector<Task>& tasks);

}  // namespace reprise
