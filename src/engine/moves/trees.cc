#include "engine/moves/trees.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMostSteps = 100'000;      // with repetitions, of which a small tree can ask for very many
constexpr std::size_t kMostRepeated = 64 << 20;  // bytes, which a few large messages can ask for, too
constexpr std::size_t kMostHeld = 4 << 20;       // bytes that need not be read again
constexpr std::uint32_t kNoNode = static_cast<std::uint32_t>(-1), kOwnName = kNoNode;

// What is in memory of a message. There may be very many.
struct PlacedNode {
  std::string id;
  std::size_t bytes;
  std::uint32_t record, index, steps;  // where it is in what NodeReader::Take gives
  bool is_prompt;
  bool lacks_call;  // it is a result, and does not say of which call
};

// The name of a step.
struct StepName {
  std::uint32_t node = kNoNode;     // kNoNode: the empty name
  std::uint32_t number = kOwnName;  // of a repetition; kOwnName: it is the node's id
};

std::string TextOf(StepName name, const std::vector<PlacedNode>& nodes) {
  if (name.node == kNoNode) return {};
  const std::string& id = nodes[name.node].id;
  return name.number == kOwnName ? id : id + "#" + std::to_string(name.number);
}

// The steps of a node at a place of the chat.
struct NodeVisit {
  StepName first, after;  // the first one of them, and the one that it continues
};

StepName NameAt(const NodeVisit& visit, std::size_t step) {
  StepName name = visit.first;
  if (name.number != kOwnName) name.number += static_cast<std::uint32_t>(step);
  return name;
}

