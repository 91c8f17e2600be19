#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A grant that counts in every chat.
struct StandingGrant {
  Grant grant;
  std::string tool_input;  // the arguments, for people; its beginning if they are long. Of a pattern: of the call that
                           // it was given with
  Timestamp created_at{};
};

// The grants that a person has given for always. Thread-safe.
class GrantStore {
 public:
  virtual ~GrantStore() = default;
  // When this returns ok, the grant also counts after a power loss. False: it was there, and now ends when the new one
  // does, and means what that does. Failures are the disk's.
  virtual Result<bool> Add(const StandingGrant& grant) = 0;
  // kNotFound: there is none with this id (GrantId).
  virtual Result<void> Remove(std::string_view id) = 0;
  // Oldest first, without those that have ended. kCorruption if they cannot be read: nothing is granted then.
  virtual Result<std::vector<StandingGrant>> List() = 0;
  // Those that bear on this call (its tool, arguments and terms): the one that is equal to it, and all patterns of the
  // tool on these terms. None for a call whose terms are not known, or if they cannot be read.
  virtual std::vector<Grant> For(const Grant& call) = 0;
  // Whether one is equal to this call.
  bool Covers(const Grant& call) {
    const auto grants = For(call);
    return std::any_of(grants.begin(), grants.end(), [](const Grant& each) { return each.pattern.empty(); });
  }
  // Counts a call that ran because of these. Kept when it suits: a count may be lost with the process.
  virtual void NoteUse(const std::vector<std::string>& ids) = 0;
};

}  // namespace reprise
