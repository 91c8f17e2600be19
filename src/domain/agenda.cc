#include "reprise/agenda.h"

#include <algorithm>
#include <charconv>

namespace reprise {

std::string NextTaskId(const std::vector<Task>& tasks) {
  unsigned highest = 0;
  for (const Task& task : tasks) {
    unsigned number = 0;
    const char* const end = task.id.data() + task.id.size();
    const auto [rest, failure] = std::from_chars(task.id.data(), end, number);
    // Far from the end of the range, whatever ids a client has made up.
    if (failure == std::errc() && rest == end && number < 1'000'000'000) highest = std::max(highest, number);
  }
  return std::to_string(highest + 1);
}

}  // namespace reprise
