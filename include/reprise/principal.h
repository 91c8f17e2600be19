#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/timestamp.h"

namespace reprise {

// Who sends a request. Tenants are told apart by `org` and `user` together: what one has, no other sees.
struct Principal {
  enum class Role {
    kOperator,  // runs the server: the single user, or who shows the server's own token; without org and user
    kOrgAdmin,  // a user who may also see what the users of the org use, and delete it
    kUser,
    kNobody,  // asks for what anybody may have: the page, whether the server is well
  };
  Role role = Role::kOperator;
  std::string org{}, user{};
  std::string token_id{};            // of the API token that was shown; empty: another way
  std::optional<Timestamp> until{};  // when the access token that was shown ends

  bool is_tenant() const { return role == Role::kOrgAdmin || role == Role::kUser; }
  bool operator==(const Principal&) const = default;
};

// The org of those of whom nothing else is said.
inline constexpr std::string_view kDefaultOrg = "default";

// Whether an org or a user may be called so: 1 to 255 bytes of UTF-8 without control characters.
bool IsPrincipalName(std::string_view name);

}  // namespace reprise
