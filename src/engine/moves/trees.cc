#include "engine/moves/trees.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMostSteps = 100'000;      // with repetitions, of which a small tree can ask for very many
constexpr std::size_t kMostRepeated = 64 << 20;  // bytes, which a few large messages can ask for, too
constexpr std::size_t kMostHeld = 4 << 20;       // bytes that need not be read again
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::size_t BytesOf(const std::vector<MovedMessage>& steps) {
  std::size_t bytes = 0;
  for (const MovedMessage& step : steps) {
    bytes += step.text.size();
    for (const MovedBlock& block : step.blocks) bytes += block.text.size() + block.verbatim.size();
    for (const MovedFile& file : step.files) bytes += file.content.size();
  }
  return bytes;
}

// What is in memory of a message.
struct PlacedNode {
  std::string id, parent;
  std::size_t record, index;  // in what NodeReader::Take gives
  std::size_t steps, bytes;
  bool is_prompt;
  std::string call{};                // that it is; empty: it is none
  bool lacks_call = false;           // it is a result, and does not say of which call
  std::vector<MovedMessage> held{};  // the steps, if they are few enough
};

using Name = std::shared_ptr<const std::string>;  // of a step; many nodes may come after it

// The steps of a node at a place of the chat.
struct NodeVisit {
  std::size_t node;
  Name after;          // the step that the first one continues
  std::size_t number;  // of the first step, if it is a repetition; kNone: it is none
};

class Walk {
 public:
  explicit Walk(const std::vector<PlacedNode>& nodes)
      : nodes_(nodes), parents_(nodes.size(), kNone), children_(nodes.size()) {
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < nodes_.size(); ++i) places.emplace(nodes_[i].id, i);
    for (const PlacedNode& node : nodes_) room_ -= std::min(room_, node.steps);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto parent = places.find(nodes_[i].parent);
      const bool is_root = parent == places.end() || parent->second == i;
      (is_root ? roots_ : children_[parent->second]).push_back(i);
      if (!is_root) parents_[i] = parent->second;
    }
  }
  const std::vector<std::size_t>& parents() const { return parents_; }

  std::vector<NodeVisit> Visits(LeftOut& left_out) {
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
      const bool is_prompt = nodes_[visit.node].is_prompt;
      Name last = visit.last;
      if (visit.repeats && !is_prompt) last = Repeat(visit);
      const Name before_prompt = is_prompt ? visit.last : visit.before_prompt;
      const Name after = Put(visit.node, std::move(last), false);
      const auto& children = children_[visit.node];
      for (std::size_t i = children.size(); i-- > 0;) {
        open.push_back({.node = children[i], .last = after, .before_prompt = before_prompt, .repeats = i > 0});
      }
    }
    left_out.Add("message that no other leads to", nodes_.size() - visited);
    left_out.Add("message beyond what one chat may repeat", too_many_);
    return std::move(visits_);
  }

 private:
  struct Visit {
    std::size_t node;
    Name last, before_prompt;
    bool repeats = false;  // another node continues the same
  };

  // Adds again what led to a node from the last prompt on. Returns the last step's name.
  Name Repeat(const Visit& visit) {
    std::vector<std::size_t> path;
    for (std::size_t at = parents_[visit.node]; at != kNone; at = parents_[at]) {
      if (++walked_ > kMostSteps) return visit.last;  // nothing is put any more
      path.push_back(at);
      if (nodes_[at].is_prompt) break;
    }
    Name last = visit.before_prompt;
    for (const std::size_t before : std::views::reverse(path)) last = Put(before, std::move(last), true);
    return last;
  }

  // Adds a node's steps after the one of this name, and returns the last one's name.
  Name Put(std::size_t node, Name after, bool again) {
    const PlacedNode& placed = nodes_[node];
    if (placed.steps == 0) return after;
    if (again) repeated_ += placed.bytes;
    if (again && (repeated_ > kMostRepeated || placed.steps > room_ || walked_ > kMostSteps)) {
      too_many_ += placed.steps;
      return after;
    }
    if (again) room_ -= placed.steps;
    visits_.push_back({.node = node, .after = std::move(after), .number = again ? count_ : kNone});
    count_ += placed.steps;
    return std::make_shared<const std::string>(NameOf(placed, visits_.back(), placed.steps - 1));
  }

 public:
  static std::string NameOf(const PlacedNode& node, const NodeVisit& visit, std::size_t step) {
    return visit.number == kNone ? node.id : node.id + "#" + std::to_string(visit.number + step);
  }

 private:
  const std::vector<PlacedNode>& nodes_;
  std::vector<std::size_t> parents_;  // kNone for a root
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> roots_;
  std::vector<NodeVisit> visits_;
  std::size_t count_ = 0;          // of their steps
  std::size_t walked_ = 0;         // back, to repeat
  std::size_t repeated_ = 0;       // bytes
  std::size_t room_ = kMostSteps;  // for repeated steps
  std::size_t too_many_ = 0;
};

