#include "model/sent_history.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kSilence = "(nothing)";
constexpr std::string_view kNoResult = "(There is no result of this call.)";

bool HasNoText(const std::optional<std::string>& text) {
  return !text || text->find_first_not_of(" \t\r\n") == std::string::npos;
}

// Imported content in parts stands in the extras.
bool HasContent(const Message& message) {
  return !HasNoText(message.content) || !message.parts.empty() ||
         (!message.content && message.extras.find("\"content\"") != std::string::npos);
}

bool IsSilent(const Message& message) {
  return message.role != Role::kTool && message.tool_calls.empty() && !HasContent(message);
}

// Whether every result follows its call, and every call has a result.
bool AreCallsPaired(const Messages& messages) {
  const Message* asking = nullptr;
  std::size_t results = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role == Role::kTool) {
      if (asking == nullptr || results == asking->tool_calls.size()) return false;
      const auto& calls = asking->tool_calls;
      const auto same = [&](const ToolCall& call) { return call.id == message.tool_call_id; };
      if (std::count_if(calls.begin(), calls.end(), same) != 1) return false;
      const auto here = messages.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::any_of(here - static_cast<std::ptrdiff_t>(results), here,
                      [&](const Message& each) { return each.tool_call_id == message.tool_call_id; })) {
        return false;
      }
      ++results;
      continue;
    }
    if (asking != nullptr && results != asking->tool_calls.size()) return false;
    asking = message.tool_calls.empty() ? nullptr : &message;
    results = 0;
  }
  return asking == nullptr || results == asking->tool_calls.size();
}

bool HasIdTwice(const Messages& messages) {
  std::set<std::string_view> ids;
  for (const Message& message : messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (!ids.insert(call.id).second) return true;
    }
  }
  return false;
}

bool Join(const Message& a, const Message& b, const HistoryForm& form) {
  if (a.role != b.role || !a.tool_calls.empty()) return false;
  return (a.role == Role::kUser && form.joins_users) || (a.role == Role::kAssistant && form.joins_answers);
}

bool HasNeighbours(const Messages& messages, const HistoryForm& form) {
  return std::adjacent_find(messages.begin(), messages.end(),
                            [&](const Message& a, const Message& b) { return Join(a, b, form); }) != messages.end();
}

Message ToldResult(const Message& result) {
  return {.role = Role::kUser,
          .content =
              "(Not from the user: the result of a tool call that is no longer here.)\n" + result.content.value_or(""),
          .parts = result.parts};
}

// Appends `asking` with unique call ids, followed by the results, which are removed from `rest`.
void AppendWithResults(std::vector<Message>& mended, Message asking, std::vector<Message>& rest, std::size_t next) {
  std::set<std::string> ids;
  for (ToolCall& call : asking.tool_calls) {
    for (int more = 2; !ids.insert(call.id).second; ++more) call.id += "_" + std::to_string(more);
  }
  const std::vector<ToolCall> calls = asking.tool_calls;
  mended.push_back(std::move(asking));
  for (const ToolCall& call : calls) {
    Message result{.role = Role::kTool,
                   .content = std::string(kNoResult),
                   .tool_call_id = call.id,
                   .name = call.name,
                   .is_error = true};
    for (std::size_t i = next; i < rest.size() && rest[i].tool_calls.empty(); ++i) {
      if (rest[i].role != Role::kTool || rest[i].tool_call_id != call.id) continue;
      result = std::move(rest[i]);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    mended.push_back(std::move(result));
  }
}

void MakeIdsUnique(std::vector<Message>& messages) {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    for (ToolCall& call : messages[i].tool_calls) {
      const std::string before = call.id;
      for (int more = 2; !ids.insert(call.id).second; ++more) call.id = before + "_" + std::to_string(more);
      if (call.id == before) continue;
      for (std::size_t j = i + 1; j < messages.size() && messages[j].role == Role::kTool; ++j) {
        if (messages[j].tool_call_id == before) messages[j].tool_call_id = call.id;
      }
    }
  }
}

void JoinNeighbours(std::vector<Message>& messages, const HistoryForm& form) {
  std::vector<Message> joined;
  for (Message& message : messages) {
    if (joined.empty() || !Join(joined.back(), message, form)) {
      joined.push_back(std::move(message));
      continue;
    }
    Message& before = joined.back();
    if (!HasNoText(message.content)) {
      before.content = before.content.value_or("") + (HasNoText(before.content) ? "" : "\n\n") + *message.content;
    }
    before.tool_calls = std::move(message.tool_calls);
    before.extras = std::move(message.extras);
    before.parts.insert(before.parts.end(), message.parts.begin(), message.parts.end());
  }
  messages = std::move(joined);
}

std::uint64_t HashOfText(std::string_view text) {
  std::uint64_t hash = 1469598103934665603u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

std::optional<Messages> MendHistory(const Messages& messages, const HistoryForm& form) {
  const bool has_silent = std::any_of(messages.begin(), messages.end(), IsSilent);
  const bool is_paired = AreCallsPaired(messages);
  const bool has_twice = form.unique_call_ids && HasIdTwice(messages);
  const bool has_neighbours = HasNeighbours(messages, form);
  if (!has_silent && is_paired && !has_twice && !has_neighbours) return std::nullopt;
  std::vector<Message> rest(messages.begin(), messages.end()), mended;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    Message message = std::move(rest[i]);
    if (IsSilent(message)) {
      if (message.role != Role::kUser) continue;
      message.content = std::string(kSilence);
      message.extras.clear();
    }
    if (message.role == Role::kTool && !is_paired) {
      mended.push_back(ToldResult(message));
    } else if (!message.tool_calls.empty() && !is_paired) {
      AppendWithResults(mended, std::move(message), rest, i + 1);
    } else {
      mended.push_back(std::move(message));
    }
  }
  if (form.unique_call_ids) MakeIdsUnique(mended);
  JoinNeighbours(mended, form);
  return Messages(std::move(mended));
}

std::string SentName(std::string_view name, std::size_t longest) {
  constexpr std::size_t kHash = 16;
  std::string sent(name);
  if (name.size() > longest) {
    sent.resize(longest - kHash);
    for (std::uint64_t hash = HashOfText(name); sent.size() < longest; hash >>= 4) sent += kHexDigits[hash & 15];
  }
  for (char& c : sent) {
    if (!IsToolNameCharacter(c)) c = '_';
  }
  return sent.empty() ? "_" : sent;
}

std::string ShortCallId(std::string_view id) {
  constexpr std::size_t kLength = 9;
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto is_letter = [&](char c) { return kLetters.find(c) != std::string_view::npos; };
  if (id.size() == kLength && std::all_of(id.begin(), id.end(), is_letter)) return std::string(id);
  std::string sent;
  for (std::uint64_t hash = HashOfText(id); sent.size() < kLength; hash /= kLetters.size())
    sent += kLetters[hash % kLetters.size()];
  return sent;
}

}  // namespace reprise
