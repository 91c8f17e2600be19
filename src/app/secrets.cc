#include "app/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <variant>

#include "app/settings.h"
#include "base/text.h"
#include "wire/message.h"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 10> kSecretParts = {
    "API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "AUTHORIZATION", "CREDENTIAL", "PWD"};
// Suffixes of names that locate a secret.
constexpr std::array<std::string_view, 4> kPlaces = {"_DIR", "_FILE", "_PATH", "_URL"};
// A value whose name does not call it secret may be a common word, unless it is this long.
constexpr std::size_t kShortestUnnamed = 16;

// X-Auth-Key becomes X_AUTH_KEY.
std::string AsVariable(std::string_view name) {
  std::string variable(name);
  std::ranges::transform(variable, variable.begin(),
                         [](unsigned char c) { return static_cast<char>(c == '-' ? '_' : std::toupper(c)); });
  return variable;
}

void AddNamedOrLong(std::string_view name, std::string_view value, std::vector<std::string>& secrets) {
  if (NamesSecret(name) || value.size() >= kShortestUnnamed) secrets.emplace_back(value);
}

// Calls `use` with name and value of each part of a=1&b=2.
template <typename Use>
void ForEachPair(std::string_view text, char separator, const Use& use) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos) use(part.substr(0, equals), part.substr(equals + 1));
  }
}

void AddParameter(std::string_view name, std::string_view value, std::vector<std::string>& secrets) {
  AddNamedOrLong(name, value, secrets);
  if (const auto decoded = PercentDecoded(value, /*plus_is_space=*/true)) AddNamedOrLong(name, *decoded, secrets);
}

// For "host=... password='...'", another form that libpq takes.
void AddPasswordWord(std::string_view text, std::vector<std::string>& secrets) {
  constexpr std::string_view kName = "password";
  for (std::size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    std::size_t begin = text.find_first_not_of(' ', at + kName.size());
    if (begin == std::string_view::npos || text[begin] != '=') continue;
    begin = std::min(text.find_first_not_of(' ', begin + 1), text.size());
    const bool quoted = begin < text.size() && text[begin] == '\'';
    if (quoted) ++begin;
    std::size_t end = begin;
    while (end < text.size() && text[end] != (quoted ? '\'' : ' ')) end += text[end] == '\\' ? 2 : 1;
    if (end > begin) secrets.emplace_back(text.substr(begin, end - begin));
  }
}

}  // namespace

bool NamesSecret(std::string_view name) {
  const std::string variable = AsVariable(name);
  const auto ends_it = [&](std::string_view end) { return variable.ends_with(end); };
  const auto is_in_it = [&](std::string_view part) { return variable.find(part) != std::string::npos; };
  if (variable == "PWD" || variable == "OLDPWD") return false;  // the working directory
  if (std::ranges::any_of(kPlaces, ends_it)) return false;
  return variable == "KEY" || variable.ends_with("_KEY") || std::ranges::any_of(kSecretParts, is_in_it);
}

void AddSecret(std::string_view, std::string_view text, std::vector<std::string>& secrets) {
  if (!text.empty()) secrets.emplace_back(text);
}

void AddSecretsOfHeader(std::string_view name, std::string_view value, std::vector<std::string>& secrets) {
  const std::string variable = AsVariable(name);
  // These headers describe the client, in words that tools use too.
  if (variable.starts_with("ACCEPT") || variable.starts_with("CONTENT_") || variable == "USER_AGENT") return;
  if (variable == "COOKIE") {  // RFC 6265, section 4.2.1
    ForEachPair(value, ';', [&](std::string_view cookie, std::string_view text) {
      cookie.remove_prefix(std::min(cookie.size(), cookie.find_first_not_of(' ')));
      AddNamedOrLong(cookie, text, secrets);
    });
  } else {
    if (NamesSecret(name)) value.remove_prefix(value.find(' ') + 1);  // "Bearer ..."
    AddNamedOrLong(name, value, secrets);
  }
}

void AddSecretsOfNamedHeader(std::string_view name, std::string_view value, std::vector<std::string>& secrets) {
  if (NamesSecret(name)) AddSecretsOfHeader(name, value, secrets);
}

void AddSecretsOfNamedParameter(std::string_view name, std::string_view value, std::vector<std::string>& secrets) {
  if (NamesSecret(name)) AddParameter(name, value, secrets);
}

void AddSecretsOfVariable(std::string_view name, std::string_view value, std::vector<std::string>& secrets) {
  if (NamesSecret(name)) secrets.emplace_back(value);
}

void AddSecretsOfQuery(std::string_view, std::string_view url, std::vector<std::string>& secrets) {
  url = url.substr(0, url.find('#'));
  const std::size_t mark = url.find('?');
  if (mark == std::string_view::npos) return;
  ForEachPair(url.substr(mark + 1), '&',
              [&](std::string_view name, std::string_view value) { AddParameter(name, value, secrets); });
}

void AddSecretsOfDatabase(std::string_view, std::string_view url, std::vector<std::string>& secrets) {
  AddSecretsOfQuery({}, url, secrets);
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return AddPasswordWord(url, secrets);
  const std::string_view authority = url.substr(begin + 3, url.find('/', begin + 3) - begin - 3);
  const std::size_t colon = authority.find(':'), at = authority.rfind('@');
  if (colon == std::string_view::npos || at == std::string_view::npos || colon > at) return;
  const std::string_view password = authority.substr(colon + 1, at - colon - 1);
  secrets.emplace_back(password);
  if (const auto decoded = PercentDecoded(password)) secrets.push_back(*decoded);
}

std::string WithoutPassword(std::string url) {
  std::vector<std::string> secrets;
  AddSecretsOfDatabase({}, url, secrets);
  for (const std::string& secret : secrets) {
    for (std::size_t at = secret.empty() ? std::string::npos : url.find(secret); at != std::string::npos;
         at = url.find(secret, at + 3)) {
      url.replace(at, secret.size(), "***");
    }
  }
  return url;
}

std::vector<std::string> SecretsOf(const Options& options, const char* const* environment) {
  std::vector<std::string> secrets;
  ForEachSetting(options, [&](const std::string&, const Setting& setting, const SettingValue& value) {
    if (setting.rules.secrets == nullptr) return;
    if (std::string* const* text = std::get_if<std::string*>(&value)) setting.rules.secrets({}, **text, secrets);
    if (Texts* const* texts = std::get_if<Texts*>(&value)) {
      for (const std::string& text : **texts) setting.rules.secrets({}, text, secrets);
    }
    if (NamedTexts* const* pairs = std::get_if<NamedTexts*>(&value)) {
      for (const auto& [name, text] : **pairs) setting.rules.secrets(name, text, secrets);
    }
  });
  // OTEL_* variables may give metrics their own address and headers.
  AddSecretsOfQuery({}, options.telemetry.metrics.url, secrets);
  for (const auto& [name, value] : options.telemetry.metrics.headers) AddSecretsOfHeader(name, value, secrets);
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::size_t equals = variable.find('=');
    if (equals != std::string_view::npos)
      AddSecretsOfVariable(variable.substr(0, equals), variable.substr(equals + 1), secrets);
  }
  return secrets;
}

}  // namespace reprise
