#include "app/secret_finder.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/learned_secrets.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// Members whose texts a reader of the JSON needs as they are.
constexpr std::array<std::string_view, 36> kNames = {"type",
                                                     "role",
                                                     "status",
                                                     "id",
                                                     "chat_id",
                                                     "parent_id",
                                                     "edited_from",
                                                     "call_id",
                                                     "approval_id",
                                                     "request_id",
                                                     "tool_call_id",
                                                     "at",
                                                     "created_at",
                                                     "completed_at",
                                                     "expires_at",
                                                     "scope",
                                                     "risk",
                                                     "kind",
                                                     "code",
                                                     "purpose",
                                                     "finish",
                                                     "digest",
                                                     "interaction",
                                                     "terms_digest",
                                                     "arguments_digest",
                                                     "interaction_id",
                                                     "file_id",
                                                     "mime_type",
                                                     "grant_expires_at",
                                                     "mode",
                                                     "job_id",
                                                     "updated_at",
                                                     "head",
                                                     "traceparent",
                                                     "files_from",
                                                     "used_at"};

constexpr std::string_view kMemory = "memory";  // the entities that tools have named

// Of texts that may be JSON or not: each backslash may begin an escape.
constexpr std::size_t kAnyEscape = std::numeric_limits<std::size_t>::max();

constexpr const char* kKindOfSecrets = "a secret of the configuration or the environment";

std::string InJson(const std::string& text, bool ascii) {
  const std::string quoted = Json(text).dump(-1, ' ', ascii, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

SecretFinder::SecretFinder(std::vector<std::string> secrets, const std::vector<std::string>& words) {
  for (const std::string& secret : secrets) {
    if (secret.size() >= kShortestSecret) Know(secret, kKindOfSecrets);
  }
  for (const std::string& word : words) Know(word, "the text \"" + word + "\"");
  Sort();
  // Inside a JSON string a word may begin behind an escape: \n.
  constexpr const char* kBegin = R"((?:\b|\\[bfnrt]|\\u[0-9a-fA-F]{4}))";
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"a key of a model provider", R"((sk-[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}))"},
      {"a token of GitHub", R"((gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}))"},
      {"a token of GitLab", R"((glpat-[A-Za-z0-9_-]{20,}))"},
      {"a token of Slack", R"((xox[abprs]-[A-Za-z0-9-]{10,}))"},
      {"a key of AWS", R"(((?:AKIA|ASIA)[A-Z0-9]{16})\b)"},
      {"a signed token", R"((eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}))"}};
  for (const auto& [kind, word] : kWords) kinds_.emplace_back(kind, std::make_unique<RE2>(std::string(kBegin) + word));
  // Up to its end; without one, all that may belong to it: lines may have numbers, file names or marks of a diff.
  constexpr const char* kPrivateKey =
      R"((-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:;,.|<>()_\[\]-]*?)"
      R"(-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:;,.|<>()_\[\]-]*)))";
  kinds_.emplace_back("a private key", std::make_unique<RE2>(kPrivateKey));
}

SecretFinder::~SecretFinder() = default;

void SecretFinder::Learn(const std::string& secret) {
  if (secret.size() < kShortestSecret || std::ranges::find(known_, secret, &Known::text) != known_.end()) return;
  Know(secret, kKindOfSecrets);
  Sort();
}

void SecretFinder::Sort() {
  std::ranges::stable_sort(known_, {}, [](const auto& each) { return -static_cast<std::ptrdiff_t>(each.text.size()); });
}

void SecretFinder::Know(const std::string& text, const std::string& kind) {
  // As it stands in texts, in JSON, and in JSON inside a string of JSON.
  std::map<std::string, std::size_t> forms{{text, 1}};  // and how many backslashes stand for one
  for (const std::size_t backslashes : {2, 4}) {
    for (const auto& [form, of_form] : std::map(forms)) {
      for (const bool ascii : {false, true}) forms.try_emplace(InJson(form, ascii), backslashes);
    }
  }
  for (const auto& [form, backslashes] : forms) {
    if (!form.empty()) known_.push_back({form, kind, backslashes});
  }
}

bool SecretFinder::TakeFrom(std::string& text) {
  bool any = false;
  for (const auto& [secret, kind, backslashes] : known_) {
    for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + secret.size())) {
      any = Take(text, at, secret.size(), kind, backslashes);
    }
  }
  for (const auto& [kind, pattern] : kinds_) {
    re2::StringPiece rest(text), found;
    std::vector<std::pair<std::size_t, std::size_t>> places;
    while (RE2::FindAndConsume(&rest, *pattern, &found)) {
      places.emplace_back(static_cast<std::size_t>(found.data() - text.data()), found.size());
    }
    for (const auto& [at, size] : places) any = Take(text, at, size, kind, /*backslashes=*/kAnyEscape);
  }
  return any;
}

void SecretFinder::TakeFrom(Json& json) {
  if (json.is_string()) TakeFrom(json.get_ref<std::string&>());
  if (json.is_array()) {
    for (Json& each : json) TakeFrom(each);
  }
  if (!json.is_object()) return;
  for (auto member = json.begin(); member != json.end(); ++member) {
    const bool names = member->is_string() && std::ranges::find(kNames, member.key()) != kNames.end();
    if (!names) TakeFrom(*member);
    if (member.key() != kMemory || !member->is_array()) continue;
    for (Json& entity : *member) {  // its id may be a path or a URL
      if (entity.is_object() && entity.contains("id")) TakeFrom(entity["id"]);
    }
  }
}

Result<Interaction> SecretFinder::TakenFrom(const Interaction& turn) {
  Json json = ToJson(turn);
  TakeFrom(json);
  return InteractionFromJson(json);
}

bool SecretFinder::Take(std::string& text, std::size_t at, std::size_t size, const std::string& kind,
                        std::size_t backslashes) {
  constexpr std::string_view kEscaped = "/bfnrtu";
  constexpr std::size_t kDigits = 4;  // of \u
  std::size_t before = 0;             // backslashes
  for (std::size_t i = at; i < at + size; ++i) {
    char& c = text[i];
    if (c == '\\') {
      ++before;
      continue;
    }
    const bool is_escaped = std::exchange(before, 0) % backslashes != 0 && kEscaped.find(c) != kEscaped.npos;
    if (is_escaped) {
      i += c == 'u' ? kDigits : 0;
    } else if (static_cast<unsigned char>(c) >= ' ' && c != '"') {
      c = 'x';
    }
  }
  ++taken_[kind];
  return true;
}

}  // namespace reprise
