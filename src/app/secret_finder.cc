#include "app/secret_finder.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "base/learned_secrets.h"
#include "base/text.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// Members whose texts a reader of the JSON needs as they are.
constexpr auto kNames = std::to_array<std::string_view>(
    {// What something is
     "type", "role", "status", "scope", "risk", "kind", "code", "purpose", "finish", "mime_type", "mode",
     // Which one it is
     "id", "chat_id", "parent_id", "edited_from", "call_id", "approval_id", "request_id", "tool_call_id", "digest",
     "interaction", "terms_digest", "arguments_digest", "interaction_id", "file_id", "job_id", "head", "traceparent",
     "files_from",
     // When it was
     "at", "created_at", "completed_at", "expires_at", "grant_expires_at", "updated_at", "used_at"});

constexpr std::string_view kMemory = "memory";  // the entities that tools have named

constexpr const char* kKindOfSecrets = "a secret of the configuration or the environment";

// How often escapes are undone: arguments are JSON inside JSON, and may hold JSON themselves.
constexpr int kDeepest = 6;
constexpr std::size_t kDigits = 4;  // of \u

// A text as it is, or as its readers have it after they have undone the escapes of JSON, once or several times.
struct ReadText {
  std::string text;
  std::vector<std::uint32_t> from;  // where each byte begins in the original, and the end; empty: the same place

  std::size_t From(std::size_t at) const { return from.empty() ? at : from[at]; }
};