class SessionInTree final : public MovedSession {
 public:
  SessionInTree(Records records, std::unique_ptr<NodeReader> reader)
      : records_(std::move(records)), reader_(std::move(reader)) {}

  Result<void> ReadNodes() {
    std::unordered_map<std::string, std::size_t> places;
    std::size_t held = 0;
    for (std::size_t record = 0; record < records_.count; ++record) {
      auto nodes = TRY(Take(record));
      const bool are_several = nodes.size() > 1;  // a record is not read again for each of them
      for (std::size_t index = 0; index < nodes.size(); ++index) {
        PlacedNode placed = Placed(nodes[index], record, index);
        held += placed.bytes;
        if (are_several || held <= kMostHeld) placed.held = std::move(nodes[index].steps);
        const auto [place, is_new] = places.try_emplace(placed.id, nodes_.size());
        if (is_new || !reader_->are_members) {
          nodes_.push_back(std::move(placed));
        } else {
          nodes_[place->second] = std::move(placed);
        }
      }
    }
    Walk walk(nodes_);
    FindCalls(walk.parents());
    visits_ = walk.Visits(reader_->left_out);
    facts_ = reader_->facts;
    left_out_.Add(reader_->left_out);
    reader_->left_out.Close();
    return {};
  }

  std::size_t records() const override { return visits_.size() + BeforeVisits(); }
  Result<std::vector<MovedMessage>> Read(std::size_t record) override {
    if (record < BeforeVisits()) {
      return std::vector{MovedMessage{.kind = MovedMessage::Kind::kModel, .model = reader_->model}};
    }
    const NodeVisit& visit = visits_[record - BeforeVisits()];
    const PlacedNode& node = nodes_[visit.node];
    std::vector<MovedMessage> steps = node.held;
    if (steps.empty()) {
      auto nodes = TRY(Take(node.record));
      if (node.index < nodes.size()) steps = std::move(nodes[node.index].steps);
    }
    std::string after = *visit.after;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].parent = std::exchange(after, Walk::NameOf(node, visit, i));
      steps[i].is_root = steps[i].parent.empty();
      steps[i].id = after;
    }
    if (node.lacks_call && !steps.empty()) steps.front().call_id = node.call;
    return steps;
  }

 private:
  Result<std::vector<MessageNode>> Take(std::size_t record) {
    const Json json = TRY(records_.load(record));
    reader_->record = record;
    return reader_->Take(json);
  }

  PlacedNode Placed(MessageNode& node, std::size_t record, std::size_t index) const {
    using Kind = MovedMessage::Kind;
    PlacedNode placed{.id = std::move(node.id),
                      .parent = std::move(node.parent),
                      .record = record,
                      .index = index,
                      .steps = node.steps.size(),
                      .bytes = BytesOf(node.steps),
                      .is_prompt = !node.steps.empty() && node.steps.front().kind == Kind::kPrompt};
    if (!reader_->finds_calls || node.steps.empty()) return placed;
    const MovedMessage& first = node.steps.front();
    placed.lacks_call = first.kind == Kind::kResult && first.call_id.empty();
    const bool is_call = !first.blocks.empty() && first.blocks.front().kind == MovedBlock::Kind::kCall;
    if (is_call) placed.call = first.blocks.front().id;
    return placed;
  }

  void FindCalls(const std::vector<std::size_t>& parents) {
    constexpr int kMostBefore = 32;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].lacks_call) continue;
      std::size_t before = parents[i];
      for (int steps = 0; before != kNone && steps < kMostBefore && nodes_[i].call.empty(); ++steps) {
        if (!nodes_[before].lacks_call) nodes_[i].call = nodes_[before].call;
        before = parents[before];
      }
    }
  }

  std::size_t BeforeVisits() const { return reader_->model.empty() ? 0 : 1; }

  const Records records_;
  const std::unique_ptr<NodeReader> reader_;
  std::vector<PlacedNode> nodes_;
  std::vector<NodeVisit> visits_;
};

}  // namespace

Result<std::unique_ptr<MovedSession>> OpenTree(Records records, std::unique_ptr<NodeReader> reader) {
  auto session = std::make_unique<SessionInTree>(std::move(records), std::move(reader));
  TRY(session->ReadNodes());
  return session;
}

}  // namespace reprise
