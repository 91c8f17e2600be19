#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A grant for all chats.
struct StandingGrant {
  Grant grant;
  std::string tool_input;  // arguments for people, cut if long; of a pattern: those of the call it was granted with
  Timestamp created_at{};
};

// A person's grants for all chats. Thread-safe.
//
//   const reprise::Grant grant{.tool_name = "weather", .arguments_digest = digest, .terms_digest = terms};
//   auto added = grants.Add({.grant = grant, .tool_input = "{}", .created_at = reprise::Now()});
//   if (!added) return Complain(added.error().message);
//   if (grants.Covers(grant)) Run();
class GrantStore {
 public:
  virtual ~GrantStore() = default;
  // When this returns ok, the grant survives a power loss. False: an equal grant existed, and takes the end and the
  // meaning of the new one. Failures are the disk's.
  virtual Result<bool> Add(const StandingGrant& grant) = 0;
  // kNotFound: no grant has this id (GrantId).
  virtual Result<void> Remove(std::string_view id) = 0;
  // Oldest first, without expired ones. kCorruption if they cannot be read: nothing is granted then.
  virtual Result<std::vector<StandingGrant>> List() = 0;
  // The grants relevant to this call (tool, arguments and terms): the equal one, and all patterns of the tool on these
  // terms. None if the call's terms are unknown or the grants cannot be read.
  virtual std::vector<Grant> For(const Grant& call) = 0;
  // Whether a grant is equal to this call.
  bool Covers(const Grant& call) {
    const auto grants = For(call);
    return std::any_of(grants.begin(), grants.end(), [](const Grant& each) { return each.pattern.empty(); });
  }
  // Counts a call that ran because of these grants. Written later: a count may be lost with the process.
  virtual void NoteUse(const std::vector<std::string>& ids) = 0;
};

}  // namespace reprise
