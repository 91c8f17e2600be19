#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/options.h"

namespace reprise {

// Whether a variable, a header or a parameter with this name holds a secret.
bool NamesSecret(std::string_view name);

// What is secret in a value: what `Setting::secrets` can be. `name`: of a header, a parameter or a variable.
void AddSecret(std::string_view name, std::string_view text, std::vector<std::string>& secrets);  // all of it
void AddSecretsOfHeader(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
// Where names of gateways' routes and versions are long words too: only of what is named like a secret.
void AddSecretsOfNamedHeader(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
void AddSecretsOfNamedParameter(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
void AddSecretsOfVariable(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
void AddSecretsOfQuery(std::string_view name, std::string_view url, std::vector<std::string>& secrets);
// postgresql://USER:PASSWORD@HOST/...?password=..., "host=... password='...'", redis://USER:PASSWORD@HOST
void AddSecretsOfDatabase(std::string_view name, std::string_view url, std::vector<std::string>& secrets);

// What no tool may repeat (base/redactor.h): what the table of settings calls secret, and what the server's environment
// (NAME=VALUE, ended by null) has under the name of a secret.
std::vector<std::string> SecretsOf(const Options& options, const char* const* environment);

// What names a database, for people to read: passwords in it are "***".
std::string WithoutPassword(std::string url);

}  // namespace reprise
