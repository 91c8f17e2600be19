#pragma once

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
  std::string tool_input;  // the arguments, for people; its beginning if they are long
  Timestamp created_at{};
};

// The grants that a person has given for always. Thread-safe.
class GrantStore {
 public:
  virtual ~GrantStore() = default;
  // When this returns ok, the grant also counts after a power loss. False: it was there. Failures are the disk's.
  virtual Result<bool> Add(const StandingGrant& grant) = 0;
  // kNotFound: there is none with this id (GrantId).
  virtual Result<void> Remove(std::string_view id) = 0;
  // Oldest first. kCorruption if they cannot be read: nothing is granted then.
  virtual Result<std::vector<StandingGrant>> List() = 0;
  // Never a call whose terms are not known.
  virtual bool Covers(const Grant& call) = 0;
};

}  // namespace reprise
