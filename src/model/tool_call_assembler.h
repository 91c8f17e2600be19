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

// One piece of a streamed tool call; absent members are empty.
struct ToolCallDelta {
  std::optional<std::int64_t> index;
  std::string_view id, name, arguments;
};

// Assembles tool calls from their pieces. Providers differ: some omit the index; some send whole calls and some single
// characters; some give several whole calls the same index; some repeat id and name in every piece; some send the whole
// arguments at the end, or begin them with an empty object.
class ToolCallAssembler {
 public:
  static constexpr std::size_t kMaxCalls = 128;
  static constexpr std::size_t kMaxArgumentBytes = 4u << 20;  // all calls together

  // False if a limit is exceeded.
  bool Add(const ToolCallDelta& delta);
  bool empty() const { return slots_.empty(); }
  std::size_t size() const { return slots_.size(); }
  // Other members of the last piece's call: an object. REQUIRES: Add has returned true.
  Json& members();

  // The calls in order of their index, with unique ids that are not in `used_ids`. kProvider (provider_protocol) for a
  // call without a name, and, if `must_be_whole`, for arguments that are no JSON object: the response may have ended in
  // the middle of them, or before they began.
  Result<std::vector<ToolCall>> Take(bool must_be_whole, const std::vector<std::string>& used_ids = {});
  // Whether Take failed because of incomplete arguments.
  bool cut_off() const { return cut_off_; }
  // After Take: other members of the calls, by call id; calls without any are left out.
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
  std::vector<std::pair<std::string, std::shared_ptr<Json>>> members_;  // of the calls that Take returned
  std::size_t argument_bytes_ = 0;
  bool cut_off_ = false;
};

}  // namespace reprise
