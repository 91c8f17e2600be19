#pragma once

#include <memory>
#include <string>

#include "people/authenticator.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// Where the API tokens are: beside the keys, as whoever can write there decides who may come.
std::string TokensFileOf(const Options& options);
// When they were last used.
std::string TokenUsesFileOf(const Options& options);

// The tokens of a configuration, which are in its database if it has one; for commands. kInvalidArgument: the
// database's URL cannot be used; kConflict: it has other tables.
Result<std::shared_ptr<ApiTokenStore>> OpenTokens(const Options& options);
// Null for one user. `transport` must outlive it.
std::shared_ptr<Authenticator> MakeAuthenticator(const Options& options, Transport& transport,
                                                 std::shared_ptr<ApiTokenStore> tokens);

}  // namespace reprise