// The unit of UTF-16 that the escape at `at` (\uXXXX) stands for; -1: it is none.
std::int32_t UnitAt(std::string_view text, std::size_t at) {
  if (at + 2 + kDigits > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  std::int32_t unit = 0;
  for (std::size_t i = at + 2; i < at + 2 + kDigits; ++i) {
    const int digit = HexDigit(text[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

// What the escape at `at` stands for, and its size; an empty text: it is none.
std::pair<std::string, std::size_t> EscapeAt(std::string_view text, std::size_t at) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  constexpr std::int32_t kHigh = 0xd800, kLow = 0xdc00, kEnd = 0xe000, kFirstOfPairs = 0x10000;
  constexpr std::size_t kSize = 2 + kDigits;
  const std::size_t letter = at + 1 < text.size() ? kLetters.find(text[at + 1]) : kLetters.npos;
  if (letter != kLetters.npos) return {std::string(1, kMeant[letter]), 2};
  const std::int32_t unit = UnitAt(text, at);
  if (unit < 0) return {};
  const std::int32_t second = unit >= kHigh && unit < kLow ? UnitAt(text, at + kSize) : -1;
  if (second < kLow || second >= kEnd) return {Utf8Of(static_cast<char32_t>(unit)), kSize};
  const std::int32_t code = kFirstOfPairs + (unit - kHigh) * 0x400 + (second - kLow);
  return {Utf8Of(static_cast<char32_t>(code)), 2 * kSize};
}

// The text with its escapes undone once more; nullopt: it has none.
std::optional<ReadText> Undone(const ReadText& before) {
  if (before.text.find('\\') == std::string::npos) return std::nullopt;
  ReadText after;
  bool has_any = false;
  const auto place = [&](std::size_t at) { return static_cast<std::uint32_t>(before.From(at)); };
  for (std::size_t i = 0; i < before.text.size();) {
    const auto [meant, size] =
        before.text[i] == '\\' ? EscapeAt(before.text, i) : std::pair<std::string, std::size_t>();
    if (meant.empty()) {
      after.text += before.text[i];
      after.from.push_back(place(i++));
      continue;
    }
    has_any = true;
    after.text += meant;
    after.from.push_back(place(i));
    after.from.resize(after.text.size(), place(i + size));
    i += size;
  }
  after.from.push_back(place(before.text.size()));
  return has_any ? std::optional(std::move(after)) : std::nullopt;
}

// Replaces what stands for one character.
void TakeCharacter(std::string& text, std::size_t begin, std::size_t end) {
  if (end == begin + 1) text[begin] = 'x';
  for (std::size_t i = begin + 1; i + kDigits < end; ++i) {
    if (text[i] != 'u') continue;
    text.replace(i + 1, kDigits, "0078");  // an x
    i += kDigits;
  }
}

// Quotes, control characters and escapes stay. `has_escapes`: a backslash in the range may begin one.
void Take(std::string& text, const ReadText& read, std::size_t at, std::size_t end, bool has_escapes) {
  constexpr std::string_view kEscaped = "/bfnrtu";
  bool is_escape = false;
  for (std::size_t i = at; i < end; ++i) {
    const char c = read.text[i];
    if (c == '\\') {
      is_escape = has_escapes;
    } else if (std::exchange(is_escape, false) && kEscaped.find(c) != kEscaped.npos) {
      i += c == 'u' ? kDigits : 0;
    } else if (static_cast<unsigned char>(c) >= ' ' && c != '"') {
      TakeCharacter(text, read.From(i), read.From(i + 1));
    }
  }
}

using DigestsOfArguments = std::map<std::string, std::string>;  // as they were: as they are

// REQUIRES: `after` is `before` with other texts.
void NoteArguments(const Json& before, const Json& after, DigestsOfArguments& digests) {
  for (auto was = before.begin(), is = after.begin(); was != before.end(); ++was, ++is) {
    const bool is_call = before.is_object() && (was.key() == "tool_input" || was.key() == "arguments");
    if (is_call && was->is_string()) {
      digests.try_emplace(ArgumentsDigest(was->get_ref<const std::string&>()),
                          ArgumentsDigest(is->get_ref<const std::string&>()));
    } else if (was->is_structured()) {
      NoteArguments(*was, *is, digests);
    }
  }
}

void ReplaceDigests(Json& json, const DigestsOfArguments& digests) {
  if (!json.is_structured()) return;
  for (Json& each : json) ReplaceDigests(each, digests);
  const std::string before = TextMember(json, "arguments_digest");
  if (before.empty()) return;
  const auto known = digests.find(before);
  json["arguments_digest"] = known == digests.end() ? ArgumentsDigest("") : known->second;
  if (!TextMember(json, "id").starts_with("grant_")) return;
  json["id"] = GrantId({.tool_name = TextMember(json, "tool_name"),
                        .arguments_digest = TextMember(json, "arguments_digest"),
                        .terms_digest = TextMember(json, "terms_digest")});
}

}  // namespace

SecretFinder::SecretFinder(std::vector<std::string> secrets, const std::vector<std::string>& words) {
  for (const std::string& secret : secrets) {
    if (secret.size() >= kShortestSecret) Know(secret, kKindOfSecrets);
  }
  for (const std::string& word : words) Know(word, "the text \"" + word + "\"");
  // Behind an escape of JSON, a colour, or what a URL encodes there is no \b.
  constexpr const char* kBegin =
      R"((?:\b|\\[bfnrt]|\\u[0-9a-fA-F]{4}|\[[0-9;:?]*[A-Za-z]|\x1b[()][A-Za-z0-9]|%(?:25)*[0-9A-Fa-f]{2}))";
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"a key of a model provider", R"((sk-[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}))"},
      {"a key of AWS", R"(((?:AKIA|ASIA)[A-Z0-9]{16})\b)"},
      {"a signed token", R"((eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}))"}};
  for (const auto& [kind, word] : kWords) kinds_.emplace_back(kind, std::make_unique<RE2>(std::string(kBegin) + word));
  // These are like no other word, whatever is before them.
  constexpr std::pair<const char*, const char*> kTokens[] = {
      {"a token of GitHub", R"((gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}))"},
      {"a token of GitLab", R"((glpat-[A-Za-z0-9_-]{20,}))"},
      {"a token of Slack", R"((xox[abprs]-[A-Za-z0-9-]{10,}))"}};
  for (const auto& [kind, token] : kTokens) kinds_.emplace_back(kind, std::make_unique<RE2>(token));
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
}

void SecretFinder::Know(const std::string& text, const std::string& kind) {
  if (!text.empty()) known_.push_back({text, kind});
  if (!IsUtf8(text)) known_.push_back({ToValidUtf8(text), kind});  // as JSON has it
}

std::vector<SecretFinder::Place> SecretFinder::PlacesIn(const std::string& text) const {
  std::vector<Place> places;
  for (const Known& known : known_) {
    std::size_t end = 0;  // of the last one
    for (std::size_t at = text.find(known.text); at != text.npos; at = text.find(known.text, at + 1)) {
      const bool goes_on = at < end;  // "abab" in "ababab"
      end = at + known.text.size();
      goes_on ? void(places.back().end = end) : places.push_back({at, end, &known.kind, /*is_known=*/true});
    }
  }
  for (const auto& [kind, pattern] : kinds_) {
    re2::StringPiece rest(text), found;
    while (RE2::FindAndConsume(&rest, *pattern, &found)) {
      const auto at = static_cast<std::size_t>(found.data() - text.data());
      places.push_back({at, at + found.size(), &kind, /*is_known=*/false});
    }
  }
  return places;
}

// All places are found before anything is taken, because words may overlap.
bool SecretFinder::TakeFrom(std::string& text) {
  std::vector<Place> taken;  // in the text as it is
  std::optional<ReadText> read = ReadText{.text = text, .from = {}};
  for (int depth = 0; read && depth < kDeepest; read = Undone(*read), ++depth) {
    for (const Place& place : PlacesIn(read->text)) {
      Take(text, *read, place.at, place.end, /*has_escapes=*/!place.is_known);
      taken.push_back({read->From(place.at), read->From(place.end), place.kind, place.is_known});
    }
  }
  // What is a part of another one does not count.
  std::ranges::stable_sort(
      taken, [](const Place& a, const Place& b) { return std::tie(a.at, b.end) < std::tie(b.at, a.end); });
  std::size_t end = 0;
  for (const Place& place : taken) {
    if (place.end > end) ++taken_[*place.kind];
    end = std::max(end, place.end);
  }
  return !taken.empty();
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
  const Json before = ToJson(turn);
  Json json = before;
  TakeFrom(json);
  DigestArguments(before, json);
  auto taken = InteractionFromJson(json);
  if (!taken) return taken;
  if (taken->record && taken->record->requests) taken->record->requests.reset();  // they do not add up any more
  if (taken->final_agent_state) taken->final_agent_state->request.reset();
  return taken;
}

void DigestArguments(const Json& before, Json& turns) {
  DigestsOfArguments digests;
  NoteArguments(before, turns, digests);
  ReplaceDigests(turns, digests);
}

}  // namespace reprise
