#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/options.h"

namespace reprise {

// Whether the name of a variable, header or parameter says that it holds a secret.
bool NamesSecret(std::string_view name);

// Each of these collects the secrets in a value, and can be a SettingRules::secrets. `name` is that of a header,
// parameter or variable.
void AddSecret(std::string_view name, std::string_view text, std::vector<std::string>& secrets);  // the whole text
void AddSecretsOfHeader(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
// The next two take only values whose name is that of a secret, because long values may be names of routes and versions
// of gateways.
void AddSecretsOfNamedHeader(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
void AddSecretsOfNamedParameter(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
void AddSecretsOfVariable(std::string_view name, std::string_view value, std::vector<std::string>& secrets);
void AddSecretsOfQuery(std::string_view name, std::string_view url, std::vector<std::string>& secrets);
// postgresql://USER:PASSWORD@HOST/...?password=..., "host=... password='...'", redis://USER:PASSWORD@HOST
void AddSecretsOfDatabase(std::string_view name, std::string_view url, std::vector<std::string>& secrets);

// The texts that no tool may repeat (Redactor, base/text.h): values that the table of settings calls secret, and
// variables of the server's environment (NAME=VALUE, ended by null) with the name of a secret.
std::vector<std::string> SecretsOf(const Options& options, const char* const* environment);

// The name of a database for people: passwords in it become "***".
std::string WithoutPassword(std::string url);

}  // namespace reprise
