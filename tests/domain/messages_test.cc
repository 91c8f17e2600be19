#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "reprise/interaction.h"
#include "reprise/message.h"
#include "support/test.h"

namespace reprise::messages_test {
namespace {

static_assert(std::random_access_iterator<Messages::Iterator>);

Message Said(int number) { return {.role = Role::kUser, .content = std::to_string(number)}; }

Messages Numbered(int first, int end) {
  Messages messages;
  for (int number = first; number < end; ++number) messages.push_back(Said(number));
  return messages;
}

bool IsEqual(const Messages& messages, const Messages& expected) {
  return messages.size() == expected.size() && std::equal(messages.begin(), messages.end(), expected.begin()) &&
         std::equal(messages.rbegin(), messages.rend(), expected.rbegin()) && messages == Messages(expected);
}

}  // namespace

TEST_CASE("Messages: changing a copy does not change the others", "[messages]") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound)(random); };
  std::vector<std::pair<Messages, std::vector<Message>>> copies(1);
  for (int step = 0; step < (kSanitized ? 200 : 2000); ++step) {
    const std::size_t chosen = below(copies.size() - 1);
    if (copies.size() < 8 && below(20) == 0) copies.push_back(copies[chosen]);
    auto& [messages, expected] = copies[chosen];
    const std::size_t at = below(messages.size());
    switch (below(5)) {
      case 0:
        messages.Truncate(messages.size() - std::min<std::size_t>(messages.size(), below(30)));
        expected.resize(messages.size());
        break;
      case 1: {
        const std::vector<Message> more(below(90), Said(step));
        messages.Insert(at, more);
        expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
        break;
      }
      case 2: {
        const auto other = copies[below(copies.size() - 1)];
        const std::size_t end = below(other.first.size()), first = below(end);
        messages.Append(other.first, first, end);
        expected.insert(expected.end(), other.second.begin() + static_cast<std::ptrdiff_t>(first),
                        other.second.begin() + static_cast<std::ptrdiff_t>(end));
        break;
      }
      case 3:
        if (at == messages.size()) break;
        messages.Change(at).content = expected[at].content = "changed " + std::to_string(step);
        break;
      default:
        messages.push_back(Said(step));
        expected.push_back(Said(step));
    }
    if (messages.size() > 1000) messages.Truncate(100), expected.resize(100);
    for (const auto& [each, its] : copies) REQUIRE(IsEqual(each, its));
  }
}

TEST_CASE("Messages: StartsWith holds for a continued list, shared or copied", "[messages]") {
  const Messages before = Numbered(0, 200);
  Messages after = before;
  CHECK(after.StartsWith(before));
  after.push_back(Said(200));
  for (const Messages& same : {after, Numbered(0, 201)}) {
    CHECK(same == after);
    CHECK(same.StartsWith(before));
    CHECK(same.StartsWith(Messages()));
    CHECK_FALSE(before.StartsWith(same));
  }
  for (const std::size_t at : {0, 63, 64, 199}) {
    Messages other = after;
    other.Change(at).content = "other";
    CHECK_FALSE(other.StartsWith(before));
    CHECK_FALSE(other == after);
  }
}

TEST_CASE("AddedTo: the messages added to the parent's, or all of them", "[messages]") {
  Interaction turn{.id = InteractionId::FromNumber(2), .chat_id = *ChatId::Parse("c")};
  turn.final_agent_state = AgentState{.messages = Numbered(0, 130)};
  const AddedInteraction added = AddedTo({.messages = Numbered(0, 100)}, turn);
  CHECK(added.kept_messages == 100);
  CHECK(added.interaction.final_agent_state->messages == Numbered(100, 130));
  for (const AgentState& other : {AgentState{.messages = Numbered(1, 100)}, AgentState{.messages = Numbered(0, 131)}}) {
    CHECK(AddedTo(other, turn).kept_messages == 0);
    CHECK(AddedTo(other, turn).interaction == turn);
  }
}

}  // namespace reprise::messages_test
