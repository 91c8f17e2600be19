#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/timestamp.h"

namespace reprise {

// The sender of a request. A tenant is a pair of `org` and `user`, and sees nothing of other tenants.
struct Principal {
  enum class Role {
    kOperator,  // runs the server: the single user, or a holder of the server's own token; no org and user
    kOrgAdmin,  // a user who may also see usage and audit log of the org's users, and delete their chats
    kUser,
    kNobody,  // for public resources: the page, the health check
  };
  Role role = Role::kOperator;
  std::string org{}, user{};
  std::string token_id{};            // of the API token in use; empty: another way
  std::optional<Timestamp> until{};  // expiry of the access token in use

  bool is_tenant() const { return role == Role::kOrgAdmin || role == Role::kUser; }
  bool operator==(const Principal&) const = default;
};

// The org of users without a stated org.
inline constexpr std::string_view kDefaultOrg = "default";

// Whether an org or a user may have this name: 1 to 255 bytes of UTF-8 without control characters.
bool IsPrincipalName(std::string_view name);

}  // namespace reprise
