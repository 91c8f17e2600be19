#include "engine/moves/trees.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace reprise {
namespace {

constexpr std::size_t kMostSteps = 100'000;  // a small tree can ask for very many repetitions

bool IsPrompt(const MessageNode& node) {
  return !node.steps.empty() && node.steps.front().kind == MovedMessage::Kind::kPrompt;
}

class Walk {
 public:
  explicit Walk(std::vector<MessageNode> nodes) : nodes_(std::move(nodes)), children_(nodes_.size()) {
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < nodes_.size(); ++i) places.emplace(nodes_[i].id, i);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto parent = places.find(nodes_[i].parent);
      const bool is_root = parent == places.end() || parent->second == i;
      (is_root ? roots_ : children_[parent->second]).push_back(i);
    }
  }

  std::vector<MovedMessage> Steps(LeftOut& left_out) {
    std::vector<Visit> open;
    for (auto root = roots_.rbegin(); root != roots_.rend(); ++root) open.push_back({.node = *root});
    std::size_t visited = 0;
    while (!open.empty()) {
      const Visit visit = std::move(open.back());
      open.pop_back();
      ++visited;
      std::vector<std::size_t> path = visit.path;  // from the last prompt on
      std::string last = visit.last;
      if (IsPrompt(nodes_[visit.node])) {
        path.clear();
      } else if (visit.repeats) {
        for (const std::size_t before : path)
          last = Put(before, before == path.front() ? visit.before_prompt : last, true);
      }
      const std::string before_prompt = IsPrompt(nodes_[visit.node]) ? last : visit.before_prompt;
      last = Put(visit.node, last, false);
      path.push_back(visit.node);
      const auto& children = children_[visit.node];
      for (std::size_t i = children.size(); i-- > 0;) {
        open.push_back(
            {.node = children[i], .path = path, .last = last, .before_prompt = before_prompt, .repeats = i > 0});
      }
    }
    left_out.Add("message that no other leads to", nodes_.size() - visited);
    left_out.Add("message after the first hundred thousand", too_many_);
    return std::move(steps_);
  }

 private:
  struct Visit {
    std::size_t node;
    std::vector<std::size_t> path{};
    std::string last{}, before_prompt{};  // names of steps
    bool repeats = false;                 // another node continues the same
  };

  // Adds a node's steps after the one of this name, and returns the last one's name.
  std::string Put(std::size_t node, std::string after, bool again) {
    const auto& steps = nodes_[node].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps_.size() >= kMostSteps) return ++too_many_, after;
      MovedMessage step = steps[i];
      step.parent =
          std::exchange(after, again ? nodes_[node].id + "#" + std::to_string(steps_.size()) : nodes_[node].id);
      step.is_root = step.parent.empty();
      step.id = after;
      steps_.push_back(std::move(step));
    }
    return after;
  }

  const std::vector<MessageNode> nodes_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> roots_;
  std::vector<MovedMessage> steps_;
  std::size_t too_many_ = 0;
};

}  // namespace

std::vector<MovedMessage> StepsOfTree(std::vector<MessageNode> nodes, LeftOut& left_out) {
  return Walk(std::move(nodes)).Steps(left_out);
}

}  // namespace reprise