class Walk {
 public:
  // `parents` are the ids.
  Walk(const std::vector<PlacedNode>& nodes, const std::vector<std::string>& parents)
      : nodes_(nodes), links_(nodes.size() + 1) {
    std::unordered_map<std::string_view, std::uint32_t> places;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) places.emplace(nodes_[i].id, i);
    for (const PlacedNode& node : nodes_) room_ -= std::min<std::size_t>(room_, node.steps);
    for (auto i = static_cast<std::uint32_t>(nodes_.size()); i-- > 0;) {
      const auto parent = places.find(parents[i]);
      if (parent != places.end() && parent->second != i) links_[i].parent = parent->second;
      Links& above = links_[links_[i].parent == kNoNode ? nodes_.size() : links_[i].parent];
      links_[i].next = std::exchange(above.first_child, i);
    }
  }
  std::uint32_t ParentOf(std::uint32_t node) const { return links_[node].parent; }

  // The messages of a circle that leads to this one; it is above no root.
  std::vector<std::string> CircleAbove(std::uint32_t node) const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) node = ParentOf(node);
    std::vector<std::string> circle;
    const std::uint32_t first = node;
    do {
      circle.push_back(nodes_[node].id);
      node = ParentOf(node);
    } while (node != first);
    return circle;
  }

  std::vector<NodeVisit> Visits(LeftOut& left_out) {
    std::vector<Visit> open;
    for (const std::uint32_t root : std::views::reverse(ChildrenOf(static_cast<std::uint32_t>(nodes_.size())))) {
      open.push_back({.node = root});
    }
    std::size_t visited = 0;
    while (!open.empty()) {
      const Visit visit = open.back();
      open.pop_back();
      ++visited;
      const bool is_prompt = nodes_[visit.node].is_prompt;
      const StepName last = visit.repeats && !is_prompt ? Repeat(visit) : visit.last;
      const StepName before_prompt = is_prompt ? visit.last : visit.before_prompt;
      const StepName after = Put(visit.node, last, false);
      const auto children = ChildrenOf(visit.node);
      for (std::size_t i = children.size(); i-- > 0;) {
        open.push_back({.node = children[i], .last = after, .before_prompt = before_prompt, .repeats = i > 0});
      }
    }
    left_out.Add("message that no other leads to", nodes_.size() - visited);
    left_out.Add("message beyond what one chat may repeat", too_many_);
    return std::move(visits_);
  }

 private:
  struct Links {
    std::uint32_t parent = kNoNode, first_child = kNoNode, next = kNoNode;  // next: of the same parent
  };
  struct Visit {
    std::uint32_t node;
    StepName last{}, before_prompt{};
    bool repeats = false;  // another node continues the same
  };

  std::vector<std::uint32_t> ChildrenOf(std::uint32_t node) const {
    std::vector<std::uint32_t> children;
    for (std::uint32_t i = links_[node].first_child; i != kNoNode; i = links_[i].next) children.push_back(i);
    return children;
  }

  // Adds again what led to a node from the last prompt on. Returns the last step's name.
  StepName Repeat(const Visit& visit) {
    std::vector<std::uint32_t> path;
    for (std::uint32_t at = ParentOf(visit.node); at != kNoNode; at = ParentOf(at)) {
      if (++walked_ > kMostSteps) return visit.last;  // nothing is repeated any more
      path.push_back(at);
      if (nodes_[at].is_prompt) break;
    }
    StepName last = visit.before_prompt;
    for (const std::uint32_t before : std::views::reverse(path)) last = Put(before, last, true);
    return last;
  }

  // Adds a node's steps after the one of this name, and returns the last one's name.
  StepName Put(std::uint32_t node, StepName after, bool again) {
    const PlacedNode& placed = nodes_[node];
    if (placed.steps == 0) return after;
    if (again) repeated_ += placed.bytes;
    if (again && (repeated_ > kMostRepeated || placed.steps > room_ || walked_ > kMostSteps)) {
      too_many_ += placed.steps;
      return after;
    }
    if (again) room_ -= placed.steps;
    visits_.push_back({.first = {.node = node, .number = again ? count_ : kOwnName}, .after = after});
    count_ += placed.steps;
    return NameAt(visits_.back(), placed.steps - 1);
  }

  const std::vector<PlacedNode>& nodes_;
  std::vector<Links> links_;  // of the nodes; behind them, of what is above the roots
  std::vector<NodeVisit> visits_;
  std::uint32_t count_ = 0;        // of their steps
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
    std::vector<std::string> parents;
    std::unordered_map<std::size_t, std::uint32_t> places;  // by hash of the id
    std::size_t held = 0;
    for (std::size_t record = 0; record < records_.count; ++record) {
      auto nodes = TRY(Take(record));
      const bool are_several = nodes.size() > 1;  // a record is not read again for each of them
      for (std::size_t index = 0; index < nodes.size(); ++index) {
        MessageNode& node = nodes[index];
        auto at = static_cast<std::uint32_t>(nodes_.size());
        if (reader_->are_members) at = places.try_emplace(std::hash<std::string>()(node.id), at).first->second;
        if (at == nodes_.size()) nodes_.emplace_back(), parents.emplace_back();
        parents[at] = std::move(node.parent);
        Place(at, node, static_cast<std::uint32_t>(record), static_cast<std::uint32_t>(index));
        held += nodes_[at].bytes;
        held_.erase(at);
        if (are_several || held <= kMostHeld) held_.emplace(at, std::move(node.steps));
      }
    }
    Walk walk(nodes_, parents);
    FindCalls(walk);
    visits_ = walk.Visits(reader_->left_out);
    facts_ = reader_->facts;
    const auto says = std::ranges::find_if(nodes_, [](const PlacedNode& node) { return node.steps > 0; });
    if (visits_.empty() && says != nodes_.end()) {
      facts_.circle = FirstOf(walk.CircleAbove(static_cast<std::uint32_t>(says - nodes_.begin())));
    }
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
    auto steps = TRY(StepsOf(visit.first.node));
    std::string after = TextOf(visit.after, nodes_);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].parent = std::exchange(after, TextOf(NameAt(visit, i), nodes_));
      steps[i].is_root = steps[i].parent.empty();
      steps[i].id = after;
    }
    const auto call = calls_.find(visit.first.node);
    if (call != calls_.end() && !steps.empty()) steps.front().call_id = call->second;
    return steps;
  }

 private:
  Result<std::vector<MessageNode>> Take(std::size_t record) {
    const Json json = TRY(records_.load(record));
    reader_->record = record;
    return reader_->Take(json);
  }

  Result<std::vector<MovedMessage>> StepsOf(std::uint32_t node) {
    if (const auto held = held_.find(node); held != held_.end()) return held->second;
    auto nodes = TRY(Take(nodes_[node].record));
    if (nodes_[node].index >= nodes.size()) return std::vector<MovedMessage>();
    return std::move(nodes[nodes_[node].index].steps);
  }

  void Place(std::uint32_t at, MessageNode& node, std::uint32_t record, std::uint32_t index) {
    using Kind = MovedMessage::Kind;
    nodes_[at] = {.id = std::move(node.id),
                  .bytes = BytesOf(node.steps),
                  .record = record,
                  .index = index,
                  .steps = static_cast<std::uint32_t>(node.steps.size()),
                  .is_prompt = !node.steps.empty() && node.steps.front().kind == Kind::kPrompt,
                  .lacks_call = false};
    calls_.erase(at);
    if (!reader_->finds_calls || node.steps.empty()) return;
    const MovedMessage& first = node.steps.front();
    nodes_[at].lacks_call = first.kind == Kind::kResult && first.call_id.empty();
    const bool is_call = !first.blocks.empty() && first.blocks.front().kind == MovedBlock::Kind::kCall;
    if (is_call) calls_.insert_or_assign(at, first.blocks.front().id);
  }

  // Leaves in calls_ those of the results.
  void FindCalls(const Walk& walk) {
    constexpr int kMostBefore = 32;
    std::unordered_map<std::uint32_t, std::string> of_results;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      std::uint32_t before = nodes_[i].lacks_call ? walk.ParentOf(i) : kNoNode;
      for (int steps = 0; before != kNoNode && steps < kMostBefore; ++steps, before = walk.ParentOf(before)) {
        const auto call = calls_.find(before);
        if (call == calls_.end()) continue;
        of_results.emplace(i, call->second);
        break;
      }
    }
    calls_ = std::move(of_results);
  }

  std::size_t BeforeVisits() const { return reader_->model.empty() ? 0 : 1; }

  const Records records_;
  const std::unique_ptr<NodeReader> reader_;
  std::vector<PlacedNode> nodes_;
  std::unordered_map<std::uint32_t, std::vector<MovedMessage>> held_;  // steps by node, if they are few enough
  std::unordered_map<std::uint32_t, std::string> calls_;               // by node: what a call is named
  std::vector<NodeVisit> visits_;
};

}  // namespace

Result<std::unique_ptr<MovedSession>> OpenTree(Records records, std::unique_ptr<NodeReader> reader) {
  auto session = std::make_unique<SessionInTree>(std::move(records), std::move(reader));
  TRY(session->ReadNodes());
  return session;
}

}  // namespace reprise
