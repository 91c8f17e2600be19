#pragma once

#include <memory>
#include <string>

#include "people/authenticator.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// The file of the API tokens: beside the keys, because its writers decide who may use the server.
std::string TokensFileOf(const Options& options);
// The file with the times of their last use.
std::string TokenUsesFileOf(const Options& options);

// The configured tokens, for commands; in the database if there is one. kInvalidArgument if the database's URL is
// invalid, kConflict if it has other tables.
Result<std::shared_ptr<ApiTokenStore>> OpenTokens(const Options& options);
// Null for a single user. `transport` must outlive it.
std::shared_ptr<Authenticator> MakeAuthenticator(const Options& options, Transport& transport,
                                                 std::shared_ptr<ApiTokenStore> tokens);

}  // namespace reprise
