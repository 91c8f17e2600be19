#include "model/tool_call_assembler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/system.h"
#include "model/provider_error.h"

namespace reprise {
namespace {

constexpr std::size_t kCallIdBytes = 12;

// Duplicate members pass here; the tool rejects them with a message that the model can act on.
bool IsObject(std::string_view arguments) {
  const auto json = ParseJson(arguments, kMaxJsonDepth, DuplicateMembers::kLastWins);
  return json && json->is_object();
}

// The length of the JSON value that begins the text; npos if it is incomplete. REQUIRES: `text` begins with '{'.
std::size_t FirstObject(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// Arguments that were sent more than once, or after an empty object, reduced to one. Others unchanged.
std::string Once(std::string arguments) {
  std::optional<Json> found;
  std::string once;
  for (std::string_view rest = arguments;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (rest.empty()) break;
    const std::size_t size = rest.front() == '{' ? FirstObject(rest) : std::string_view::npos;
    if (size == std::string_view::npos) return arguments;
    auto object = ParseJson(rest.substr(0, size), kMaxJsonDepth, DuplicateMembers::kLastWins);
    if (!object || (found && !found->empty() && !object->empty() && !IsSameInAnyOrder(*found, *object)))
      return arguments;
    if (!found || !object->empty()) {
      once = rest.substr(0, size);
      found = *std::move(object);
    }
    rest.remove_prefix(size);
  }
  return found ? once : arguments;
}

}  // namespace

// The call that a piece continues; null if it begins a new one.
ToolCallAssembler::Slot* ToolCallAssembler::Find(const ToolCallDelta& delta) {
  const auto found = std::find_if(slots_.rbegin(), slots_.rend(),
                                  [&](const Slot& slot) { return !delta.index || slot.index == *delta.index; });
  if (found == slots_.rend()) return nullptr;
  const bool other_id = !delta.id.empty() && !found->call.id.empty() && delta.id != found->call.id;
  if (other_id && !delta.name.empty()) return nullptr;  // a new call with the same index, or without one
  if (!delta.index && delta.id.empty() && !delta.name.empty()) return nullptr;
  if (!delta.index && other_id) return nullptr;
  return &*found;
}

bool ToolCallAssembler::Add(const ToolCallDelta& delta) {
  Slot* slot = Find(delta);
  if (slot == nullptr) {
    if (slots_.size() == kMaxCalls) return false;
    const std::int64_t next = slots_.empty() ? 0 : slots_.back().index + 1;
    slot = &slots_.emplace_back(Slot{delta.index.value_or(next), {}});
  }
  last_ = static_cast<std::size_t>(slot - slots_.data());
  ToolCall& call = slot->call;
  argument_bytes_ += delta.id.size() + delta.name.size() + delta.arguments.size();
  if (argument_bytes_ > kMaxArgumentBytes) return false;
  if (call.id.empty()) call.id = delta.id;
  if (delta.name != call.name) call.name += delta.name;
  call.arguments += delta.arguments;
  return true;
}

Json& ToolCallAssembler::members() {
  std::shared_ptr<Json>& members = slots_[last_].members;
  if (!members) members = std::make_shared<Json>(Json::object());
  return *members;
}

Result<std::vector<ToolCall>> ToolCallAssembler::Take(bool must_be_whole, const std::vector<std::string>& used_ids) {
  std::stable_sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.index < b.index; });
  std::vector<ToolCall> calls;
  std::unordered_set<std::string> ids(used_ids.begin(), used_ids.end());
  for (Slot& slot : slots_) {
    ToolCall& call = slot.call;
    if (call.name.empty()) return Fail(ProtocolError("The model provider sent a tool call without a name"));
    if (!call.arguments.empty() && !IsObject(call.arguments)) call.arguments = Once(std::move(call.arguments));
    if (must_be_whole && !IsObject(call.arguments)) {
      cut_off_ = true;
      return Fail(ProtocolError("The model's answer ended in the middle of a tool call"));
    }
    while (call.id.empty() || !ids.insert(call.id).second) call.id = "call_" + RandomHex(kCallIdBytes);
    if (slot.members && !slot.members->empty()) members_.emplace_back(call.id, std::move(slot.members));
    calls.push_back(std::move(call));
  }
  slots_.clear();
  return calls;
}

Json ToolCallAssembler::TakeMembers() {
  Json by_id = Json::object();
  for (auto& [id, members] : members_) by_id[id] = std::move(*members);
  members_.clear();
  return by_id;
}

}  // namespace reprise
