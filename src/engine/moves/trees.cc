#include "engine/moves/trees.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <ranges>
#include <unordered_map>
#include <utility>

namespace reprise {
namespace {

constexpr std::size_t kMostSteps = 100'000;      // a small tree can ask for very many repetitions
constexpr std::size_t kMostRepeated = 64 << 20;  // bytes, which a few large messages can ask for, too
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

bool IsPrompt(const MessageNode& node) {
  return !node.steps.empty() && node.steps.front().kind == MovedMessage::Kind::kPrompt;
}

std::size_t BytesOf(const MovedMessage& step) {
  std::size_t bytes = step.text.size();
  for (const MovedBlock& block : step.blocks) bytes += block.text.size() + block.verbatim.size();
  for (const MovedFile& file : step.files) bytes += file.content.size();
  return bytes;
}

class Walk {
 public:
  explicit Walk(std::vector<MessageNode> nodes)
      : nodes_(std::move(nodes)), parents_(nodes_.size(), kNone), children_(nodes_.size()) {
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < nodes_.size(); ++i) places.emplace(nodes_[i].id, i);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto parent = places.find(nodes_[i].parent);
      const bool is_root = parent == places.end() || parent->second == i;
      (is_root ? roots_ : children_[parent->second]).push_back(i);
      if (!is_root) parents_[i] = parent->second;
    }
  }

  std::vector<MovedMessage> Steps(LeftOut& left_out) {
    std::vector<Visit> open;
    const Name none = std::make_shared<const std::string>();
    for (auto root = roots_.rbegin(); root != roots_.rend(); ++root) {
      open.push_back({.node = *root, .last = none, .before_prompt = none});
    }
    std::size_t visited = 0;
    while (!open.empty()) {
      const Visit visit = std::move(open.back());
      open.pop_back();
      ++visited;
      const bool is_prompt = IsPrompt(nodes_[visit.node]);
      std::string last = *visit.last;
      if (visit.repeats && !is_prompt) last = Repeat(visit);
      const Name before_prompt = is_prompt ? visit.last : visit.before_prompt;
      const Name after = std::make_shared<const std::string>(Put(visit.node, std::move(last), false));
      const auto& children = children_[visit.node];
      for (std::size_t i = children.size(); i-- > 0;) {
        open.push_back({.node = children[i], .last = after, .before_prompt = before_prompt, .repeats = i > 0});
      }
    }
    left_out.Add("message that no other leads to", nodes_.size() - visited);
    left_out.Add("message beyond what one chat may have or repeat", too_many_);
    return std::move(steps_);
  }

 private:
  using Name = std::shared_ptr<const std::string>;  // of a step; many nodes may come after it
  struct Visit {
    std::size_t node;
    Name last, before_prompt;
    bool repeats = false;  // another node continues the same
  };

  // Adds again what led to a node from the last prompt on. Returns the last step's name.
  std::string Repeat(const Visit& visit) {
    std::vector<std::size_t> path;
    for (std::size_t at = parents_[visit.node]; at != kNone; at = parents_[at]) {
      if (++walked_ > kMostSteps) return *visit.last;  // nothing is put any more
      path.push_back(at);
      if (IsPrompt(nodes_[at])) break;
    }
    std::string last = *visit.before_prompt;
    for (const std::size_t before : std::views::reverse(path)) last = Put(before, std::move(last), true);
    return last;
  }

  // Adds a node's steps after the one of this name, and returns the last one's name.
  std::string Put(std::size_t node, std::string after, bool again) {
    const auto& steps = nodes_[node].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (again) repeated_ += BytesOf(steps[i]);
      const bool is_too_much = again && repeated_ > kMostRepeated;
      if (is_too_much || steps_.size() >= kMostSteps || walked_ > kMostSteps) return ++too_many_, after;
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
  std::vector<std::size_t> parents_;  // kNone for a root
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> roots_;
  std::vector<MovedMessage> steps_;
  std::size_t walked_ = 0;    // back, to repeat
  std::size_t repeated_ = 0;  // bytes
  std::size_t too_many_ = 0;
};

}  // namespace

std::vector<MovedMessage> StepsOfTree(std::vector<MessageNode> nodes, LeftOut& left_out) {
  return Walk(std::move(nodes)).Steps(left_out);
}

}  // namespace reprise
