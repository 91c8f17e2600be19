#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "reprise/accounting.h"
#include "reprise/agenda.h"
#include "reprise/interaction.h"
#include "reprise/message.h"

namespace reprise {

void Messages::Push(Pointer message) {
  tail_.push_back(std::move(message));
  if (tail_.size() < kChunk) return;
  chunks_.push_back(std::make_shared<const Chunk>(std::move(tail_)));
  tail_.clear();
}

void Messages::Append(std::vector<Message> more) {
  for (Message& message : more) push_back(std::move(message));
}

void Messages::Append(const Messages& from, std::size_t first, std::size_t end) {
  while (first < end) {
    const bool whole_chunk = tail_.empty() && first % kChunk == 0 && end - first >= kChunk;
    if (whole_chunk) {
      chunks_.push_back(from.chunks_[first / kChunk]);
      first += kChunk;
    } else {
      Push(from.At(first++));
    }
  }
}

void Messages::Insert(std::size_t at, std::vector<Message> more) {
  const Messages before = *this;
  Truncate(at);
  Append(std::move(more));
  Append(before, at, before.size());
}

void Messages::Truncate(std::size_t size) {
  if (size >= this->size()) return;
  const std::size_t whole = size / kChunk;
  if (whole < chunks_.size()) {
    tail_ = *chunks_[whole];
    chunks_.resize(whole);
  }
  tail_.resize(size % kChunk);
}

Message& Messages::Change(std::size_t i) {
  const auto changed = std::make_shared<Message>(*At(i));
  const std::size_t chunk = i / kChunk;
  if (chunk < chunks_.size()) {
    Chunk own = *chunks_[chunk];
    own[i % kChunk] = changed;
    chunks_[chunk] = std::make_shared<const Chunk>(std::move(own));
  } else {
    tail_[i % kChunk] = changed;
  }
  return *changed;
}

bool Messages::StartsWith(const Messages& beginning) const {
  if (size() < beginning.size()) return false;
  const auto is_same = [](const Pointer& a, const Pointer& b) { return a == b || *a == *b; };
  const auto same_chunk = [&](const auto& a, const auto& b) {
    return a == b || std::equal(a->begin(), a->end(), b->begin(), b->end(), is_same);
  };
  if (!std::equal(beginning.chunks_.begin(), beginning.chunks_.end(), chunks_.begin(), same_chunk)) return false;
  for (std::size_t i = beginning.chunks_.size() * kChunk; i < beginning.size(); ++i) {
    if (!is_same(At(i), beginning.At(i))) return false;
  }
  return true;
}

AddedInteraction AddedTo(const AgentState& parent, Interaction whole) {
  auto& state = whole.final_agent_state;
  const std::size_t kept = parent.messages.size();
  if (!state || !state->messages.StartsWith(parent.messages)) return {.interaction = std::move(whole)};
  Messages added;
  added.Append(state->messages, kept, state->messages.size());
  state->messages = std::move(added);
  return {.interaction = std::move(whole), .kept_messages = kept};
}

double CostOf(const TokenUsage& usage, const ModelPrice& price) {
  constexpr double kMillion = 1e6, kThousand = 1e3;
  const auto part = [](std::int64_t tokens, double per_million) {
    return static_cast<double>(tokens) / kMillion * per_million;
  };
  const std::int64_t fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens;
  return part(fresh, price.input) + part(usage.cache_read_tokens, price.cache_read.value_or(price.input)) +
         part(usage.cache_write_tokens, price.cache_write.value_or(price.input)) +
         part(usage.output_tokens, price.output) +
         static_cast<double>(usage.web_searches) / kThousand * price.searches.value_or(0);
}

std::string NextTaskId(const std::vector<Task>& tasks) {
  unsigned highest = 0;
  for (const Task& task : tasks) {
    const unsigned number = ParseNumber<unsigned>(task.id).value_or(0);
    // Stays far from the type's limit, whatever ids a client has made up.
    if (number < 1'000'000'000) highest = std::max(highest, number);
  }
  return std::to_string(highest + 1);
}

}  // namespace reprise
