#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/message.h"
#include "reprise/result.h"

namespace reprise {

// One piece of a tool call as it comes in a stream; absent members are empty.
struct ToolCallDelta {
  std::optional<std::int64_t> index;
  std::string_view id, name, arguments;
};

// Puts tool calls together from their pieces. Providers differ: some send an index and some none, some whole calls and
// some single characters, some give several whole calls the same index, some repeat id and name in every piece, and
// some the whole arguments at the end, or begin them with an empty object.
class ToolCallAssembler {
 public:
  static constexpr std::size_t kMaxCalls = 128;
  static constexpr std::size_t kMaxArgumentBytes = 4u << 20;  // all calls together

  // False if a limit is passed.
  bool Add(const ToolCallDelta& delta);
  bool empty() const { return slots_.empty(); }
  std::size_t size() const { return slots_.size(); }
  // What else is kept of the call that the last piece belongs to: an object. REQUIRES: Add has returned true.
  Json& members();

  // The calls in the order of their index, each with a unique id that is none of `used_ids`. kProvider
  // (provider_protocol) for a call without a name, and, if `must_be_whole`, for arguments that are not JSON: the
  // response may have ended in the middle of them.
  Result<std::vector<ToolCall>> Take(bool must_be_whole, const std::vector<std::string>& used_ids = {});
  // Whether Take has failed because arguments were not whole.
  bool cut_off() const { return cut_off_; }
  // After Take: what else was kept of the calls, by their ids; those without are left out.
  Json TakeMembers();

 private:
  struct Slot {
    std::int64_t index;
    ToolCall call;
    std::shared_ptr<Json> members{};  // null: none
  };
  Slot* Find(const ToolCallDelta& delta);

  std::vector<Slot> slots_;                                             // in order of arrival
  std::size_t last_ = 0;                                                // in slots_
  std::vector<std::pair<std::string, std::shared_ptr<Json>>> members_;  // that Take has found
  std::size_t argument_bytes_ = 0;
  bool cut_off_ = false;
};

}  // namespace reprise
